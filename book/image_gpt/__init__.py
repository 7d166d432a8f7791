"""The chapter on ImageGPT, and its page on sound."""
