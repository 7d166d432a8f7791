"""What the chapter on attention records: runs that take longer than a notebook may."""
