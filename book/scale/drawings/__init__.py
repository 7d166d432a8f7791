"""The drawings of the chapter on training at scale."""
