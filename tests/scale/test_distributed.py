"""One process, two and four: the same losses, gradients and weights, also after runs that were killed.

A group of processes takes seconds to start. Two of them are started once, and four once, and do all that
several tests then look at; so much the smaller is the model.
"""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from contextlib import nullcontext

import cloudpickle
import psutil
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel

from tformer_lib.core.attention import Attend
from tformer_lib.core.positions import ALiBi, LearnedPositions, Rotary
from tformer_lib.core.tokens import IGNORED, cross_entropy
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.models.translator import Translator
from tformer_lib.scale import (
    GlobalBatches,
    fit_distributed,
    launch,
    load_distributed,
    save_distributed,
    tensor_parallel,
    whole_state,
)
from tformer_lib.scale import sharded_checkpoints as checkpoints
from tformer_lib.scale.sharded_checkpoints import Saved, open_distributed
from tformer_lib.training import fit, make_optimizers

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # other processes need not find this file
pytestmark = pytest.mark.usefixtures("one_thread")

STEPS, VOCAB = 6, 11
EXACT = 1e-10  # in float64; AdamW divides by the size of a gradient, so that rounding grows to 1e-12
FLOAT32 = 2e-6  # of a loss; measured: 4e-7


def make(*, seed=0, dropout=0.0, dtype=torch.float64):
    torch.manual_seed(seed)
    config = TransformerConfig(d_model=16, n_heads=4, n_blocks=2, dropout=dropout)
    return GPT(config, VOCAB, positions=LearnedPositions(12, 16)).to(dtype)


def windows():
    return RandomWindows(torch.arange(300) ** 2 % VOCAB, batch=8, length=8, steps=STEPS)


def uneven():
    """Batches of (tokens, targets) in which the rows have 1 to 8 targets."""
    found = []
    for batch in windows():
        targets = batch[:, 1:].clone()
        for row, keep in enumerate((8, 8, 7, 8, 1, 2, 1, 3)):
            targets[row, keep:] = IGNORED
        found.append((batch[:, :-1], targets))
    return found


def uneven_loss(model, batch):
    tokens, targets = batch
    return cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def count(batch):
    return int((batch[1] != IGNORED).sum())


class StopError(Exception):
    pass


def run(*, batches=None, loss=language_loss, seed=0, dropout=0.0, dtype=torch.float64, stop=None, **options):
    """(losses, norms, whole weights) of a run of six steps; None if it is stopped before."""

    def on_step(step, history):
        if step + 1 == stop:
            raise StopError

    model = make(seed=seed, dropout=dropout, dtype=dtype)
    batches = windows() if batches is None else batches
    try:
        history = fit_distributed(
            model, loss, batches, steps=STEPS, warmup=2, on_step=on_step, checkpoint_every=1, **options
        )
    except StopError:
        return None
    assert {p.dtype for p in model.parameters()} == {dtype}
    assert not model.training
    assert not any("forward" in vars(module) for module in model.modules())
    return history.loss, history.grad_norm, whole_state(model)


def distance(one, other):
    """The largest differences of losses, norms and weights."""
    losses = max(abs(a - b) for a, b in zip(one[0], other[0], strict=True))
    norms = max(abs(a - b) for a, b in zip(one[1], other[1], strict=True))
    return losses, norms, max((one[2][k] - other[2][k]).abs().max().item() for k in one[2])


def same(one, other, tolerance=EXACT):
    return max(distance(one, other)) <= tolerance


