"""The public names under odd inputs and damaged files; `tests/test_fuzz.py` runs this without type checks.

The property: what is called returns something finite, or raises an error of ours, which is one of a few
types, comes from the package's own code, and says what was expected and what came. Nothing hangs, and what is
refused changes nothing. Sizes that would take the machine's memory are not among the inputs.
"""

import contextlib
import faulthandler
import itertools
import json
import math
import random
import sys
import tempfile
import time
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import tformer_lib
from tformer_book import check
from tformer_book.kit.exercises import exercise_names
from tformer_book.long_sequences.models.recall import RecallModel, recall_loss
from tformer_lib import (
    MultiHeadAttention,
    Transformer,
    TransformerConfig,
    attention,
    causal_mask,
    padding_mask,
)
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.cache import KVCache, LayerCache
from tformer_lib.core.positions import ALiBi, LearnedPositions, RelativeBias, Rotary, sinusoidal
from tformer_lib.core.transformer import MLP
from tformer_lib.generation import beam_search, generate, greedy_search, next_token_probabilities
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.models.classifiers import SequenceClassifier, classifier_loss
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import GRULanguageModel, MLPLanguageModel, language_loss
from tformer_lib.models.recurrent import EncoderDecoder, FinalState, encoder_decoder_loss
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.pretrained import bert, gpt2, llama, load, load_gguf, vit
from tformer_lib.pretrained.settings import Settings
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer, WordPieceTokenizer
from tformer_lib.training import fit, load_checkpoint, save_checkpoint, seed_everything
from tformer_lib.training.checkpoints import FILE
from tformer_lib.training.fine_tuning import fine_tune

assert not hasattr(causal_mask, "__wrapped__"), "types are checked here, which readers do not have"
torch.set_num_threads(1)
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
few = settings(max_examples=60, suppress_health_check=list(HealthCheck))

OURS = (ValueError, TypeError, FloatingPointError, FileNotFoundError)
PYTHONS = ("not supported between", "object is not", "has no attribute", "unsupported operand", "argument")
ROOT = str(Path(tformer_lib.__file__).parent)
LIMIT = 120  # seconds for a case of some milliseconds: a machine that is that busy runs no tests
CASES = 0


@pytest.fixture(autouse=True)
def watched():
    """A case that hangs ends the process, with a picture of where it was."""
    yield
    faulthandler.cancel_dump_traceback_later()


def judged(call):
    """(what the call returns, None), or (None, the error), which must be one of ours."""
    global CASES
    CASES += 1
    faulthandler.dump_traceback_later(LIMIT, exit=True, file=sys.__stderr__)
    try:
        result = call()
    except OURS as error:
        kind, message = type(error), str(error)
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        assert kind in OURS, f"{kind.__name__}: {message}"
        assert where.startswith(ROOT), f"{kind.__name__} from {where}: {message}"
        assert message, "an error without a message"
        assert not [words for words in PYTHONS if words in message], message
        return None, error
    except Exception as error:
        raise AssertionError(f"not an error of ours: {type(error).__name__}: {error}") from error
    finite(result)
    return result, None


def finite(found):
    """Nothing that comes back is NaN."""
    if isinstance(found, torch.Tensor) and found.is_floating_point() and not found.is_meta:
        assert not found.isnan().any()
    elif isinstance(found, float):
        assert not math.isnan(found)
    elif isinstance(found, tuple | list):
        for part in found:
            finite(part)


ODD = [
    *(math.nan, math.inf, -math.inf, -1, 0, 1, 2, 0.5, -0.5, 2.5, 10**40, -(10**40), True, False),
    *("3", "", b"2", None, [], [1], (), {}, {1}, 1j, object(), float, Fraction(1, 2)),
    *(np.float32(0.5), np.float64("nan"), np.int64(2), np.bool_(True), np.array(2), np.array([1, 2])),
    *(torch.tensor(2), torch.tensor(0.5), torch.tensor([1]), torch.tensor(True), torch.tensor(1j)),
    torch.empty((), device="meta"),
]
odd = st.integers(0, len(ODD) - 1).map(ODD.__getitem__)

CONFIG = TransformerConfig(d_model=8, n_heads=2, n_blocks=1)
X = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
VOCAB = 7


def small(value, most=64):
    """No memory is asked for: a size beyond this is replaced by an odd one that takes none."""
    try:
        return value if not value > most else -1
    except Exception:
        return value


def config(name, value):
    made = TransformerConfig(**{"d_model": 8, "n_heads": 2, "n_blocks": 1} | {name: small(value)})
    json.dumps(vars(made))
    return Transformer(made).eval()(torch.randn(1, 2, made.d_model)) if not made.cross_attention else None


