"""generate: what a loop written out would write, with and without a cache, alone and among others."""

import math
import random

import pytest
import torch
from torch import nn

from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.generation import generate
from tformer_lib.generation.reading import Reader, window_start
from tformer_lib.models.gpt import GPT

VOCAB = 13  # of the models that `make` builds


def prompts(rng, count, longest):
    return [[rng.randrange(VOCAB) for _ in range(rng.randint(1, longest))] for _ in range(count)]


def begin_of_window(n, context):
    """The rule of the docstring, by search."""
    start = 0
    while n - start > context:
        start += math.ceil(context / 2)
    return start


def by_hand(model, prompt, new, context=None, stop=()):
    """Greedy, one text, everything read again for every token."""
    text, context = list(prompt), context or model.max_len or 10**9
    for _ in range(new):
        window = text[begin_of_window(len(text), context) :]
        text.append(model(torch.tensor([window]))[0, -1].argmax().item())
        if text[-1] in stop:
            break
    return text


@torch.no_grad()
def test_greedy_is_the_loop_by_hand(model):
    for seed in range(3):
        (prompt,) = prompts(random.Random(seed), 1, 12)
        assert generate(model, prompt, 15, temperature=0) == by_hand(model, prompt, 15)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("context", [None, 9, 16])
def test_cached_is_uncached(model, context):
    """Over 11 kinds of model x 3 windows x 2 batches x 4 prompts: 264 prompts, greedy and sampled."""
    rng = random.Random(repr(context))
    for seed in range(2):
        batch, new = prompts(rng, 4, 20), rng.randint(5, 24)
        for choices in ({"temperature": 0}, {"temperature": 1.2, "top_k": 9}):
            texts = [
                generate(
                    model,
                    batch,
                    new,
                    context=context,
                    use_cache=use_cache,
                    generator=torch.Generator().manual_seed(seed),
                    stop=seed or None,
                    **choices,
                )
                for use_cache in (True, False)
            ]
            assert texts[0] == texts[1]
            assert [text[: len(p)] for text, p in zip(texts[0], batch, strict=True)] == batch


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("context", [None, 7])
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_row_is_what_it_would_be_alone(model, context, use_cache):
    """Prompts longer than the window among them, and prompts that others have ended before."""
    batch = [*prompts(random.Random(3), 3, 6), [1] * 17, [2, 3] * 6]
    choices = {"temperature": 0, "context": context, "stop": [4, 8], "use_cache": use_cache}
    together = generate(model, batch, 5, **choices)
    assert together == [generate(model, p, 5, **choices) for p in batch]
    with torch.no_grad():
        assert together == [by_hand(model, p, 5, context, stop=(4, 8)) for p in batch]


@pytest.mark.parametrize("context", [1, 2, 3, 7, 8])
def test_where_the_window_begins(context):
    for n in range(1, 60):
        start = window_start(n, context)
        assert start == begin_of_window(n, context)
        assert start % math.ceil(context / 2) == 0
        assert n - start <= context
        assert n <= context or n - start > context - math.ceil(context / 2)
    assert window_start(10**6, None) == 0


@torch.no_grad()
def test_half_a_window_is_read_at_a_time(make):
    """With a cache a token is read once, and again only where the window of eight has moved past four."""
    model, text, read = make("rotary, untied"), [n % VOCAB for n in range(20)], []
    model.register_forward_pre_hook(lambda _, args: read.append((args[0][0].tolist(), args[1].length)))
    reader = Reader(model, context=8)
    for n in range(5, 15):
        reader.read([text[:n]])
    assert read == [
        (text[:5], 0), ([5], 5), ([6], 6), ([7], 7),  # up to a full window
        (text[4:9], 0), ([9], 5), ([10], 6), ([11], 7),  # 9 tokens are there: it begins at place 4
        (text[8:13], 0), ([0], 5),  # 13 tokens: at place 8
    ]  # fmt: skip


def test_known_tokens_are_read_at_once(make):
    """When all that is left are long prompts, nobody steps through them."""
    model, lengths = make("rotary, untied"), []
    model.register_forward_hook(lambda _, args, __: lengths.append(tuple(args[0].shape)))
    generate(model, [[1], [2] * 9, [3] * 11], 2, temperature=0)
    # (3, 1) twice, then the first row is done; 9 tokens stand in both others, of which 2 are read
    assert lengths == [(3, 1), (3, 1), (2, 7), (2, 1), (1, 1), (1, 1)]


def test_one_prompt_or_several(make):
    model = make("learned")
    one = generate(model, [1, 2, 3], 4, temperature=0)
    assert len(one) == 7
    assert all(type(token) is int for token in one)
    for same in ((1, 2, 3), torch.tensor([1, 2, 3]), [torch.tensor(1), 2, 3]):
        assert generate(model, same, 4, temperature=0) == one
    several = generate(model, [[1, 2, 3], [4, 5, 6]], 4, temperature=0)
    assert several[0] == one
    for same in (torch.tensor([[1, 2, 3], [4, 5, 6]]), (torch.tensor([1, 2, 3]), [4, 5, 6])):
        assert generate(model, same, 4, temperature=0) == several
    assert generate(model, [[1, 2, 3]], 4, temperature=0) == [one]


def test_nothing_to_write(make):
    model, batch = make("learned"), [[1, 2], [3]]
    assert generate(model, batch, 0) == batch
    assert generate(model, [1, 2], 0) == [1, 2]
    prompt = [1, 2]
    generate(model, prompt, 3)
    assert prompt == [1, 2]


