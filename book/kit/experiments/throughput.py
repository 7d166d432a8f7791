"""How fast: a training step beside PyTorch's own layers, and a generated token beside `transformers`.

Both halves compare equal computations in one run, on one thread, turn by turn, by the process's own time; a
ratio is the median over the turns. The training step is nanoGPT's small model with AdamW, against the same
model made of `nn.TransformerEncoderLayer`, begun from the same weights; the script checks that their logits
are equal. The generated tokens are greedy ones of a GPT-2 with random weights, after a prompt of 16, with a
cache: `transformers` writes the model to a folder, `tformer_lib.pretrained.load` reads it, and the script
checks that both write the same tokens. About two minutes. Needs the package transformers.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.kit.models.recipes import BASELINE, BATCH, CONTEXT
from tformer_book.kit.records import record
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.generation import generate
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.pretrained import load
from tformer_lib.training import make_optimizers, seed_everything

VOCAB, STEPS, PROMPT, NEW, REPEATS, SEED = 65, 200, 16, 128, 21, 0
SIZES = {"4 blocks, width 128": (4, 4, 128), "6 blocks, width 384": (6, 6, 384)}  # blocks, heads, width


class EncoderLayers(nn.Module):
    """The same function as a `GPT` without biases, by `nn.TransformerEncoder`, with a copy of its weights."""

    def __init__(self, model: GPT):
        super().__init__()
        c = model.config
        assert model.positions is not None
        self.embed = nn.Embedding.from_pretrained(model.embed.weight.detach().clone(), freeze=False)
        self.positions = nn.Parameter(model.positions.get_parameter("table").detach().clone())
        layer = nn.TransformerEncoderLayer(
            *(c.d_model, c.n_heads, 4 * c.d_model),
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
            bias=False,
        )
        norm = nn.LayerNorm(c.d_model, bias=False)
        self.stack = nn.TransformerEncoder(layer, c.n_blocks, norm=norm, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))
        for ours, theirs in zip(model.transformer.blocks, self.stack.layers, strict=True):
            attention = ours.self_attention
            stacked = torch.cat([attention.W_q.weight, attention.W_k.weight, attention.W_v.weight])
            pairs = [
                (stacked, theirs.self_attn.in_proj_weight),
                (attention.W_o.weight, theirs.self_attn.out_proj.weight),
                (ours.mlp.W_in.weight, theirs.linear1.weight),
                (ours.mlp.W_out.weight, theirs.linear2.weight),
            ]
            for weight, copy in pairs:
                copy.data.copy_(weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits, with the head tied to the embedding."""
        x = self.embed(tokens) + self.positions[: tokens.shape[1]]
        return self.stack(x, mask=self.mask, is_causal=True) @ self.embed.weight.T


def turns(functions: dict[str, Callable[[], Any]], repeats: int, first: int) -> dict[str, list[float]]:
    """The process times of each function, called turn by turn; the `first` rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for round_ in range(first + repeats):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if round_ >= first:
                times[name].append(time.process_time() - start)
    return times


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median, over rounds, of our time by theirs: what else the machine did slowed both in a round."""
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 4)


def milliseconds(times: list[float], parts: int = 1) -> float:
    """The median, divided by how many steps or tokens it is for."""
    return round(1000 * statistics.median(times) / parts, 3)


def training() -> dict[str, Any]:
    """Milliseconds of a training step: ours with both backends, and PyTorch's layers."""
    models: dict[str, nn.Module] = {}
    for name, backend in {"FusedAttend": FusedAttend, "Attend": Attend}.items():
        seed_everything(SEED)
        models[name] = BASELINE.build(VOCAB)
        for block in models[name].transformer.blocks:
            block.self_attention.backend = backend()
    models["TransformerEncoderLayer"] = EncoderLayers(models["FusedAttend"])
    batch = torch.randint(VOCAB, (BATCH, CONTEXT + 1))
    for model in models.values():
        torch.testing.assert_close(model(batch[:, :-1]), models["Attend"](batch[:, :-1]))

    def stepper(model: nn.Module) -> Callable[[], None]:
        options = {k: v for k, v in BASELINE.fit.items() if k in ("lr", "weight_decay", "betas")}
        (adamw,) = make_optimizers(model, "adamw", **options)
        parameters = list(model.parameters())

        def step() -> None:
            loss = language_loss(model, batch)
            model.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            adamw.step()

        return step

    found = turns({name: stepper(model) for name, model in models.items()}, STEPS, 10)
    theirs = found["TransformerEncoderLayer"]
    return {
        "milliseconds_a_step": {name: milliseconds(times) for name, times in found.items()},
        "ratio": ratio(found["FusedAttend"], theirs),
        "ratio_of_attend": ratio(found["Attend"], theirs),
        "steps": STEPS,
    }


def generation(blocks: int, heads: int, width: int, transformers: Any) -> dict[str, Any]:
    """Milliseconds of a greedy token with a cache: ours, and `transformers`'."""
    seed_everything(SEED)
    size = {"n_positions": PROMPT + NEW, "n_embd": width, "n_layer": blocks, "n_head": heads}
    config = transformers.GPT2Config(vocab_size=1000, bos_token_id=None, eos_token_id=None, **size)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    for p in theirs.parameters():  # larger weights than the first ones, so that the text is not one token
        p.data.add_(0.1 * torch.randn_like(p))
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = load(folder, make_backend=FusedAttend)
    prompt = torch.randint(1000, (1, PROMPT))
    everywhere = torch.ones_like(prompt)
    written: dict[str, list[int]] = {}

    def by_us() -> None:
        written["ours"] = generate(ours, prompt[0], NEW, temperature=0)

    def by_them() -> None:
        options = {"max_new_tokens": NEW, "do_sample": False, "use_cache": True, "pad_token_id": 0}
        written["theirs"] = theirs.generate(prompt, attention_mask=everywhere, **options)[0].tolist()

    found = turns({"generate": by_us, "transformers": by_them}, REPEATS, 1)
    if written["ours"] != written["theirs"]:
        raise AssertionError("the two models write different tokens")
    return {
        "milliseconds_a_token": {name: milliseconds(times, NEW) for name, times in found.items()},
        "ratio": ratio(found["generate"], found["transformers"]),
        "different_tokens": len(set(written["ours"])),
    }


def main() -> None:
    """Measures both, prints, and records."""
    try:
        import transformers
    except ImportError:
        raise SystemExit("this script measures against transformers: pip install transformers") from None
    torch.set_num_threads(1)
    results: dict[str, Any] = {"training": training()}
    print(results["training"], flush=True)
    results["transformers"] = version("transformers")
    results["generation"] = {"prompt": PROMPT, "new_tokens": NEW, "repeats": REPEATS}
    for name, size in SIZES.items():
        results["generation"][name] = generation(*size, transformers)
        print(name, results["generation"][name], flush=True)
    record("throughput", results, seeds=[SEED])


if __name__ == "__main__":
    main()