def gpt():
    torch.manual_seed(0)
    return GPT(CONFIG, VOCAB, positions=LearnedPositions(16, 8)).eval()


def translator():
    torch.manual_seed(0)
    return Translator(CONFIG, VOCAB).eval()


def fitted(name, value):
    model = gpt()
    before = [p.clone() for p in model.parameters()]
    options = {"steps": 3, "warmup": 1, "progress": False} | {name: small(value)}
    try:
        history = fit(model, language_loss, [torch.tensor([[1, 2, 3]])], **options)
    except Exception:
        assert all(torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True)), "half trained"
        raise
    assert max(history.lr) <= float(options.get("lr", 3e-3)) * (1 + 1e-12)
    return history.loss + history.grad_norm + history.lr


def fine_tuned(name, value):
    encoder = BERT(bert_config(d_model=8, n_heads=2, n_blocks=1), VOCAB, max_len=4)
    batch = (torch.tensor([[1, 2]]), None, torch.tensor([1]))
    options = {"steps": 2, "progress": False} | {name: small(value)}
    fine_tune(encoder, lambda e: SequenceClassifier(e, 2), [batch], **options)


def written(name, value):
    options = {"max_new_tokens": 3} | {name: small(value)}
    prompt = options.pop("prompt", [1, 2])
    found = generate(gpt(), prompt, **options)
    flat = found if found and isinstance(found[0], int) else [x for row in found for x in row]
    assert all(type(x) is int and 0 <= x < VOCAB for x in flat)
    if name == "stop" and value is not None:
        asked = value.tolist() if hasattr(value, "tolist") else value
        asked = set(asked) if isinstance(asked, list | tuple | set) else {asked} if asked else set()
        assert not set(found[2:-1]) & asked, "it went on behind a stop token"


def searched(search, name, value):
    options = {"max_len": 3} | {name: small(value)}
    return [
        (x.log_p, x.score)
        for row in search(translator(), torch.tensor([[3, 4, 2]]), **options)
        for x in (row if isinstance(row, list) else [row])
    ]


def probabilities(name, value):
    found = next_token_probabilities(torch.tensor([0.5, 1.0, -1.0]), **{name: value})
    assert abs(found.sum().item() - 1) < 1e-5