def test_a_row_ends_with_the_first_stop_it_writes(make):
    model = make("rotary, untied")
    free = generate(model, [1, 2], 30, temperature=0)
    stop = free[10]
    end = free.index(stop, 2) + 1
    for stops in (stop, [stop], {stop}, torch.tensor([stop]).tolist()):
        assert generate(model, [1, 2], 30, temperature=0, stop=stops) == free[:end]
    first = min(free.index(token, 2) for token in set(free[2:15]))
    assert generate(model, [1, 2], 30, temperature=0, stop=set(free[2:15])) == free[: first + 1]
    assert generate(model, [stop, 1, 2], 5, temperature=0, stop=stop)[0] == stop  # a prompt may hold it
    assert generate(model, [1, stop], 5, temperature=0, stop=stop) != [1, stop]


def test_a_seed_repeats_a_text_and_another_does_not(make):
    model = make("modern")

    def text(seed):
        return generate(model, [[1, 2], [1, 2]], 20, generator=torch.Generator().manual_seed(seed))

    assert text(0) == text(0) != text(1)
    assert text(0)[0] != text(0)[1]
    torch.manual_seed(5)
    first = generate(model, [1], 20)
    torch.manual_seed(5)
    assert generate(model, [1], 20) == first


def test_samples_follow_the_model(make):
    """The second token of 4,000 texts, against the probabilities; chi-squared below its 1e-4 quantile."""
    model = make("none", vocab=6)
    with torch.no_grad():
        expected = 4000 * model(torch.tensor([[3]]))[0, -1].softmax(-1)
    texts = generate(model, [[3]] * 4000, 1, generator=torch.Generator().manual_seed(0))
    counts = torch.tensor(texts)[:, 1].bincount(minlength=6)
    possible = expected > 5
    assert ((counts - expected).square() / expected)[possible].sum() < 25.74


class Tripwire(GPT):
    """Fails at the third call."""

    calls = 0

    def forward(self, tokens, cache=None):
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError("the third call")
        return super().forward(tokens, cache)


def test_every_module_is_back_in_its_mode(make):
    model = make("learned, fused, dropout")
    expected = generate(model, [1, 2], 10, temperature=0)
    model.train()
    model.transformer.blocks[1].eval()
    modes = [module.training for module in model.modules()]
    assert generate(model, [1, 2], 10, temperature=0) == expected  # no dropout meanwhile
    assert [module.training for module in model.modules()] == modes
    model = Tripwire(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, dropout=0.1), VOCAB).train()
    with pytest.raises(RuntimeError, match="the third call"):
        generate(model, [1], 5)
    assert all(module.training for module in model.modules())


def test_no_gradient_is_recorded_and_training_goes_on(make):
    model = make("rotary, untied")
    logits = []
    handle = model.register_forward_hook(lambda _, __, out: logits.append(out))
    with torch.inference_mode():
        generate(model, [1, 2, 3], 5)
    generate(model, [1, 2, 3], 5)
    handle.remove()
    assert not any(out.requires_grad for out in logits)
    model(torch.tensor([[1, 2, 3, 4]])).square().sum().backward()  # the tables of the turns serve both
    assert model.transformer.blocks[0].self_attention.W_q.weight.grad.abs().max() > 0


def learned(length):
    return GPT(
        TransformerConfig(d_model=8, n_heads=2, n_blocks=1), VOCAB, positions=LearnedPositions(length, 8)
    )


@pytest.mark.parametrize(
    ("prompt", "choices", "words"),
    [
        ([], {}, "the prompt is empty"),
        ([[1, 2], []], {}, "prompt 1 is empty"),
        (torch.zeros(0, dtype=torch.long), {}, "empty"),
        (torch.zeros(0, 3, dtype=torch.long), {}, "empty"),
        ([1, 13, 2], {}, "token 13 at place 1 of the prompt .* 13"),
        ([[1], [2, -1]], {}, "token -1 at place 1 of prompt 1 .* 13"),
        ([1], {"max_new_tokens": -1}, "max_new_tokens .* -1"),
        ([1], {"temperature": -1}, "temperature .* -1"),
        ([1], {"temperature": math.nan}, "temperature .* nan"),
        ([1], {"top_k": 0}, "top_k .* 0"),
        ([1], {"top_p": 0}, "top_p .* 0"),
        ([1], {"top_p": 1.5, "temperature": 0}, "top_p .* 1.5"),
        ([1], {"top_p": 1.5, "max_new_tokens": 0}, "top_p .* 1.5"),
        ([1], {"stop": 13}, "stop token 13 .* 13"),
        ([1], {"stop": [3, -2]}, "stop token -2 .* 13"),
        ([1], {"context": 0}, "context .* 0"),
        ([1], {"context": 9}, "context=9 .* max_len=8"),
    ],
)
def test_what_is_refused(prompt, choices, words):
    choices = {"max_new_tokens": 3} | choices
    with pytest.raises(ValueError, match=words):
        generate(learned(8), prompt, **choices)


@pytest.mark.parametrize("prompt", [[1.0, 2.0], torch.tensor([1.0]), [[1], [0.5]]])
def test_tokens_are_whole_numbers(prompt):
    with pytest.raises(TypeError, match="float"):
        generate(learned(8), prompt, 3)


def test_a_generator_of_another_device():
    with pytest.raises(ValueError, match=r"generator is on cpu.* model is on meta"):
        generate(learned(8).to("meta"), [1], 3, generator=torch.Generator())


def test_logits_that_are_no_numbers_are_said_so():
    model = learned(8)
    nn.init.constant_(model.embed.weight, math.nan)
    for temperature in (0, 1.0):
        with pytest.raises(ValueError, match="NaN or infinite"):
            generate(model, [1], 3, temperature=temperature)
