"""The book's drawings: functions that take numbers and words and return a `Drawing`, an inline SVG."""
