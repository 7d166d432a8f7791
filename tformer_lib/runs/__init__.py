"""`python -m tformer_lib.train`: a language model of any folder of texts, from a file of settings."""
