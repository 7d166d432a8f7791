"""The model that writes in the page: trained, measured, made small and exported.

It is the modern GPT (0.8 million parameters, letters as tokens), and reads all plays of
Chapter 8 about one and a half times, in windows of 128. Exported is a matrix as whole numbers of eight
bits with one scale a row, everything else in float32: `book/kit/live_model.json`, which
`tformer_book.kit.live.live_model` loads and of which the site makes a script; and, in
`book/site/static/live/logits.js`, its logits after six held-out texts. Recorded are the bits per held-out
character before and after, so that the page can say what the eight bits cost, and what heads read and are
worth.

`python live_model.py` goes on where it was stopped. Ten to twenty minutes on one core.
"""

import json
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.live import FILE, as_json, as_script, quantise_
from tformer_book.kit.models.recipes import MODERN
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs
from tformer_lib.analysis.ablation import mask_heads
from tformer_lib.analysis.weights import attention_weights
from tformer_lib.core.attention import Attend
from tformer_lib.data.windows import RandomWindows
from tformer_lib.files import replace_file
from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

SEED, LENGTH, BATCH, STEPS = 0, 128, 16, 3500
FOLDER = BUILD.parent / "book" / "site" / "static" / "live"
PROMPTS = 6  # whose next letters are recorded, for the figure of sampling rules


def looks(model: GPT, held_out: Tensor) -> dict[str, Any]:
    """What each head reads in 60 held-out windows, what silencing it costs, what the last block changes.

    `before` is the weight on the letter before, `far` the mean distance in letters, both for the second
    half of a window; `silent` are bits per letter there without the head, `blocks` without a whole block.
    `changed` is the share of letters for which the logit lens names another letter before the last block.
    """
    for block in model.transformer.blocks:
        block.self_attention.backend = Attend()
    rows = held_out[: 60 * LENGTH].view(60, LENGTH)
    half, M, H = LENGTH // 2, model.config.n_blocks, model.config.n_heads
    weights = attention_weights(model, (rows[:30],))[..., half:, :]  # (B, M, H, N / 2, N)
    n = torch.arange(LENGTH)
    back = (n[half:, None] - n).clamp(min=0)
    streams: list[Tensor] = []
    hooks = [b.register_forward_hook(lambda _, __, y: streams.append(y)) for b in model.transformer.blocks]

    @torch.no_grad()
    def bits() -> float:
        logits = model(rows[:, :-1])[:, half - 1 :]
        return cross_entropy(logits.flatten(0, 1), rows[:, half:].flatten()).item() / math.log(2)

    everything = bits()
    read = [model.transformer.final_norm(y) @ model.embed.weight.T for y in streams[-2:]]
    before_last, at_last = (z[:, half - 1 :].argmax(dim=-1) for z in read)
    for hook in hooks:
        hook.remove()

    def without(heads: list[tuple[int, int]]) -> float:
        with mask_heads(model, heads):
            return bits()

    return {
        "before": (weights * (back == 1)).sum(dim=-1).mean(dim=(0, 3)).tolist(),
        "far": (weights * back).sum(dim=-1).mean(dim=(0, 3)).tolist(),
        "bits": everything,
        "silent": [[without([(m, h)]) for h in range(H)] for m in range(M)],
        "blocks": [without([(m, h) for h in range(H)]) for m in range(M)],
        "changed": (before_last != at_last).float().mean().item(),
    }


def main() -> None:
    """Train, measure, export and record."""
    torch.set_num_threads(1)
    text = shakespeare("train")
    tokenizer = CharTokenizer.from_text(text)
    ids = torch.tensor(tokenizer.encode(text))
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    runs = Runs("live_model")
    weights = BUILD / "live_model" / "weights.pt"

    def build() -> GPT:
        seed_everything(SEED)
        return MODERN.build(tokenizer.vocab_size)

    def train() -> dict[str, Any]:
        model = build()
        windows = RandomWindows(ids, batch=BATCH, length=LENGTH, steps=STEPS, seed=SEED)
        options = {
            "lr": 1.2e-2,
            "optimizer": "muon",
            "warmup": 60,
            "weight_decay": 0.05,
            "min_lr_ratio": 0.02,
        }
        history = fit(model, language_loss, windows, checkpoint=runs.checkpoint("train"), **options)
        torch.save(model.state_dict(), weights)
        return {
            "parameters": count_parameters(model),
            "steps": STEPS,
            "read": STEPS * BATCH * LENGTH,
            "seconds": history.seconds,
            "held_out": bits_per_character(model, held_out, 64),
        }

    results = runs.keep("train", make=train, again=not weights.exists())
    model = build()
    model.load_state_dict(torch.load(weights, weights_only=True))
    letters = "".join(tokenizer.decode([i]) for i in range(tokenizer.vocab_size))
    config, rotary = model.config, model.transformer.blocks[0].self_attention.rotary
    facts = {
        "D": config.d_model,
        "H": config.n_heads,
        "M": config.n_blocks,
        "F": config.d_hidden,
        "base": rotary.base,
        "context": LENGTH,
    }
    exported = as_json(model, letters, facts)
    replace_file(FILE, exported.encode())
    quantise_(model).eval()
    with torch.no_grad():
        rows = [held_out[start : start + LENGTH // 2] for start in range(5_000, 5_000 + 997 * PROMPTS, 997)]
        prompts = [
            {
                "text": tokenizer.decode(row.tolist()),
                "logits": [round(z, 4) for z in model(row[None])[0, -1].tolist()],
            }
            for row in rows
        ]
    recorded_logits = json.dumps({"letters": letters, "prompts": prompts})
    replace_file(FOLDER / "logits.js", f"window.TformerLogits = {recorded_logits};\n".encode())
    results["bytes"] = len(as_script(exported))
    results["held_out_eight_bits"] = bits_per_character(model, held_out, 64)
    results["looks"] = looks(model, held_out)
    print(record("live_model", results, seeds=[SEED], cpu_seconds=sum(runs.seconds.values())))


if __name__ == "__main__":
    main()