RUNS = {
    "ddp": {},
    "ddp, parts": {"accumulate": 2},
    "fsdp": {"strategy": "fsdp"},
    "fsdp, parts, recomputed": {"strategy": "fsdp", "accumulate": 2, "recompute": True},
    "ddp, recomputed": {"recompute": True},
    "ddp, compiled": {"compiled": "aot_eager"},  # all of it but the machine code, which takes a minute
    "fsdp, compiled, recomputed": {"strategy": "fsdp", "compiled": "aot_eager", "recompute": True},
    "ddp, muon": {"optimizer": "muon"},
    "fsdp, muon": {"optimizer": "muon", "strategy": "fsdp"},
    "ddp, float32": {"dtype": torch.float32},
    "fsdp, float32": {"dtype": torch.float32, "strategy": "fsdp"},
    "ddp, bfloat16": {"dtype": torch.float32, "precision": "bfloat16"},
    "fsdp, bfloat16": {"dtype": torch.float32, "precision": "bfloat16", "strategy": "fsdp"},
}

WIDE = {
    "plain": {},
    "modern": {"n_kv_heads": 2, "activation": "swiglu", "norm": "rms", "bias": False, "qk_norm": True},
    "post-norm": {"norm_placement": "post"},
}
TOKENS = torch.arange(8 * 9).view(8, 9) ** 2 % VOCAB


def wide(name, *, tied=True):
    torch.manual_seed(0)
    config = TransformerConfig(d_model=16, n_heads=4, n_blocks=2, **WIDE[name])
    model = GPT(config, VOCAB, rotary=Rotary(4), tied=tied).double()
    generator = torch.Generator().manual_seed(1)
    for p in model.parameters():  # gains and biases that are not all alike
        p.data += 0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype)
    return model


def gradients(model, tokens=TOKENS):
    loss = language_loss(model, tokens)
    loss.backward()
    whole = {
        name: p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad
        for name, p in model.named_parameters()
    }
    return [loss.item()], [0.0], whole


DIVIDED = [
    (name, tied, sequence, vocabulary)
    for name, tied in (("plain", True), ("modern", False))
    for sequence in (False, True)
    for vocabulary in ("gathered", "divided")
]


def divided_vocabulary(name, tied, sequence, vocabulary):
    """Gradients, weights after a step, logits, and which part of embedding and head a process holds."""
    model = tensor_parallel(wide(name, tied=tied), sequence=sequence, vocabulary=vocabulary)
    with loss_parallel() if vocabulary == "divided" else nullcontext():
        found = gradients(model)
    tables = [model.embed.weight] if tied else [model.embed.weight, model.head.weight]
    assert all(p.grad.placements == p.placements == (Shard(0),) for p in tables)
    rows = [(len(p.to_local()), len(p.grad.to_local())) for p in tables]
    logits = model(TOKENS[:, 1:])
    assert isinstance(logits, DTensor) == (vocabulary == "divided")
    logits = logits.full_tensor() if isinstance(logits, DTensor) else logits
    torch.optim.SGD(model.parameters(), lr=0.1, foreach=False).step()
    return found, whole_state(model), logits.detach(), rows


def headed():
    model = wide("plain")
    model.head = nn.Sequential(nn.Linear(16, VOCAB))
    return model


def refusals(calls):
    """The errors of calls that every process makes."""
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = "nothing"
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def spoilt(model, batch):
    """A loss that is not a number in the last process alone."""
    return language_loss(model, batch) * (float("nan") if dist.get_rank() == dist.get_world_size() - 1 else 1)


def run_on_a_full_disk(folder):
    """The first process cannot write the index of its first checkpoint."""

    def full(path, content):
        raise OSError(28, "No space left on device")

    replace, checkpoints.replace_file = checkpoints.replace_file, full
    try:
        run(checkpoint=folder)
    finally:
        checkpoints.replace_file = replace


def gradients_held():
    """The share of all gradients that this process holds after the first of two parts, and at the end."""

    def loss(model, rows):
        held.append(sum(p.grad.to_local().numel() for p in model.parameters() if p.grad is not None))
        return language_loss(model, rows)

    held, model = [], make()
    whole = sum(p.numel() for p in model.parameters())

    def end(step, history):
        held.append(sum(p.grad.to_local().numel() for p in model.parameters()))

    options = {"steps": 1, "warmup": 0, "strategy": "fsdp", "accumulate": 2, "on_step": end}
    fit_distributed(model, loss, windows(), **options)
    return [count / whole for count in held[1:]]


