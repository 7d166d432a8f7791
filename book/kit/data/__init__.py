"""What the chapters' models read: texts, sentences, pictures, sounds, and sequences drawn at random."""
