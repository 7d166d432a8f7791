"""What the chapter on skip connections records: runs that take longer than a notebook may."""