CHARACTERS = CharTokenizer("abcdefg")
PIECES = WordPieceTokenizer(["[UNK]", "a", "##b"], ("[UNK]",))
BYTES = BPETokenizer([])
NUMBERS = {
    **{
        f"TransformerConfig {name}": lambda v, name=name: config(name, v)
        for name in (
            *("d_model", "n_heads", "n_blocks", "d_hidden", "n_kv_heads", "norm", "norm_placement"),
            *("norm_eps", "activation", "qk_norm", "dropout", "mlp_dropout", "bias", "cross_attention"),
        )
    },
    "MultiHeadAttention width": lambda v: MultiHeadAttention(small(v), 2),
    "MultiHeadAttention heads": lambda v: MultiHeadAttention(8, small(v))(X),
    "MultiHeadAttention kv heads": lambda v: MultiHeadAttention(8, 2, n_kv_heads=small(v))(X),
    "MultiHeadAttention dropout": lambda v: MultiHeadAttention(8, 2, dropout=v).eval()(X),
    "Attend dropout": lambda v: Attend(v),
    "FusedAttend dropout": lambda v: FusedAttend(v),
    "MLP width": lambda v: MLP(small(v)),
    "MLP hidden": lambda v: MLP(8, small(v))(X),
    "LearnedPositions length": lambda v: LearnedPositions(small(v), 8)(X[:, :1]),
    "LearnedPositions offset": lambda v: LearnedPositions(9, 8)(X, v),
    "sinusoidal n": lambda v: sinusoidal(small(v), 8),
    "sinusoidal width": lambda v: sinusoidal(3, small(v)),
    "sinusoidal offset": lambda v: sinusoidal(3, 8, offset=small(v)),
    "Rotary width": lambda v: Rotary(small(v)),
    "Rotary base": lambda v: Rotary(8, v)(X),
    "Rotary offset": lambda v: Rotary(8)(X, small(v)),
    "ALiBi heads": lambda v: ALiBi(small(v))(2, 3),
    "ALiBi queries": lambda v: ALiBi(2)(small(v), 3),
    "RelativeBias heads": lambda v: RelativeBias(small(v))(2, 3),
    "RelativeBias buckets": lambda v: RelativeBias(2, n_buckets=small(v))(2, 3),
    "RelativeBias distance": lambda v: RelativeBias(2, max_distance=v)(2, 3),
    "causal_mask n": lambda v: causal_mask(small(v)),
    "causal_mask past": lambda v: causal_mask(2, past=small(v)),
    "padding_mask": lambda v: padding_mask(torch.tensor([[1, 0]]), v),
    "KVCache": lambda v: KVCache(small(v)),
    **{
        f"fit {name}": lambda v, name=name: fitted(name, v)
        for name in (
            *("steps", "lr", "weight_decay", "warmup", "clip", "betas", "momentum", "min_lr_ratio"),
            *("optimizer", "checkpoint_every"),
        )
    },
    **{
        f"fine_tune {n}": lambda v, n=n: fine_tuned(n, v)
        for n in ("steps", "lr", "warmup", "dropout", "seed")
    },
    **{
        f"generate {name}": lambda v, name=name: written(name, v)
        for name in (
            *("prompt", "max_new_tokens", "temperature", "top_k", "top_p", "min_p"),
            *("stop", "context", "generator"),
        )
    },
    **{
        f"beam_search {name}": lambda v, name=name: searched(beam_search, name, v)
        for name in ("max_len", "num_beams", "length_penalty", "n_best")
    },
    **{
        f"greedy_search {name}": lambda v, name=name: searched(greedy_search, name, v)
        for name in ("max_len", "length_penalty")
    },
    **{
        f"next_token_probabilities {name}": lambda v, name=name: probabilities(name, v)
        for name in ("temperature", "top_k", "top_p", "min_p")
    },
    "seed_everything": seed_everything,
    "check seconds": lambda v: check("attention.causal_columns", lambda n: n, seconds=v),
    **{
        f"{type(t).__name__} decode {i}": lambda v, t=t, i=i: t.decode(v if i else [v])
        for t, i in itertools.product((CHARACTERS, PIECES, BYTES), (0, 1))
    },
    "label_smoothing": lambda v: translator_loss(
        translator(), (torch.tensor([[3]]), torch.tensor([[1, 3, 2]])), label_smoothing=v
    ),
    "BPE vocab_size": lambda v: BPETokenizer.train("ab ab", v),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    for value in ODD:
        judged(lambda value=value: NUMBERS[name](value))


def odd_tokens(count=VOCAB):
    good = torch.tensor([[1, 2, 3], [4, 5, 6]])
    yield from (good, good.int(), good.float(), good.double(), good.to(torch.int8), good.bool())
    yield from (good + count, good - 9, good * 10**15, good[0], good[None], good[0, 0], good[:, :0], good[:0])
    yield from (
        good.to(torch.complex64),
        good.to_sparse(),
        good.to("meta"),
        good.half(),
        good.to(torch.uint8),
    )
    yield from ([[1, 2, 3]], None, "abc", 3, np.array([[1, 2, 3]]), torch.full((1, 3), math.nan))
    edge = good.clone()
    edge[1, 2] = count
    yield edge


def encoder():
    return BERT(bert_config(d_model=8, n_heads=2, n_blocks=1), VOCAB, max_len=8).eval()


def recurrent():
    return EncoderDecoder(VOCAB, VOCAB, 4, 4, context=FinalState())


TOKENS = {
    "GPT": lambda t: gpt()(t),
    "GPT without positions": lambda t: GPT(CONFIG, VOCAB)(t),
    "BERT": lambda t: encoder()(t),
    "BERT segments": lambda t: encoder()(torch.ones(2, 3, dtype=torch.long), t),
    "PretrainingBERT": lambda t: PretrainingBERT(encoder())(t),
    "Translator source": lambda t: translator().encode(t),
    "Translator target": lambda t: translator().decode(t, torch.zeros(2, 4, 8)),
    "GRULanguageModel": lambda t: GRULanguageModel(VOCAB, 4, 4)(t),
    "MLPLanguageModel": lambda t: MLPLanguageModel(VOCAB, 2, 4, 4)(t),
    "EncoderDecoder": lambda t: recurrent().encode(t),
    "RecallModel": lambda t: RecallModel(CONFIG, VOCAB, VOCAB)(t, t),
    "language_loss": lambda t: language_loss(gpt(), t),
    "generate": lambda t: generate(gpt(), t, 2) and None,
    "beam_search": lambda t: beam_search(translator(), t, 3) and None,
    "greedy_search": lambda t: greedy_search(recurrent(), t, 3) and None,
    "padding_mask": lambda t: padding_mask(t, 0),
    "decode": CHARACTERS.decode,
}


@pytest.mark.parametrize("name", TOKENS)
@torch.no_grad()
def test_tokens(name):
    torch.manual_seed(0)
    for tokens in odd_tokens():
        if not isinstance(tokens, torch.Tensor) and name in ("BERT", "BERT segments", "PretrainingBERT"):
            continue  # PyTorch's own error says which argument must be a tensor
        if name == "decode" and isinstance(tokens, torch.Tensor) and (tokens.is_meta or tokens.is_sparse):
            continue
        judged(lambda tokens=tokens: TOKENS[name](tokens))


def test_losses_of_nothing():
    one, none = torch.tensor([[1, 2, 3]]), torch.full((1, 3), -100)
    pad = torch.zeros(1, 3, dtype=torch.long)
    pair = PretrainingBERT(encoder())
    for call in (
        lambda: pretraining_loss(pair, (one, one * 0, None, none, torch.tensor([0]))),
        lambda: classifier_loss(SequenceClassifier(encoder(), 2), (one, None, torch.tensor([-100]))),
        lambda: translator_loss(translator(), (one, pad)),
        lambda: encoder_decoder_loss(recurrent(), (one, pad)),
        lambda: recall_loss(RecallModel(CONFIG, VOCAB, VOCAB), (one, one, none, none)),
        lambda: language_loss(gpt(), one[:, :1]),
    ):
        assert "nothing to predict" in str(judged(call)[1])


def odd_tensors():
    yield from (X, X.double(), X.half(), X.long(), X.bool(), X.to(torch.complex64), X[0], X[0, 0], X[None])
    yield from (X[:, :0], X[:0], X[..., :0], X[..., :5], X[0, 0, 0], X.to("meta"), X.to_sparse())
    yield from (None, 3, "x", [[1.0]], np.zeros((2, 3, 8)), X[:1], X[:, :2])


@pytest.mark.parametrize("kind", [Attend, FusedAttend])
def test_attention(kind):
    layer, stack = (
        MultiHeadAttention(8, 2, backend=kind()).eval(),
        Transformer(CONFIG, make_backend=kind).eval(),
    )
    calls = {
        "layer": layer,
        "stack": stack,
        "queries": lambda x: attention(x, X, X)[0],
        "keys": lambda x: attention(X, x, x)[0],
        "all": lambda x: attention(x, x, x)[0],
        "values": lambda x: kind()(X, X, x),
        "rotary": Rotary(8),
        "mask": lambda x: layer(X, mask=x),
        "learned": LearnedPositions(9, 8),
        "logits": next_token_probabilities,
    }
    for x, name in itertools.product(odd_tensors(), calls):
        if not getattr(x, "is_meta", False):  # there are no numbers that could be right or wrong
            judged(lambda x=x, name=name: calls[name](x))


@given(st.data())
@few
def test_a_refused_call_leaves_the_cache_as_it_was(data):
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(d_model=8, n_heads=2, n_blocks=2, cross_attention=data.draw(st.booleans()))
    ).eval()
    cross = model.config.cross_attention
    cache, fresh = KVCache(2, context=cross), KVCache(2, context=cross)
    context = X if cross else None
    with torch.no_grad():
        x = torch.randn(2, 5, 8)
        read = data.draw(st.integers(0, 2))
        if read:
            for each in (cache, fresh):
                model(x[:, :read], context, causal_mask(read), cache=each)
        shape = data.draw(st.lists(st.integers(0, 5), max_size=4))
        mask = data.draw(st.sampled_from([torch.ones(shape, dtype=torch.bool), torch.ones(shape), None, "m"]))
        where = "context_mask" if cross and data.draw(st.booleans()) else "mask"
        inputs = data.draw(st.sampled_from([x[:, read:4], x[:1, read:4], x[:, read:4, :7], x.double(), None]))
        error = ValueError if inputs is None else None
        if error is None:
            _, error = judged(lambda: model(inputs, context, cache=cache, **{where: mask}))
        if error is not None:
            assert cache.length == read
            last = x[:, read:]
            rest = causal_mask(5 - read, past=read)
            assert torch.equal(
                model(last, context, rest, cache=cache), model(last, context, rest, cache=fresh)
            )