def graphs_made():
    """How often a backend of `torch.compile` is called in a run with blocks that are computed again."""

    def backend(graph, inputs):
        made.append(graph)
        return graph.forward

    made = []
    torch._dynamo.reset()  # what other runs compiled would be found again
    torch._dynamo.register_backend(name="counting", compiler_fn=backend)
    run(compiled="counting", recompute=True)  # which also looks whether the blocks are left as they were
    return len(made)


def two_processes(folder):
    rank = dist.get_rank()
    found = {name: run(seed=rank, **options) for name, options in RUNS.items()}
    uneven_options = {"batches": uneven(), "loss": uneven_loss, "accumulate": 2}
    found["counted"] = run(**uneven_options, targets=count)
    found["not counted"] = run(**uneven_options)
    for name in ("plain", "modern", "post-norm"):
        for sequence in (False, True):
            model = tensor_parallel(wide(name), sequence=sequence)
            found[f"tensor, {name}, {sequence}"] = gradients(model)
            found["rows"] = tuple(model.transformer.blocks[0].self_attention.W_q.weight.to_local().shape)
    found["vocabulary"] = {way: divided_vocabulary(*way) for way in DIVIDED}
    for strategy in ("ddp", "fsdp"):  # stopped and gone on with, with dropout: to the last bit
        options = {"strategy": strategy, "dropout": 0.2}
        found[f"whole, {strategy}"] = run(**options)
        found[f"draws, {strategy}"] = torch.rand(1).item()
        assert run(**options, stop=3, checkpoint=folder / strategy) is None
        found[f"resumed, {strategy}"] = run(**options, checkpoint=folder / strategy)
    for optimizer in ("adamw", "muon"):  # begun by one process, for four to go on with
        options = {"optimizer": optimizer, "strategy": "fsdp", "checkpoint": folder / optimizer}
        assert run(**options, stop=3) is None
    found["files"] = sorted(p.name for p in next((folder / "adamw").glob("step-*")).iterdir())
    found["graphs"] = graphs_made()
    found["gradients"] = gradients_held()
    found["errors"] = refusals(
        {
            "models": lambda: fit_distributed(nn.Linear(2, 1 + rank), None, [torch.ones(2, 2)], steps=1),
            "numbers": lambda: run(lr=0.1 + rank),
            "nan": lambda: run(loss=spoilt),
            "disk": lambda: run_on_a_full_disk(folder / "full"),
            "rows": lambda: run(batches=[torch.zeros(3, 9, dtype=torch.int64)]),
            "parts": lambda: run(accumulate=3),
            "no blocks": lambda: tensor_parallel(nn.Linear(2, 2)),
            "dropout": lambda: tensor_parallel(make(dropout=0.1)),
            "tokens": lambda: tensor_parallel(wide("plain"), sequence=True)(TOKENS),
            "heads": lambda: tensor_parallel(
                GPT(TransformerConfig(d_model=12, n_heads=3, n_blocks=1), VOCAB)
            ),
            "vocabulary": lambda: tensor_parallel(wide("plain"), vocabulary="whole"),
            "no gpt": lambda: tensor_parallel(wide("plain").transformer, vocabulary="gathered"),
            "a head of its own make": lambda: tensor_parallel(headed(), vocabulary="gathered"),
            "few tokens": lambda: tensor_parallel(
                GPT(TransformerConfig(d_model=16, n_heads=4, n_blocks=1), 1), vocabulary="divided"
            ),
            "bias": lambda: tensor_parallel(
                GPT(
                    TransformerConfig(d_model=16, n_heads=4, n_blocks=1),
                    VOCAB,
                    make_backend=lambda: Attend(score_bias=ALiBi(4)),
                )
            ),
        }
    )
    return found


