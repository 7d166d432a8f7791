"""What the chapter on ImageGPT and sound records: runs that take longer than a notebook may."""
