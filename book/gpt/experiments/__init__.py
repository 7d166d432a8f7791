"""What the chapter on GPT records: runs that take longer than a notebook may."""