def four_processes(folder):
    found = {name: run(seed=dist.get_rank(), strategy=name) for name in ("ddp", "fsdp")}
    for optimizer in ("adamw", "muon"):
        assert run(optimizer=optimizer, stop=4, checkpoint=folder / optimizer) is None
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    for name, vocabulary in zip(WIDE, ("gathered", "divided", None), strict=True):
        options = {"sequence": name != "plain", "vocabulary": vocabulary}
        model = tensor_parallel(wide(name), mesh["tensor"], **options)
        for block in model.transformer.blocks:
            fully_shard(block, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
        divided = loss_parallel() if vocabulary == "divided" else nullcontext()
        with divided, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on views that nobody changes in place
            losses, norms, whole = gradients(model, TOKENS.chunk(2)[mesh["data"].get_local_rank()])
        total = torch.tensor(losses[0], dtype=torch.float64)
        dist.all_reduce(total, group=mesh["data"].get_group())
        found[f"mesh, {name}"] = [total.item() / 2], norms, whole
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def alone(folder):
    """What one process makes of it; it also begins what the others go on with."""
    found = {
        name: run(**{k: v for k, v in options.items() if k not in ("strategy", "compiled")})
        for name, options in RUNS.items()
    }
    found["counted"] = run(batches=uneven(), loss=uneven_loss)
    for optimizer in ("adamw", "muon"):
        assert run(optimizer=optimizer, stop=2, checkpoint=folder / optimizer) is None
    return found


@pytest.fixture(scope="module")
def two(folder, alone):
    return launch(two_processes, 2, folder)


@pytest.fixture(scope="module")
def four(folder, two):
    return launch(four_processes, 4, folder)


def test_one_process_is_fit_to_the_last_bit():
    model = make()
    history = fit(model, language_loss, windows(), warmup=2)
    assert distance(run(), (history.loss, history.grad_norm, model.state_dict())) == (0, 0, 0)


def test_parts_give_the_step_of_the_whole_batch():
    whole = run()
    assert same(run(accumulate=2), whole)
    assert same(run(accumulate=8), whole)
    counted = run(batches=uneven(), loss=uneven_loss)
    assert same(run(batches=uneven(), loss=uneven_loss, accumulate=4, targets=count), counted)


def test_parts_with_unequally_many_targets_are_warned_of_once():
    with pytest.warns(UserWarning, match="unequally many targets") as caught:
        run(batches=uneven(), loss=uneven_loss, accumulate=4)
    assert len([one for one in caught if "targets" in str(one.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(batches=uneven(), loss=uneven_loss, accumulate=4, targets=count)
        run(accumulate=4)


def test_what_is_computed_again_is_the_same():
    assert distance(run(recompute=True), run()) == (0, 0, 0)
    assert distance(run(recompute=True, dropout=0.2), run(dropout=0.2)) == (0, 0, 0)


@pytest.mark.parametrize("name", [name for name in RUNS if "float" not in name])
def test_two_processes_do_what_one_does(name, alone, two):
    assert same(two[0][name], alone[name])
    assert distance(two[0][name], two[1][name]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["ddp, float32", "fsdp, float32"])
def test_in_float32_losses_agree_up_to_rounding(name, alone, two):
    assert max(distance(two[0][name], alone[name])[:2]) < FLOAT32
    assert distance(two[0][name], two[1][name]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["ddp, bfloat16", "fsdp, bfloat16"])
def test_bfloat16_is_coarser_and_leaves_parameters_as_they_are(name, alone, two):
    difference = distance(two[0][name], alone["ddp, float32"])[0]
    assert 1e-5 < difference < 1e-2  # `run` looks at the parameters' type
    assert 1e-5 < distance(alone[name], alone["ddp, float32"])[0] < 1e-2


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_four_processes_do_what_one_does(name, alone, four):
    assert same(four[3][name], alone[name])


def test_unequal_numbers_of_targets_need_to_be_counted(alone, two):
    assert same(two[0]["counted"], alone["counted"])
    assert distance(two[0]["not counted"], alone["counted"])[0] > 1e-3


@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize("name", WIDE)
def test_divided_matrices_compute_the_same(name, sequence, two):
    whole = gradients(wide(name))
    for rank in (0, 1):
        assert same(two[rank][f"tensor, {name}, {sequence}"], whole)
    assert two[0]["rows"] == (8, 16)


@pytest.mark.parametrize("way", DIVIDED)
def test_a_divided_vocabulary_computes_the_same(way, two):
    name, tied = way[:2]
    model = wide(name, tied=tied)
    whole, logits = gradients(model), model(TOKENS[:, 1:])
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    for rank, rows in ((0, 6), (1, 5)):  # of 11 tokens
        found, state, found_logits, held = two[rank]["vocabulary"][way]
        assert same(found, whole, 1e-12)
        assert state.keys() == model.state_dict().keys()
        torch.testing.assert_close(state, dict(model.state_dict()), rtol=0, atol=1e-12)
        torch.testing.assert_close(found_logits, logits, rtol=0, atol=1e-12)
        assert held == [(rows, rows)] * (1 if tied else 2)


@pytest.mark.parametrize("name", WIDE)
def test_tensor_and_data_parallel_together(name, four):
    for rank in range(4):
        assert same(four[rank][f"mesh, {name}"], gradients(wide(name)))


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_run_that_goes_on_is_the_same_to_the_last_bit_with_dropout(strategy, two):
    for rank in (0, 1):
        assert distance(two[rank][f"resumed, {strategy}"], two[rank][f"whole, {strategy}"]) == (0, 0, 0)
    assert two[0][f"draws, {strategy}"] != two[1][f"draws, {strategy}"]  # every process draws its own masks


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_one_process_then_two_then_four_then_one(optimizer, folder, alone, four):
    name = "ddp" if optimizer == "adamw" else "ddp, muon"
    found = run(optimizer=optimizer, accumulate=2, checkpoint=folder / optimizer)
    assert same(found, alone[name])
    assert distance(run(optimizer=optimizer, checkpoint=folder / optimizer), found) == (0, 0, 0)  # finished


def test_no_two_processes_write_one_file(two):
    assert two[0]["files"] == [".metadata", "__0_0.distcp", "__1_0.distcp", "index.json"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("models", "ValueError: processes 0 and 1 were given models of different makes"),
        ("numbers", "ValueError: processes 0 and 1 were given different numbers"),
        ("nan", "FloatingPointError: the loss is nan at step 0 of 6"),
        ("rows", "ValueError: a batch of 3 rows cannot be shared by 2 processes evenly"),
        ("parts", "ValueError: a batch of 4 rows cannot be shared by 3 parts evenly"),
        ("no blocks", "ValueError: there is no Transformer in this model"),
        ("dropout", "ValueError: dropout must be 0"),
        ("tokens", "ValueError: 2 processes cannot share 9 tokens evenly"),
        ("heads", "ValueError: 2 processes cannot share n_heads=3 evenly"),
        ("bias", "ValueError: what is added to scores is of all heads"),
        ("vocabulary", "ValueError: vocabulary must be 'gathered', 'divided' or None, got 'whole'"),
        ("no gpt", "ValueError: only the embedding and the head of a GPT can be divided"),
        ("a head of its own make", "ValueError: the head must be tied or an nn.Linear, got Sequential"),
        ("few tokens", "ValueError: 2 processes cannot share 1 tokens"),
    ],
)
def test_errors_are_those_of_all_processes(name, message, two):
    for rank in (0, 1):
        assert two[rank]["errors"][name].startswith(message)


def test_what_fails_to_be_written_in_one_process_ends_all(two):
    found = [each["errors"]["disk"] for each in two]
    assert found == [f"{kind}: [Errno 28] No space left on device" for kind in ("OSError", "ValueError")]


def test_no_process_holds_whole_gradients_of_a_sharded_model(two):
    assert (
        two[0]["gradients"] == [pytest.approx(0.5, abs=0.01)] * 2
    )  # after the first part, and after the second


def test_bad_input(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="strategy must be one of"):
        run(strategy="zero")
    with pytest.raises(ValueError, match="precision must be one of"):
        run(precision="float16")
    with pytest.raises(ValueError, match="accumulate must be at least 1, got 0"):
        run(accumulate=0)
    with pytest.raises(ValueError, match="no Block"):
        fit_distributed(nn.Linear(2, 1), language_loss, [torch.ones(2, 2)], steps=1, recompute=True)
    with pytest.raises(ValueError, match="a part of this batch has no target"):
        run(batches=uneven(), loss=uneven_loss, targets=lambda batch: 0)
    with pytest.raises(TypeError, match="something to loop over"):
        GlobalBatches(3)
    with pytest.raises(TypeError, match="begin anew"):
        GlobalBatches(iter([1, 2]))
    with pytest.raises(TypeError, match="a batch is a tensor"):
        next(iter(GlobalBatches(["text"])))
    with pytest.raises(ValueError, match="ran out after 0"):
        next(iter(GlobalBatches([])))
    with pytest.raises(ValueError, match="no state of such batches"):
        GlobalBatches([1]).load_state_dict({"place": 3})
    with pytest.raises(RuntimeError, match="no process group is open"):
        tensor_parallel(make())
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="torchrun started 2 processes, and no group is open"):
        run()


def test_all_blocks_share_what_was_compiled_and_are_left_as_they_were(two):
    assert two[0]["graphs"] == 2  # of a probe, and of a block


def test_without_a_compiler_there_is_an_error_that_says_so(monkeypatch):
    def missing(*arguments, **options):
        raise RuntimeError("no C++ compiler\nand a long trace")

    monkeypatch.setattr(torch, "compile", missing)
    with pytest.raises(ValueError, match=r"cannot compile here with 'inductor' \(no C\+\+ compiler\)"):
        run(compiled=True)


def test_global_batches():
    batches = [(torch.arange(6), {"x": torch.arange(6) + 10}), (torch.arange(6) + 100, {"x": torch.zeros(6)})]
    view = GlobalBatches(batches).shard(1, 3)
    stream = iter(view)
    first = next(stream)
    assert first[0].tolist() == [2, 3]
    assert first[1]["x"].tolist() == [12, 13]
    later = GlobalBatches(batches).shard(0, 2)
    later.load_state_dict(view.state_dict())
    stream = iter(later)
    assert next(stream)[0].tolist() == [100, 101, 102]
    assert next(stream)[0].tolist() == [0, 1, 2]  # looped over again
    assert later.state_dict() == {"batches": 3}


# Checkpoints of one process: every way in which they can be wrong


@pytest.fixture
def stopped(tmp_path):
    """A folder with the checkpoint of a run that was stopped after three of six steps."""
    assert run(stop=3, checkpoint=tmp_path / "run") is None
    return tmp_path / "run"


def place_in(folder):
    return folder / json.loads((folder / "latest.json").read_text())["folder"]


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def unpickle_me(place):
    """A table of parts that would run something, with the checksums of an attacker."""
    import pickle

    class Run:
        def __reduce__(self):
            return os.mkdir, (str(place.parent / "harm"),)

    (place / ".metadata").write_bytes(pickle.dumps(Run()))
    index = json.loads((place / "index.json").read_text())
    index["files"][".metadata"] = checkpoints.checksum_of(place / ".metadata")
    rewrite(place, index)


def rewrite(place, index):
    (place / "index.json").write_text(json.dumps(index))
    pointer = json.loads((place.parent / "latest.json").read_text())
    pointer["sha256"] = checkpoints.checksum_of(place / "index.json")
    (place.parent / "latest.json").write_text(json.dumps(pointer))


def changed(place, **entries):
    rewrite(place, json.loads((place / "index.json").read_text()) | entries)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: flip(p / "__0_0.distcp"), "__0_0.distcp is damaged"),
        (lambda p: flip(p / ".metadata"), ".metadata is damaged"),
        (lambda p: flip(p / "index.json"), "index.json is damaged"),
        (lambda p: (p / "__0_0.distcp").unlink(), "not a whole checkpoint: __0_0.distcp is missing"),
        (lambda p: shutil.rmtree(p), "index.json is missing"),
        (lambda p: (p.parent / "latest.json").write_text("{}"), "does not say that it is one"),
        (lambda p: (p.parent / "latest.json").write_text("not JSON"), "no checkpoint, or not a whole one"),
        (lambda p: changed(p, format=2), "of format 2"),
        (lambda p: changed(p, step=2), "history is not one of 2 steps"),
        (lambda p: changed(p, processes=2), "lacks the states of the random generators"),
        (lambda p: changed(p, batches={"batches": "three"}), "batches must be a whole number"),
        (unpickle_me, "no table of a checkpoint's parts"),
    ],
)
def test_a_damaged_checkpoint_changes_nothing(spoil, message, stopped):
    spoil(place_in(stopped))
    model = make()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises((ValueError, TypeError), match=message):
        fit_distributed(model, language_loss, windows(), steps=STEPS, warmup=2, checkpoint=stopped)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not (stopped / "harm").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 1e-2}, "lr was 0.003 and is 0.01"),
        ({"optimizer": "muon"}, "optimizer was 'adamw' and is 'muon'"),
        ({"precision": "bfloat16"}, "precision was 'float32'"),
        ({"dtype": torch.float32}, "embed.weight is .* torch.float64 there and .* torch.float32 here"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(options, message, stopped):
    with pytest.raises(ValueError, match=message):
        run(checkpoint=stopped, **options)


def test_the_model_alone_and_the_optimisers_of_another(stopped):
    model = make(seed=5)
    saved = load_distributed(stopped, model)
    assert (saved.step, len(saved.history.loss), saved.batches, saved.processes) == (3, 3, {"batches": 3}, 1)
    other = make(seed=6)
    put = open_distributed(stopped, other, make_optimizers(other, lr=1.0, weight_decay=0.0))[1]
    put()
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())
    with pytest.raises(ValueError, match=r"W_q\.weight was moved by AdamW and is by Muon"):
        load_distributed(stopped, other, make_optimizers(other, "muon", lr=1.0, weight_decay=0.0))
    other.head = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"missing head\.bias; missing head\.weight"):
        load_distributed(stopped, other)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_distributed(stopped / "elsewhere", model)


