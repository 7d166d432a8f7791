"""What the chapter on translation records: runs that take longer than a notebook may."""