def test_one_layers_cache():
    with torch.no_grad():
        for shape, other in itertools.product(
            [(2, 2, 3, 4), (1, 2, 3, 4), (2, 2, 0, 4), (2, 3, 4)], repeat=2
        ):
            cache = LayerCache()
            judged(lambda: cache.extend(torch.ones(2, 2, 1, 4), torch.ones(2, 2, 1, 4)))  # noqa: B023
            _, error = judged(lambda: cache.extend(torch.ones(shape), torch.ones(other)))  # noqa: B023
            assert cache.length == (1 if error else 1 + shape[2])
        for rows in (
            torch.tensor([5]),
            torch.tensor([[0]]),
            torch.tensor([0.5]),
            [0],
            None,
            torch.tensor([True]),
        ):
            judged(lambda rows=rows: cache.select(rows))


def test_a_rescaling_that_changes_is_followed():
    class Scaling:
        factor = 1.0

        def __call__(self, w):
            return w / self.factor

    scaling = Scaling()
    rotary = Rotary(8, rescale=scaling)
    before = rotary(X)
    assert torch.equal(before, Rotary(8)(X))
    scaling.factor = 4.0
    assert torch.equal(rotary(X), Rotary(8, rescale=lambda w: w / 4)(X))
    for bad in (lambda w: w[:1], lambda w: w / 0, lambda w: None):
        assert judged(lambda bad=bad: Rotary(8, rescale=bad)(X))[1] is not None


