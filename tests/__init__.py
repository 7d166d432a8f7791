"""The tests of the book and of its package."""
