"""What the chapter on positional embeddings records: runs that take longer than a notebook may."""