def test_models_that_are_broken():
    for value in (math.nan, math.inf):
        model, other = gpt(), translator()
        for broken in (model, other):
            nn.init.constant_(
                broken.transformer.blocks[0].mlp.W_out.bias if broken is model else broken.bias, value
            )
        source = torch.tensor([[3, 4]])
        for call in (
            *(lambda: generate(model, [1], 3), lambda: beam_search(other, source, 3)),  # noqa: B023
            *(lambda: greedy_search(other, source, 3), lambda: beam_search(other, source, 3, num_beams=1)),  # noqa: B023
        ):
            assert judged(call)[1] is not None
    frozen = gpt().requires_grad_(False)
    batches = [torch.tensor([[1, 2, 3]])]
    for call in (
        lambda: fit(frozen, language_loss, batches),
        lambda: fit(gpt(), lambda m, b: torch.tensor(1.0), batches),
        lambda: fit(gpt(), lambda m, b: 1.0, batches),
        lambda: fit(gpt(), language_loss, 3, steps=2),
        lambda: fit(gpt(), language_loss, [], steps=2),
        lambda: fit(gpt(), language_loss, [torch.tensor([[1, 2, 30]])]),
        lambda: fit(gpt(), language_loss, batches, checkpoint=__file__),
        lambda: fit(gpt(), language_loss, batches, checkpoint=Path(__file__) / "below"),
    ):
        assert judged(call)[1] is not None


# Checkpoints of training


def run(folder=None, stop=None, **options):
    seed_everything(3)
    model = GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, dropout=0.2), VOCAB)
    first, count = [p.detach().clone() for p in model.parameters()], itertools.count()

    def loss(model, batch):
        if next(count) == stop:
            raise KeyboardInterrupt
        return language_loss(model, batch)

    data = [(torch.arange(12).view(2, 6) + i) % VOCAB for i in range(4)]
    options = {"steps": 9, "warmup": 2, "checkpoint": folder, "checkpoint_every": 3} | options
    try:
        history = fit(model, loss, data, **options)
    except OURS:
        assert all(torch.equal(p, q) for p, q in zip(first, model.parameters(), strict=True)), "overwritten"
        raise
    return [p.detach().clone() for p in model.parameters()], history.loss


@pytest.fixture(scope="module")
def stopped():
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(KeyboardInterrupt):
            run(folder, stop=7)
        whole = run()
        path = Path(folder) / FILE
        content = path.read_bytes()
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        yield path, content, load_file(path), metadata, whole


def resumed(stopped):
    """The damaged run is refused, or ends as the whole one."""
    path, _, _, _, (weights, losses) = stopped
    damaged = path.read_bytes()
    result, error = judged(lambda: run(path.parent))
    if error is None:
        assert result[1] == losses
        assert all(torch.equal(p, q) for p, q in zip(result[0], weights, strict=True))
    else:
        assert path.read_bytes() == damaged
    return error


@given(st.integers(0, 10**9), st.integers(0, 7), st.sampled_from(["flip", "zero", "cut", "double"]))
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
def test_damaged_checkpoints(stopped, place, bit, kind):
    path, content = stopped[:2]
    at, damaged = place % len(content), bytearray(content)
    if kind == "flip":
        damaged[at] ^= 1 << bit
    elif kind == "zero":
        damaged[at : at + 16] = bytes(len(damaged[at : at + 16]))
    elif kind == "cut":
        del damaged[at:]
    else:
        damaged[at:at] = damaged[at : at + 8]
    path.write_bytes(damaged)
    resumed(stopped)


@pytest.mark.parametrize("number", range(0, 60, 4))
def test_checkpoints_without_a_tensor(stopped, number):
    path, _, tensors, metadata, _ = stopped
    name = sorted(tensors)[number % len(tensors)]
    rest = {k: v for k, v in tensors.items() if k != name}
    for changed in (rest, rest | {f"{name}x": tensors[name]}, tensors | {name: tensors[name] + 1}):
        save_file(changed, path, metadata)
        assert resumed(stopped) is not None


