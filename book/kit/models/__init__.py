"""Models of a single chapter: what the transformer is compared with, and what takes it apart."""
