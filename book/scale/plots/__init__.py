"""The plots of the chapter on training at scale."""
