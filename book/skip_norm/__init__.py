"""The chapter on skip connections and normalisation."""
