"""What the chapter on the transformer records: runs that take longer than a notebook may."""