HEADERS = {
    "format": [0, 2, 10**9, None, "2", 2.0, True],
    "step": [10**9, -1, 2.5, "6", None, 7, 0, True, 10**40],
    "seconds": [math.nan, -1, "x", None, math.inf],
    "settings": [None, [], {}, {"steps": 10**9}],
    "notes": [None, {}, {"passes": 10**9, "position": 1}, {"passes": 1.5, "position": 2}, {"passes": "2"}],
    "optimizers": [None, [], [None], [{}], 3],
}


@pytest.mark.parametrize("field", HEADERS)
def test_headers(stopped, field):
    """With a checksum that is right, as another program could write it."""
    from tformer_lib.training.checkpoints import _checksum

    path, _, tensors, metadata, _ = stopped
    for value in HEADERS[field]:
        text = json.dumps(json.loads(metadata["checkpoint"]) | {field: value})
        save_file(tensors, path, {"checkpoint": text, "sha256": _checksum(text, tensors)})
        assert resumed(stopped) is not None, value
    for text in ("[" * 100_000, "", "{", "3", "[]", "null"):
        save_file(tensors, path, {"checkpoint": text})
        assert resumed(stopped) is not None


def test_broken_generators(stopped):
    from tformer_lib.training.checkpoints import _checksum

    path, _, tensors, metadata, _ = stopped
    for name in [n for n in tensors if "random/" in n]:
        value = tensors[name]
        for other in (
            value[:-1] if value.ndim else value[None],
            value.new_full(value.shape, 200),
            value.bool(),
        ):
            if "gauss" in name and other.shape == value.shape:
                continue  # any number will do
            changed = tensors | {name: other}
            text = metadata["checkpoint"]
            save_file(changed, path, {"checkpoint": text, "sha256": _checksum(text, changed)})
            if name.endswith("/torch") and other.shape == value.shape and other.dtype == value.dtype:
                continue
            judged(lambda: load_checkpoint(path.parent, run_model()))


def run_model():
    return GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, dropout=0.2), VOCAB)


def test_settings_of_numpy_are_saved(tmp_path):
    options = {"lr": np.float32(1e-3), "warmup": np.int64(2), "clip": np.float64(1), "steps": np.int64(9)}
    weights, _ = run(tmp_path, **options)
    again, _ = run(tmp_path, **options)
    assert all(torch.equal(p, q) for p, q in zip(weights, again, strict=True))
    assert save_checkpoint(tmp_path / "other", nn.Linear(2, 2)).exists()


# Pretrained weights

SETTINGS = {
    "gpt2": {"n_embd": 8, "n_head": 2, "n_layer": 2, "vocab_size": 7, "n_positions": 5},
    "llama": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 12,
        "vocab_size": 7,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    },
    "bert": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 12,
        "vocab_size": 7,
        "max_position_embeddings": 6,
    },
    "vit": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 12,
        "image_size": 8,
        "patch_size": 4,
    },
}
FAMILIES = {"gpt2": gpt2, "llama": llama, "bert": bert, "vit": vit}


def tensors_of(kind):
    torch.manual_seed(0)
    names = {"gpt2": ["transformer."], "llama": ["model."], "bert": [], "vit": []}[kind]
    model = FAMILIES[kind].build(Settings("", SETTINGS[kind]), None, names)
    return {s.name: 0.1 * torch.randn(s.shape) for s in FAMILIES[kind].sources(model, names)}


def put(folder, kind, change=None, tensors=None):
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **SETTINGS[kind], **(change or {})}))
    save_file(tensors_of(kind) if tensors is None else tensors, folder / "model.safetensors")


