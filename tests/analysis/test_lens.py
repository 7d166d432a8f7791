"""A lens reads the last stream as the model does, and a tuned one finds a map that is known."""

import pytest
import torch

from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis.lens import AffineLens, read_out, stream_after_blocks, tuned_lens

VOCAB, N = 11, 6


def model(**options):
    torch.manual_seed(0)
    choices = {"d_model": 12, "n_heads": 2, "n_blocks": 3, "dropout": 0.2} | options
    made = GPT(TransformerConfig(**choices), VOCAB)
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return made


def tokens(batch=4):
    return torch.randint(VOCAB, (batch, N), generator=torch.Generator().manual_seed(1))


def test_streams_begin_with_the_embedding_and_end_in_the_logits():
    gpt = model().train()
    x = stream_after_blocks(gpt, tokens())
    assert x.shape == (4, 4, N, 12)
    assert gpt.training
    gpt.eval()
    torch.testing.assert_close(x[0], gpt.embed(tokens()))
    torch.testing.assert_close(read_out(gpt, x[-1]), gpt(tokens()))


def test_a_stream_after_a_block_is_that_of_a_model_without_the_others():
    gpt = model().eval()
    x = stream_after_blocks(gpt, tokens())
    shorter = gpt
    shorter.transformer.blocks = gpt.transformer.blocks[:2]
    torch.testing.assert_close(read_out(gpt, x[2]), shorter(tokens()))


def test_a_head_of_its_own_is_used():
    torch.manual_seed(0)
    gpt = GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1), VOCAB, tied=False).eval()
    torch.testing.assert_close(read_out(gpt, stream_after_blocks(gpt, tokens())[-1]), gpt(tokens()))


def test_before_training_it_is_the_logit_lens():
    gpt = model(norm="rms", norm_eps=1e-9, bias=False).eval()
    x = torch.randn(20, 12)
    lens = AffineLens(float(x.square().mean().sqrt()), 12)
    torch.testing.assert_close(read_out(gpt, lens(x)), read_out(gpt, x), atol=1e-5, rtol=1e-5)


def test_a_turned_stream_is_turned_back():
    gpt = model(norm="rms", bias=False, dropout=0.0).eval()
    x = torch.randn(3000, 12)
    logits = read_out(gpt, x).detach()
    turned = 7 * x @ torch.linalg.qr(torch.randn(12, 12))[0] + 3

    def divergence(z):
        return torch.nn.functional.kl_div(z.log_softmax(-1), logits.softmax(-1), reduction="batchmean").item()

    before = divergence(read_out(gpt, turned))
    weights = [p.clone() for p in gpt.parameters()]
    lens = tuned_lens(gpt, turned, logits, steps=500, lr=1e-2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert divergence(read_out(gpt, lens(turned))) < 0.02 * before
    for old, new in zip(weights, gpt.parameters(), strict=True):
        assert torch.equal(old, new)
        assert new.grad is None


def test_the_generator_fixes_the_lens():
    gpt = model().eval()
    x = torch.randn(50, 12)
    logits = read_out(gpt, x)
    a, b = (
        tuned_lens(gpt, x, logits, steps=3, batch=5, generator=torch.Generator().manual_seed(4))
        for _ in range(2)
    )
    torch.testing.assert_close(a.linear.weight, b.linear.weight, rtol=0, atol=0)


def test_rows_that_do_not_belong_together_are_refused():
    gpt = model()
    with pytest.raises(ValueError, match="got 4 and 3"):
        tuned_lens(gpt, torch.randn(4, 12), torch.randn(3, VOCAB))
    with pytest.raises(ValueError, match="steps"):
        tuned_lens(gpt, torch.randn(4, 12), torch.randn(4, VOCAB), steps=0)
    with pytest.raises(ValueError, match="size"):
        AffineLens(0.0, 3)
