"""What the chapter on sequence modelling records: runs that take longer than a notebook may."""
