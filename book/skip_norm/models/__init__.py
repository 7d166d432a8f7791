"""Models of the chapter on skip connections and normalisation alone."""
