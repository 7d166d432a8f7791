"""What the chapter on training at scale records: runs that take longer than a notebook may."""
