"""What the chapter on long sequences records: runs that take longer than a notebook may."""
