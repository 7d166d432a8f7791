"""Checkpoints: a run killed at any moment goes on from the last one and ends in the same weights."""

import copy
import json
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.data import DataLoader

from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.models.translator import Translator
from tformer_lib.training import Checkpoint, fit, load_checkpoint, save_checkpoint, seed_everything
from tformer_lib.training.batches import BatchIterator
from tformer_lib.training.checkpoints import FILE, has_checkpoint
from tformer_lib.training.seeds import random_state, set_random_state

IDS = torch.arange(400) % 7


def build(dropout=0.2):
    seed_everything(0)
    return GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, dropout=dropout), vocab_size=7)


def loader():
    """Shuffles by the global generator, anew in each pass."""
    return DataLoader(IDS.view(40, 10), batch_size=4, shuffle=True)


class StoppedError(Exception):
    pass


def run(model, batches, folder=None, *, stop=None, **options):
    """Train; `stop` breaks off within that step, as a killed process would."""
    taken = 0

    def loss_fn(model, batch):
        nonlocal taken
        taken += 1
        if taken - 1 == stop:
            raise StoppedError
        return language_loss(model, batch)

    settings = {"steps": 25, "warmup": 3, "checkpoint": folder, "checkpoint_every": 4} | options
    return fit(model, loss_fn, batches, **settings), taken


def assert_same(model, other):
    for (name, p), (_, q) in zip(model.state_dict().items(), other.state_dict().items(), strict=True):
        assert torch.equal(p, q), name


BATCHES = {
    "list": lambda: list(IDS.view(40, 10).split(4)),
    "windows": lambda: RandomWindows(IDS, batch=3, length=6, steps=25),
    "shuffled by the global generator": loader,
    "drawn one by one from the global generator": lambda: drawn_one_by_one(),
    "drawn from a generator of their own": lambda: own_generator(),
}


def drawn_one_by_one():
    while True:
        yield IDS[torch.randperm(400)[:30]].view(3, 10)


def own_generator():
    """Its second pass goes on where its first ended."""
    return DataLoader(
        IDS.view(40, 10), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(5)
    )


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("stops", [(9,), (3, 4, 0, 11)])
def test_a_broken_run_ends_as_an_unbroken_one(tmp_path, kind, optimizer, stops):
    unbroken = build()
    expected, _ = run(unbroken, BATCHES[kind](), optimizer=optimizer)
    after = torch.rand(3), np.random.rand()  # noqa: NPY002  (the checks of types draw from Python's dice)
    for stop in stops:
        with pytest.raises(StoppedError):
            run(build(), BATCHES[kind](), tmp_path, stop=stop, optimizer=optimizer)
    model = build()
    history, taken = run(model, BATCHES[kind](), tmp_path, optimizer=optimizer)
    assert taken == 25 - {(9,): 8, (3, 4, 0, 11): 12}[stops]
    assert_same(model, unbroken)
    assert (history.loss, history.grad_norm, history.lr) == (expected.loss, expected.grad_norm, expected.lr)
    assert torch.equal(torch.rand(3), after[0])
    assert np.random.rand() == after[1]  # noqa: NPY002


def test_a_checkpoint_changes_nothing_about_the_run(tmp_path):
    plain = build()
    expected, _ = run(plain, loader())
    saving = build()
    assert run(saving, loader(), tmp_path)[0].loss == expected.loss
    assert_same(saving, plain)
    assert has_checkpoint(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


def test_a_finished_run_is_not_trained_further(tmp_path):
    first = build()
    expected, _ = run(first, loader(), tmp_path)
    after = torch.rand(3)
    before = (tmp_path / FILE).stat().st_mtime_ns
    again = build()
    history, taken = run(again, loader(), tmp_path)
    assert taken == 0
    assert history == expected
    assert torch.equal(torch.rand(3), after)
    assert not again.training
    assert (tmp_path / FILE).stat().st_mtime_ns == before
    assert_same(again, first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.1}, "settings: lr was 0.003 and is 0.1"),
        ({"steps": 26}, "settings: steps was 25 and is 26"),
        ({"clip": None, "warmup": 4}, "clip was 1.0 and is None; warmup was 3 and is 4"),
        ({"optimizer": "muon"}, "optimizer was 'adamw' and is 'muon'"),
        ({"weight_decay": 0.0}, "weight_decay was 0.01 and is 0.0"),
        ({"momentum": 0.9}, "momentum was 0.95 and is 0.9"),
        ({"min_lr_ratio": 0.1}, "min_lr_ratio was 0.0 and is 0.1"),
        ({"betas": (0.9, 0.99)}, r"betas was \[0.9, 0.999\] and is \[0.9, 0.99\]"),
    ],
)
def test_another_run_is_refused(tmp_path, change, message):
    run(build(), loader(), tmp_path)
    model = build()
    with pytest.raises(ValueError, match=message):
        run(model, loader(), tmp_path, **change)
    assert_same(model, build())


