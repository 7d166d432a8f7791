"""What the chapter on GPT reads."""