@pytest.mark.parametrize("moment", ["save", "index", "latest", "delete"])
def test_whenever_a_save_is_cut_off_a_whole_checkpoint_stays(moment, stopped, monkeypatch):
    model = make()
    load_distributed(stopped, model)
    with torch.no_grad():
        model.embed.weight += 1
    optimizers = make_optimizers(model, lr=1.0, weight_decay=0.0)

    class Killed(BaseException):
        pass

    def killed(*args, **kwargs):
        raise Killed

    def replace(path, content):
        if path.name == f"{moment}.json":
            raise Killed
        checkpoints_replace(path, content)

    checkpoints_replace = checkpoints.replace_file
    monkeypatch.setattr(checkpoints, "replace_file", replace)
    if moment == "save":
        monkeypatch.setattr(checkpoints.dcp, "save", killed)
    if moment == "delete":
        monkeypatch.setattr(checkpoints.shutil, "rmtree", killed)
    saved = load_distributed(stopped, make())
    saved.step, saved.history.loss = 4, [*saved.history.loss, 0.0]
    saved.history.grad_norm, saved.history.lr = [0.0] * 4, [0.0] * 4
    with pytest.raises(Killed):
        save_distributed(stopped, model, optimizers, saved)
    monkeypatch.undo()
    found = make()
    step = load_distributed(stopped, found).step
    assert step == (4 if moment == "delete" else 3)
    new = torch.equal(found.embed.weight, model.embed.weight)
    assert new == (moment == "delete")
    save_distributed(stopped, model, optimizers, saved)
    assert len(list(stopped.glob("step-*"))) == 1  # what was left over is deleted