def test_other_batches_are_refused(tmp_path):
    run(build(), loader(), tmp_path)
    with pytest.raises(ValueError, match="batches was 10 and is 3"):
        run(build(), [IDS[:10].view(1, 10)] * 3, tmp_path)
    stream = BatchIterator(iter("abcd"), 4)
    with pytest.raises(ValueError, match=r"not the batches .* 3 of them end at batch 3 of pass 1"):
        stream.wind(3, 2, 1, random_state())


def test_another_model_is_refused(tmp_path):
    run(build(), loader(), tmp_path)
    wider = GPT(TransformerConfig(d_model=10, n_heads=2, n_blocks=1), vocab_size=7)
    with pytest.raises(ValueError, match=r"embed.weight is \(7, 8\) torch.float32 there and \(7, 10\)"):
        run(wider, loader(), tmp_path)
    deeper = GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=2), vocab_size=7)
    with pytest.raises(ValueError, match=r"does not fit this model: missing transformer.blocks.1.mlp"):
        run(deeper, loader(), tmp_path)
    plain = GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, bias=False), vocab_size=7)
    with pytest.raises(ValueError, match=r"left over transformer.blocks.0.mlp.W_in.bias"):
        run(plain, loader(), tmp_path)
    with pytest.raises(ValueError, match=r"float32 there and .* torch.float64 here"):
        run(build().double(), loader(), tmp_path)


def test_an_optimiser_that_differs_is_refused(tmp_path):
    model = nn.Linear(2, 2)
    adam = torch.optim.AdamW(model.parameters())
    save_checkpoint(tmp_path, model, [adam])
    with pytest.raises(ValueError, match="holds 1 optimizers, and there are 2"):
        load_checkpoint(tmp_path, model, [adam, adam])
    with pytest.raises(ValueError, match="kind was 'AdamW' and is 'SGD'"):
        load_checkpoint(tmp_path, model, [torch.optim.SGD(model.parameters())])
    with pytest.raises(ValueError, match="AdamW moves parameters that are not the model's"):
        save_checkpoint(tmp_path, nn.Linear(2, 2), [adam])


def test_checkpoints_by_hand(tmp_path):
    """Tied weights, half precision, buffers, an optimiser half way: all come back, and the dice lie still."""
    model = nn.ModuleList([nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3).bfloat16(), nn.Linear(3, 3)])
    model[3].weight = model[0].weight
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model[3](model[1](model[0](torch.randn(5, 3)))).square().sum().backward()
    sgd.step()
    path = save_checkpoint(tmp_path / "a" / "b", model, [sgd], Checkpoint(7, notes={"name": "x"}))
    assert path == tmp_path / "a" / "b" / FILE
    weights, momentum = copy.deepcopy(model.state_dict()), copy.deepcopy(sgd.state_dict()["state"])
    for p in model.parameters():
        nn.init.normal_(p)
        p.grad = torch.ones_like(p)
    sgd.step()
    dice = torch.get_rng_state()
    loaded = load_checkpoint(str(path.parent), model, [sgd])
    assert torch.equal(torch.get_rng_state(), dice)
    assert (loaded.step, loaded.notes, loaded.settings) == (7, {"name": "x"}, {})
    assert model[3].weight is model[0].weight
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name]), name
        assert value.dtype == weights[name].dtype
    for i, entries in momentum.items():
        assert torch.equal(sgd.state_dict()["state"][i]["momentum_buffer"], entries["momentum_buffer"])
    assert load_checkpoint(path.parent, model).step == 7


