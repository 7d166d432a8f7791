"""How far back the model reads that writes in this site's figures, by kind of character.

The measure of `gpt_stages.py`, at the same 3,000 held-out places and beside the same n-grams, for the GPT of
letters that the package holds (`tformer_book.kit.live`): what it pays when it may read the last 1, 2, 4, ...,
127 characters.

`python -m tformer_book.gpt.experiments.live_reach`: less than a minute of one core.
"""

import time
from typing import Any

import torch

from tformer_book.gpt.experiments.gpt_stages import TOKENIZER, reach
from tformer_book.kit.live import live_model
from tformer_book.kit.records import record
from tformer_lib.core.attention import FusedAttend

if __name__ == "__main__":
    torch.set_num_threads(1)
    started = time.process_time()
    model, letters = live_model()
    if letters.alphabet != TOKENIZER.alphabet:
        raise SystemExit("the model has other letters than the plays")
    blocks: Any = model.transformer.blocks
    for block in blocks:
        block.self_attention.backend = FusedAttend()
    print(record("live_reach", reach(model), seeds=[0], cpu_seconds=time.process_time() - started))
