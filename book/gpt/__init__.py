"""The chapter on GPT."""