def test_saving_by_itself(tmp_path):
    model = make()
    with pytest.raises(TypeError):
        save_distributed(tmp_path, model, [], Saved(settings={"model": model}))
    assert not (tmp_path / "latest.json").exists()
    (tmp_path / "step-notes").mkdir()
    save_distributed(tmp_path, model, [], Saved())
    assert (tmp_path / "step-notes").exists()  # only folders of this kind are deleted


SCRIPT = """
import sys, time
import torch, torch.distributed as dist
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.scale import fit_distributed

dist.init_process_group("gloo")
torch.manual_seed(0)
config = TransformerConfig(d_model=16, n_heads=4, n_blocks=2)
model = GPT(config, 11, positions=LearnedPositions(12, 16)).double()
windows = RandomWindows(torch.arange(300) ** 2 % 11, batch=8, length=8, steps=6)
fit_distributed(
    model, language_loss, windows, steps=6, warmup=2, strategy="fsdp", checkpoint=sys.argv[1],
    checkpoint_every=1, on_step=lambda step, history: time.sleep(10 if step == 4 else 0),
)
"""


def killed_process(folder):
    """Four processes, of which one ends itself after the next step; a killed one says no word."""

    def on_step(step, history):
        if dist.get_rank() == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    fit_distributed(
        make(), language_loss, windows(), steps=STEPS, warmup=2, checkpoint=folder, checkpoint_every=1,
        on_step=on_step,
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX systems")
def test_killed_as_a_whole_then_one_process_of_four_then_finished_by_one(tmp_path, alone):
    """The moment of the first kill is not chosen: it is some milliseconds after the first checkpoint."""
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += [
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=localhost:0",
        str(tmp_path / "script.py"),
        str(folder),
    ]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    running = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE)
    end = time.monotonic() + 120
    while not (folder / "latest.json").exists() and running.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(time.time_ns() % 100 / 1000)
    assert running.poll() is None, running.stderr.read().decode()
    for process in [*psutil.Process(running.pid).children(recursive=True), running]:
        process.kill()
    running.communicate()
    first = load_distributed(folder, make()).step
    assert 1 <= first < STEPS
    with pytest.raises(RuntimeError, match=r"SIGKILL|closed by peer|reset by peer"):
        launch(killed_process, 4, folder)
    assert load_distributed(folder, make()).step in (first + 1, first + 2)
    assert same(run(checkpoint=folder), alone["ddp"])


