"""What the chapter on the speedrun records: runs that take longer than a notebook may."""
