"""What the chapter on inside a transformer records: runs that take longer than a notebook may."""