def test_unequal_tensors_do_not_land_in_a_shared_one(tmp_path):
    """Names and shapes agree; the content does not."""

    def translator(tied):
        config = TransformerConfig(d_model=16, n_heads=4, n_blocks=1)
        return Translator(config, VOCAB, target_vocab_size=None if tied else VOCAB)

    save_distributed(tmp_path / "untied", translator(False), [], Saved())
    model = translator(True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"embed\.weight and embed_target\.weight are one tensor"):
        load_distributed(tmp_path / "untied", model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    save_distributed(tmp_path / "tied", model, [], Saved())
    for fitting in (translator(True), translator(False)):
        load_distributed(tmp_path / "tied", fitting)
        assert torch.equal(fitting.embed_target.weight, model.embed.weight)


def test_a_compiled_model_is_saved_as_if_it_were_not(tmp_path):
    model = make()
    compiled = torch.compile(model, backend="eager")
    optimizers = make_optimizers(model, lr=0.1, weight_decay=0.0)
    language_loss(model, next(iter(windows()))).backward()
    for optimizer in optimizers:
        optimizer.step()
    save_distributed(tmp_path, compiled, optimizers, Saved())
    other = make(seed=1)
    load_distributed(tmp_path, other, make_optimizers(other, lr=0.1, weight_decay=0.0))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))
