"""The translator: equal to PyTorch's and Marian's, blind to padding and to the future, and its loss."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tests.torch_weights import copy_linear, copy_stack, jitter
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.training import count_parameters, fit

VOCAB, D, PAD, BOS, EOS = 11, 12, 0, 1, 2
POST = TransformerConfig(
    d_model=D, n_heads=3, n_blocks=2, d_hidden=20, norm_placement="post", activation="relu"
)
PRE = TransformerConfig(d_model=D, n_heads=3, n_blocks=2, d_hidden=20)


def build(config=PRE, vocab=VOCAB, seed=0, **parts):
    torch.manual_seed(seed)
    return jitter(Translator(config, vocab, **parts)).eval()


def tokens(*shape, seed=1, vocab=VOCAB):
    return torch.randint(3, vocab, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize("config", [PRE, POST], ids=["pre", "post"])
@pytest.mark.parametrize("separate", [False, True])
def test_equals_pytorch(config, separate):
    ours = build(config, target_vocab_size=9 if separate else None, decoder_blocks=3).double()
    theirs = nn.Transformer(
        D, 3, 2, 3, 20, 0.0, config.activation, batch_first=True, norm_first=config.norm_placement == "pre"
    )
    if config.norm_placement == "post":  # theirs ends in a norm in any case
        theirs.encoder.norm = theirs.decoder.norm = None
    theirs.double().eval()
    copy_stack(ours.encoder, theirs.encoder)
    copy_stack(ours.decoder, theirs.decoder)
    source, target = tokens(2, 6), tokens(2, 5, vocab=9)
    source[1, 4:] = PAD
    table = torch.zeros(1, 6, D, dtype=torch.float64)
    table = ours.positions(table)
    x = D**0.5 * ours.embed(source) + table
    y = D**0.5 * ours.embed_target(target) + table[:, :5]
    h = theirs(
        x,
        y,
        tgt_mask=~torch.ones(5, 5, dtype=torch.bool).tril(),
        src_key_padding_mask=source == PAD,
        memory_key_padding_mask=source == PAD,
    )
    assert_close(ours(source, target), h @ ours.embed_target.weight.T + ours.bias, rtol=0, atol=1e-10)


def marian_like(layers, heads, seed):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.MarianConfig(
        vocab_size=VOCAB,
        d_model=16,
        encoder_layers=layers,
        decoder_layers=layers + 1,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        activation_function="relu",
        max_position_embeddings=32,
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        dropout=0.0,
    )
    theirs = transformers.MarianMTModel(config)
    with torch.no_grad():
        for name, p in theirs.named_parameters():
            if "embed_positions" not in name:
                p.copy_(0.5 * torch.randn_like(p))
        theirs.final_logits_bias.copy_(torch.randn_like(theirs.final_logits_bias))
    return theirs.eval()


def from_marian(theirs):
    c = theirs.config
    config = TransformerConfig(
        d_model=c.d_model,
        n_heads=c.encoder_attention_heads,
        n_blocks=c.encoder_layers,
        d_hidden=c.encoder_ffn_dim,
        norm_placement="post",
        activation="relu",
    )
    positions = LearnedPositions(c.max_position_embeddings, c.d_model)
    ours = Translator(config, c.vocab_size, decoder_blocks=c.decoder_layers, positions=positions)
    with torch.no_grad():
        positions.table.copy_(theirs.model.encoder.embed_positions.weight)
        ours.embed.weight.copy_(theirs.model.shared.weight)
        ours.bias.copy_(theirs.final_logits_bias[0])
        for stack, its in ((ours.encoder, theirs.model.encoder), (ours.decoder, theirs.model.decoder)):
            for block, layer in zip(stack.blocks, its.layers, strict=True):
                pairs = [
                    (block.self_attention, layer.self_attn),
                    (block.self_attention_norm, layer.self_attn_layer_norm),
                ]
                if its is theirs.model.decoder:
                    pairs += [(block.cross_attention, layer.encoder_attn)]
                    pairs += [(block.cross_attention_norm, layer.encoder_attn_layer_norm)]
                pairs += [(block.mlp.W_in, layer.fc1), (block.mlp.W_out, layer.fc2)]
                pairs += [(block.mlp_norm, layer.final_layer_norm)]
                for mine, part in pairs:
                    if hasattr(mine, "W_q"):
                        for name in "qkv":
                            copy_linear(getattr(part, f"{name}_proj"), getattr(mine, f"W_{name}"))
                        copy_linear(part.out_proj, mine.W_o)
                    else:
                        copy_linear(part, mine)
    return ours.eval()


@pytest.mark.parametrize(("layers", "heads", "seed"), [(1, 2, 0), (2, 4, 1), (3, 1, 2)])
def test_equals_marian(layers, heads, seed):
    theirs = marian_like(layers, heads, seed)
    ours = from_marian(theirs)
    source, target = tokens(3, 7, seed=seed), tokens(3, 5, seed=seed + 1)
    source[1, 5:] = PAD
    with torch.no_grad():
        wanted = theirs(
            input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target
        ).logits
        assert_close(ours(source, target), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attend", [None, FusedAttend])
def test_with_the_cache_it_says_what_it_says_without(attend):
    model = build(make_backend=attend)
    source, target = tokens(3, 6), tokens(3, 5, seed=2)
    source[0, 4:] = PAD
    with torch.no_grad():
        whole, memory, cache = model(source, target), model.encode(source), model.new_cache()
        parts = [
            model.decode(part, *memory, cache) for part in (target[:, :2], target[:, 2:3], target[:, 3:])
        ]
    assert_close(torch.cat(parts, dim=1), whole, rtol=1e-5, atol=1e-5)


@settings(max_examples=20)
@given(place=st.integers(0, 4), seed=st.integers(0, 50))
def test_nothing_is_known_of_the_future(place, seed):
    model = build()
    source, target = tokens(2, 6, seed=seed), tokens(2, 5, seed=seed + 1)
    changed = target.clone()
    changed[:, place] = 3 + (changed[:, place] - 2) % (VOCAB - 3)
    with torch.no_grad():
        before, after = model(source, target), model(source, changed)
    assert torch.equal(before[:, :place], after[:, :place])
    assert not torch.allclose(before[:, place], after[:, place])


def test_padding_changes_nothing():
    model = build()
    source, target = tokens(2, 6), tokens(2, 5, seed=2)
    with torch.no_grad():
        alone = model(source, target)
        padded = model(F.pad(source, (0, 3), value=PAD), F.pad(target, (0, 2), value=PAD))
    assert_close(padded[:, :5], alone)


def test_a_mask_of_the_memory_for_each_token():
    model, source, target = build(), tokens(2, 6), tokens(2, 4)
    memory, mask = model.encode(source)
    each = mask.expand(-1, 1, 4, -1).clone()
    expected = model.decode(target, memory, mask)
    assert_close(model.decode(target, memory, each), expected)
    each[:, :, 2, 5] = False  # the third token may not read the last of the source
    hidden = model.decode(target, memory, each)
    assert_close(hidden[:, :2], expected[:, :2])
    assert not torch.isclose(hidden[:, 2], expected[:, 2]).all(dim=-1).any()


def test_every_source_token_matters_to_every_target_token():
    model = build()
    source, target = tokens(1, 4), tokens(1, 3, seed=2)
    x = model.embed(source).detach().requires_grad_()
    memory = model.encoder(model.positions(model.scale * x))
    for t in range(3):
        (gradient,) = torch.autograd.grad(
            model.decode(target, memory)[0, t].square().sum(), x, retain_graph=True
        )
        assert (gradient[0].abs().sum(dim=-1) > 1e-6).all()


def test_one_matrix_or_three():
    shared, separate = build(), build(target_vocab_size=7)
    assert shared.embed_target is shared.embed
    assert separate.embed_target.weight.shape == (7, D)
    assert separate(tokens(1, 3), tokens(1, 2, vocab=7)).shape == (1, 2, 7)
    assert count_parameters(separate) - count_parameters(shared) == 7 * D + 7 - VOCAB


def loss_by_hand(model, source, target, share):
    log_p = model(source, target[:, :-1]).log_softmax(dim=-1)
    total, count = 0.0, 0
    for row in range(len(target)):
        for t, true in enumerate(target[row, 1:].tolist()):
            if true != PAD:
                q = torch.full((VOCAB,), share / VOCAB)
                q[true] += 1 - share
                total, count = total - (q * log_p[row, t]).sum(), count + 1
    return total / count


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_the_loss(share):
    model, source, target = build(), tokens(2, 4), tokens(2, 6, seed=2)
    target[:, 0], target[1, 4:] = BOS, PAD
    loss = translator_loss(model, (source, target), label_smoothing=share)
    assert_close(loss, loss_by_hand(model, source, target, share), rtol=1e-5, atol=1e-5)


def test_it_learns_to_turn_a_sequence_around():
    torch.manual_seed(0)
    model = Translator(TransformerConfig(d_model=32, n_heads=4, n_blocks=1), VOCAB)

    def batch(seed):
        x = tokens(32, 4, seed=seed)
        ends = x.new_full((32, 1), BOS), x.new_full((32, 1), EOS)
        return x, torch.cat((ends[0], x.flip(1), ends[1]), dim=1)

    fit(model, translator_loss, (batch(seed) for seed in range(250)), steps=250, lr=5e-3)
    source, target = batch(1000)
    guessed = model.eval()(source, target[:, :-1]).argmax(dim=-1)
    assert (guessed == target[:, 1:]).double().mean() > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eos_id": 11}, "eos_id=11 is not in the target's vocabulary of 11"),
        ({"pad_id": -1}, "pad_id=-1"),
        ({"target_vocab_size": 2}, "eos_id=2 is not in the target's vocabulary of 2"),
    ],
)
def test_special_tokens_are_in_the_vocabulary(arguments, message):
    with pytest.raises(ValueError, match=message):
        Translator(PRE, VOCAB, **arguments)


def test_the_config_is_the_encoder_s():
    with pytest.raises(ValueError, match="without cross_attention"):
        Translator(TransformerConfig(d_model=D, n_heads=3, n_blocks=1, cross_attention=True), VOCAB)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_smoothing_is_a_share(share):
    with pytest.raises(ValueError, match="label_smoothing"):
        translator_loss(build(), (tokens(1, 2), tokens(1, 3)), label_smoothing=share)
