"""Models: embeddings in front of the core, heads behind it, and the recurrent networks it replaced."""