def test_what_is_no_checkpoint(tmp_path):
    model = nn.Linear(2, 2)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_checkpoint(tmp_path, model)
    path = save_checkpoint(tmp_path, model)
    whole = path.read_bytes()
    for content in (b"", b"not safetensors at all", whole[:-1], whole[:40]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no checkpoint, or not a whole one"):
            load_checkpoint(tmp_path, model)
    for metadata in (None, {"other": "1"}, {"checkpoint": "{"}):
        save_file({"weight": torch.ones(2)}, path, metadata)
        with pytest.raises(ValueError, match="is no checkpoint"):
            load_checkpoint(tmp_path, model)


def test_the_header_is_json(tmp_path):
    path = save_checkpoint(tmp_path, nn.Linear(2, 2), checkpoint=Checkpoint(3, settings={"lr": 0.1}))
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert json.loads(header["__metadata__"]["checkpoint"])["settings"] == {"lr": 0.1}


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    model = nn.Linear(2, 2)
    save_checkpoint(tmp_path, model, checkpoint=Checkpoint(1))

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr("tformer_lib.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(tmp_path, model, checkpoint=Checkpoint(2))
    assert load_checkpoint(tmp_path, model).step == 1


def test_the_random_generators_come_back():
    random.gauss(0, 1)  # leaves half a pair behind
    np.random.randn()  # noqa: NPY002
    state = random_state()

    def draw():
        return random.gauss(0, 1), random.random(), np.random.randn(), torch.rand(()).item()  # noqa: NPY002

    first = draw()
    assert draw() != first
    set_random_state(state)
    assert draw() == first


def test_checkpoint_every_is_positive(tmp_path):
    with pytest.raises(ValueError, match="checkpoint_every must be at least 1, got 0"):
        run(build(), loader(), tmp_path, checkpoint_every=0)


# One process that forks a child for each attempt, so that PyTorch is imported once.
DRIVER = '''
import json, os, random, signal, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
from torch.utils.data import DataLoader
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib import files
from tformer_lib.training import checkpoints, fit, load_checkpoint, seed_everything

def build():
    seed_everything(0)
    return GPT(TransformerConfig(d_model=16, n_heads=2, n_blocks=2, dropout=0.2), vocab_size=7)

def train(folder, steps=40, wait=0.003, every=2):
    def loss_fn(model, batch):
        time.sleep(wait)
        return language_loss(model, batch)
    model = build()
    data = DataLoader((torch.arange(350) % 7).view(35, 10), batch_size=5, shuffle=True)
    options = {"steps": steps, "optimizer": "muon", "checkpoint": folder, "checkpoint_every": every}
    history = fit(model, loss_fn, data, **options)
    return model, history

def child(work):
    """The exit status of a process that does `work`; -9 if it was killed."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr)
            os._exit(3)
        os._exit(0)
    return pid

def status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def step_of(folder):
    return load_checkpoint(folder, build()).step if checkpoints.has_checkpoint(folder) else 0

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Dying:
    """An object whose n-th operation, counted over all of them, is the process's last."""
    def __init__(self, at): self.at, self.count = at, 0
    def tick(self):
        if self.count == self.at: die()
        self.count += 1
    def around(self, function):
        def wrapped(*args, **kwargs):
            self.tick()
            result = function(*args, **kwargs)
            self.tick()
            return result
        return wrapped
    def install(self):
        for name in ("fsync", "replace", "open"):
            setattr(os, name, self.around(getattr(os, name)))
        Path.mkdir = self.around(Path.mkdir)
        def opened(*args, **kwargs):
            self.tick()
            file = open(*args, **kwargs)
            self.tick()
            write = file.write
            class Half:
                def __enter__(half): return half
                def __exit__(half, *error): file.close(); self.tick()
                def fileno(half): return file.fileno()
                def flush(half): self.tick(); file.flush(); self.tick()
                def write(half, content):
                    for part in (content[: len(content) // 2], content[len(content) // 2 :]):
                        write(part); file.flush(); self.tick()
            return Half()
        files.open = opened

train(None, 2, 0)  # imports what it needs, once for all children
'''

KILLED_AT_RANDOM = """
folder, out = sys.argv[1:]
dice, kills, steps = random.Random(int(time.time())), 0, []
path = Path(folder) / checkpoints.FILE
def stamp():
    return path.stat().st_ino if path.exists() else None
while True:
    before = stamp()
    pid = child(lambda: train(folder))
    if kills < 5:  # wait until it has written something, and a little longer
        while stamp() == before:
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
    code = status(pid)
    assert code in (0, -9), code
    steps.append(step_of(folder))
    if code == 0:
        break
    kills += 1
broken, history = train(folder)
whole, expected = train(None)
same = all(torch.equal(p, q) for p, q in zip(broken.parameters(), whole.parameters(), strict=True))
Path(out).write_text(json.dumps([kills, steps, same, history.loss == expected.loss]))
"""

KILLED_WHILE_WRITING = """
folder, out = sys.argv[1:]
seen = [0]
for at in range(24):  # a checkpoint is 16 operations
    code = status(child(lambda: (Dying(at).install(), train(folder, 24, 0, every=1))))
    assert code == -9, code
    now = step_of(folder)
    assert 0 <= now - seen[-1] <= 2, (seen, now)
    seen.append(now)
broken, history = train(folder, 24, 0, every=1)
whole, expected = train(None, 24, 0)
same = all(torch.equal(p, q) for p, q in zip(broken.parameters(), whole.parameters(), strict=True))
Path(out).write_text(json.dumps([at, seen, same, history.loss == expected.loss]))
"""


def drive(script, tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-c", DRIVER + script, str(tmp_path / "run"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="it forks, and kills")


@needs_fork
def test_killed_at_random_moments(tmp_path):
    kills, steps, same, same_losses = drive(KILLED_AT_RANDOM, tmp_path)
    assert kills == 5
    assert steps == sorted(steps)
    assert steps[-1] == 40
    assert len(set(steps)) > 2  # it got somewhere between kills, and was killed before the end
    assert same
    assert same_losses


@needs_fork
def test_killed_between_any_two_operations_of_writing(tmp_path):
    """At each attempt one operation later: the folder holds a whole checkpoint, no older than before."""
    moments, steps, same, same_losses = drive(KILLED_WHILE_WRITING, tmp_path)
    assert moments == 23
    assert steps[8] == 0  # died before the first was in place
    assert steps[-1] > 8
    assert same
    assert same_losses


def translator(*, tied, blocks=1):
    config = TransformerConfig(d_model=8, n_heads=2, n_blocks=blocks)
    return Translator(config, 9, target_vocab_size=None if tied else 9)


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_unequal_tensors_do_not_land_in_a_shared_one(tmp_path):
    save_checkpoint(tmp_path / "untied", translator(tied=False))
    model = translator(tied=True)
    before = state(model)
    with pytest.raises(
        ValueError, match=r"embed\.weight and embed_target\.weight are one tensor in this model"
    ):
        load_checkpoint(tmp_path / "untied", model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    save_checkpoint(tmp_path / "tied", model)
    for fitting in (translator(tied=True), translator(tied=False)):
        load_checkpoint(tmp_path / "tied", fitting)
        assert torch.equal(fitting.embed.weight, model.embed.weight)
        assert torch.equal(fitting.embed_target.weight, model.embed.weight)


class Transposed(nn.Module):
    """A matrix, and a view of it under another name."""

    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(3, 4))
        self.register_buffer("V", self.W.detach().T[1:])


def test_a_view_of_a_tensor_counts_as_the_tensor(tmp_path):
    model, other = Transposed(), Transposed()
    save_checkpoint(tmp_path, model)
    load_checkpoint(tmp_path, other)
    assert torch.equal(other.V, model.W.detach().T[1:])
    model.V = model.V.clone() + 1
    save_checkpoint(tmp_path, model)
    with pytest.raises(ValueError, match="W and V are one tensor in this model"):
        load_checkpoint(tmp_path, other)


def compiled(model):
    return torch.compile(model, backend="eager")


def partly_compiled(model):
    model.transformer = compiled(model.transformer)
    return model


@pytest.mark.parametrize("wrap", [compiled, partly_compiled, nn.DataParallel])
def test_what_wraps_a_model_leaves_no_trace_in_its_checkpoint(tmp_path, wrap):
    model = build(dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters())
    model(IDS[None, :5]).sum().backward()
    optimizer.step()
    plain = state(model)
    save_checkpoint(tmp_path / "plain", model, [optimizer])
    names = set(load_file(tmp_path / "plain" / FILE))
    save_checkpoint(tmp_path / "wrapped", wrap(model), [optimizer])
    assert set(load_file(tmp_path / "wrapped" / FILE)) == names
    for folder, around in (("wrapped", lambda model: model), ("plain", wrap)):
        seed_everything(1)
        fresh = GPT(model.config, vocab_size=7)
        theirs = torch.optim.AdamW(fresh.parameters())
        load_checkpoint(tmp_path / folder, around(fresh), [theirs])
        own = {name.replace("_orig_mod.", ""): value for name, value in fresh.state_dict().items()}
        assert own.keys() == plain.keys()
        assert all(torch.equal(value, plain[name]) for name, value in own.items())
        assert len(theirs.state) == len(optimizer.state)
