"""The book's figures: functions that take numbers and return a matplotlib `Figure`."""
