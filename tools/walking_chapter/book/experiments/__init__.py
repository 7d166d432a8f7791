"""What the chapter A walking chapter records: runs that take longer than a notebook may."""
