"""The public functions under odd numbers, tokens and tensors."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.fuzz.judge import CHARACTERS, ODD, PIECES, VOCAB, few, judged
from tformer_book import check
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
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.training import fit, seed_everything
from tformer_lib.training.fine_tuning import fine_tune

CONFIG = TransformerConfig(d_model=8, n_heads=2, n_blocks=1)
X = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))


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


@pytest.mark.parametrize("text", [None, b"ab", 7, ["a"]])
@pytest.mark.parametrize("tokenizer", [CHARACTERS, PIECES, BYTES])
def test_what_is_no_text_is_named(tokenizer, text):
    with pytest.raises(TypeError, match="a text is a string, got"):
        tokenizer.encode(text)
