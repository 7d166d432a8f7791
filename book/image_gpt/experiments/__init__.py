"""What the chapter on ImageGPT, noise and sound records: runs that take longer than a notebook may."""
