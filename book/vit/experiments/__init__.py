"""What the chapter on the vision transformer records: runs that take longer than a notebook may."""