def loaded(folder):
    model, error = judged(lambda: load(folder))
    if model is not None:
        assert all(p.isfinite().all() for p in model.parameters())
    return error


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_of_checkpoints(tmp_path, kind):
    put(tmp_path, kind)
    assert loaded(tmp_path) is None
    odd_ones = [10**9, 2**63, 10**40, -1, 0, 2.5, math.nan, math.inf, "8", None, [], {}, True, "x" * 10_000]
    for name, value in itertools.product(SETTINGS[kind], odd_ones):
        put(tmp_path, kind, {name: value})
        loaded(tmp_path)
    for name in ("layer_norm_epsilon", "rms_norm_eps", "layer_norm_eps", "rope_theta", "hidden_act"):
        for value in odd_ones:
            put(tmp_path, kind, {name: value})
            loaded(tmp_path)
    for value in (math.nan, math.inf, -math.inf):
        name = sorted(tensors_of(kind))[0]
        tensors = tensors_of(kind)
        tensors[name].view(-1)[0] = value
        put(tmp_path, kind, tensors=tensors)
        assert "NaN" in str(loaded(tmp_path))
    for text in (
        "[" * 100_000,
        '{"a":' * 100_000,
        "",
        "{",
        "[]",
        "nul",
        "\ud800".encode("utf8", "surrogatepass"),
    ):
        (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        assert loaded(tmp_path) is not None


@given(
    st.sampled_from(sorted(SETTINGS)), st.booleans(), st.integers(0, 10**9), st.integers(0, 7), st.booleans()
)
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_damaged_weights(kind, in_config, place, bit, cut):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put(folder, kind)
        path = folder / ("config.json" if in_config else "model.safetensors")
        content = bytearray(path.read_bytes())
        at = place % (len(content) if in_config or place % 2 else min(len(content), 2000))
        if cut:
            del content[at:]
        else:
            content[at] ^= 1 << bit
        path.write_bytes(content)
        loaded(folder)


def test_shards(tmp_path):
    tensors = tensors_of("gpt2")
    put(tmp_path, "gpt2")
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "folder").mkdir()
    odd_names = [
        "..",
        ".",
        "",
        "/etc/passwd",
        "../model.safetensors",
        "a\0b",
        "x" * 5_000,
        "folder",
        "nowhere",
        "\ud800",
    ]
    for shard in [*odd_names, 3, None, [], {}]:
        index = json.dumps({"weight_map": dict.fromkeys(tensors, shard)})
        (tmp_path / "model.safetensors.index.json").write_text(index)
        assert loaded(tmp_path) is not None
    for text in (
        "[" * 100_000,
        "{}",
        "[]",
        '{"weight_map": 3}',
        '{"weight_map": {}}',
        '{"weight_map": {"a": 1}}',
    ):
        (tmp_path / "model.safetensors.index.json").write_text(text)
        assert loaded(tmp_path) is not None


