"""What the chapter on skip connections and normalisation records: runs that take longer than a notebook may."""
