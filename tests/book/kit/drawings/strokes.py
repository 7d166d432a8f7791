"""A digit that nobody wrote: a stroke on a small picture."""


def stroke(side=8):
    """An image of a slanted stroke."""
    return [[1.0 if abs(i - j) < 2 and 0 < i < side - 1 else 0.0 for j in range(side)] for i in range(side)]
