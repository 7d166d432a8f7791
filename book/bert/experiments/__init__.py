"""What the chapter on BERT records: runs that take longer than a notebook may."""