def gguf_file(path):
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    for name, value in {"block_count": 1, "embedding_length": 8, "feed_forward_length": 12}.items():
        writer.add_uint32(f"llama.{name}", value)
    writer.add_uint32("llama.attention.head_count", 2)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_array("tokenizer.ggml.tokens", list("abcdefg"))
    writer.add_array("tokenizer.ggml.token_type", [1] * 7)
    d, f = 8, 12
    shapes = {f"blk.0.attn_{n}.weight": (d, d) for n in ("q", "k", "v", "output")}
    shapes |= {
        "blk.0.ffn_gate.weight": (f, d),
        "blk.0.ffn_up.weight": (f, d),
        "blk.0.ffn_down.weight": (d, f),
    }
    shapes |= {"token_embd.weight": (7, d), "output_norm.weight": (d,)}
    shapes |= {"blk.0.attn_norm.weight": (d,), "blk.0.ffn_norm.weight": (d,)}
    for name, shape in shapes.items():
        writer.add_tensor(name, np.full(shape, 0.1, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def gguf_bytes(tmp_path_factory):
    pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("gguf") / "a.gguf"
    gguf_file(path)
    return path, path.read_bytes()


@given(st.integers(0, 10**9), st.integers(0, 255), st.sampled_from(["byte", "cut", "long"]))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore")
def test_damaged_gguf(gguf_bytes, place, byte, kind):
    path, content = gguf_bytes
    damaged = bytearray(content)
    at = place % min(len(content), 1500)
    if kind == "cut":
        del damaged[at:]
    elif kind == "byte":
        damaged[at] = byte
    else:
        damaged[at : at + 8] = (2**62 + byte).to_bytes(8, "little")
    path.write_bytes(damaged)
    model, _ = judged(lambda: load_gguf(path))
    if model is not None:
        assert all(p.isfinite().all() for p in model.parameters())
    path.write_bytes(content)
    assert load_gguf(path) is not None


@pytest.mark.parametrize("kind", [CharTokenizer, BPETokenizer, WordPieceTokenizer])
def test_damaged_tokenizers(tmp_path, kind):
    whole = {
        CharTokenizer: CHARACTERS,
        BPETokenizer: BPETokenizer.train("ab ab ab", 258),
        WordPieceTokenizer: PIECES,
    }
    path, dice = tmp_path / "t.json", random.Random(0)
    whole[kind].save(path)
    content = path.read_bytes()
    assert kind.load(path) == whole[kind]
    for _ in range(60):
        damaged = bytearray(content)
        damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged[: dice.choice([len(content), dice.randrange(len(content))])])
        judged(lambda: kind.load(path))
    for text in ("[" * 100_000, "{}", "[]", "", "3"):
        path.write_text(text)
        assert judged(lambda: kind.load(path))[1] is not None


# The checker of exercises


class Unprintable(Exception):  # noqa: N818
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Odd:
    def __repr__(self):
        raise RuntimeError("no words")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None
    __float__ = __repr__


def raising(error):
    def candidate(*args):
        raise error

    return candidate


def spoiling(*args):
    for arg in args:
        if isinstance(arg, torch.Tensor):
            arg.zero_() if arg.is_floating_point() else arg.fill_(0)
    torch.rand(3)
    random.random()
    np.random.rand()  # noqa: NPY002


LOOPED = []
LOOPED.append(LOOPED)
ERRORS = [
    Unprintable(),
    SystemExit(3),
    GeneratorExit(),
    RecursionError(),
    MemoryError(),
    StopIteration(),
    KeyError(3),
]
CANDIDATES = {
    **{type(error).__name__: raising(error) for error in ERRORS},
    "exit": lambda *args: sys.exit("bye"),
    "recursion": lambda *args: (lambda f: f(f))(lambda f: f(f)),
    "nothing": lambda: None,
    "spoiling": spoiling,
    **{
        f"answer {i}": lambda *args, answer=answer: answer
        for i, answer in enumerate(
            [
                *(None, float, int, Odd(), Odd, "x", b"x", 1j, 10**400, math.nan, True, [], {}, LOOPED, len),
                *(np.array([1, "a"], dtype=object), np.zeros(3), np.complex64(1j), np.datetime64("NaT")),
                *(torch.tensor(1j), torch.zeros(4, 3).to_sparse(), torch.zeros(4, 3, device="meta")),
                *(torch.zeros(0), torch.tensor(math.nan), torch.zeros(4, 3, requires_grad=True), (Odd(),)),
                *(
                    torch.zeros(4, 3, dtype=torch.bool),
                    torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
                ),
            ]
        )
    },
}


@pytest.mark.parametrize("name", exercise_names())
def test_candidates(name):
    """Each is a verdict in words, and the dice lie as they lay."""
    torch.manual_seed(1)
    dice = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    picked = random.Random(name).sample(sorted(CANDIDATES), 6)
    for each in picked:
        verdict, error = judged(lambda each=each: check(name, CANDIDATES[each]))
        assert error is None
        assert not verdict, each
        assert name in verdict.message
        assert repr(verdict)
    assert torch.equal(torch.get_rng_state(), dice[0])
    assert random.getstate() == dice[1]
    assert np.random.get_state()[1].tolist() == dice[2]  # noqa: NPY002


@pytest.mark.parametrize("each", CANDIDATES)
def test_every_candidate(each):
    for name in ("attention.softmax_columns", "multi_head.evaluate", "gpt.perplexity"):
        if name in exercise_names():
            verdict, error = judged(lambda name=name: check(name, CANDIDATES[each]))
            assert error is None
            assert not verdict


def test_a_complex_answer_is_not_a_real_one():
    scores = "attention.softmax_columns"
    assert check(scores, lambda s: s.softmax(0))
    assert not check(scores, lambda s: s.softmax(0).to(torch.complex64))


def forever(*args):
    count = 0
    while True:
        count += 1


def stubborn(*args):
    while True:
        try:
            sum(range(100))
        except ValueError:
            continue


def asleep(*args):
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("candidate", [forever, stubborn, asleep])
def test_candidates_that_do_not_return(candidate):
    verdict, _ = judged(lambda: check("attention.softmax_columns", candidate, seconds=0.2))
    assert not verdict
    assert "did not return within 0.2 seconds" in verdict.message
    for _ in range(1000):  # no exception comes late
        sum(range(100))


def test_a_limit_that_is_just_met_or_missed():
    """The time is up at about the moment of the return, and nothing comes later."""
    for _ in range(20):
        judged(lambda: check("attention.causal_columns", lambda n: time.sleep(0.001), seconds=0.001))
        sum(range(1000))


def test_an_interrupt_goes_through():
    with pytest.raises(KeyboardInterrupt):
        check("attention.softmax_columns", raising(KeyboardInterrupt()))


@pytest.mark.parametrize("text", [None, b"ab", 7, ["a"]])
@pytest.mark.parametrize("tokenizer", [CHARACTERS, PIECES, BYTES])
def test_what_is_no_text_is_named(tokenizer, text):
    with pytest.raises(TypeError, match="a text is a string, got"):
        tokenizer.encode(text)


@pytest.fixture(scope="session", autouse=True)
def said():
    yield
    print(f"\ncases: {CASES}, processor seconds: {time.process_time():.0f}")
