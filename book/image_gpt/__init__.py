"""The chapter on ImageGPT and sound."""
