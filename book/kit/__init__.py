"""What several chapters need: claims, tables, records, figures, exercises, data."""
