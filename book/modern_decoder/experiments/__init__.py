"""What the chapter on the modern decoder records: runs that take longer than a notebook may."""
