"""Data: token numbers, batches and vocabularies; nothing in here calls a model."""

PAD, BOS, EOS = 0, 1, 2  # "no token here", "begin", "end": the first three numbers of every vocabulary
