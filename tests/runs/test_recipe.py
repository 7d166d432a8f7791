"""`python -m tformer_lib.train` from a folder of texts to a card; stopped, gone on, refused."""

import errno
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from fnmatch import fnmatch
from io import FileIO
from itertools import pairwise

import psutil
import pytest
import torch
import torch.nn.functional as F

from tformer_lib.data.shard_writing import END, make_tokenizer
from tformer_lib.data.shards import ShardBatches, Shards
from tformer_lib.models.language import language_loss
from tformer_lib.runs import log as logs
from tformer_lib.runs import steps, words
from tformer_lib.runs.log import read_log
from tformer_lib.runs.scoring import text_nats
from tformer_lib.runs.settings import Settings
from tformer_lib.runs.words import shown
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer
from tformer_lib.train import main, parse
from tformer_lib.training import fit, seed_everything
from tformer_lib.training.optimizers import warmup_cosine

pytestmark = pytest.mark.usefixtures("one_thread")

TEXT = "the cat sat on a mat and saw two birds fly over the red house in the sun"
WORDS = TEXT.split(" ")
TINY = {
    "tokenizer.kind": "char",
    "model.context": 16,
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.n_blocks": 1,
    "train.steps": 12,
    "train.batch": 4,
    "train.warmup": 3,
    "train.checkpoint_every": 4,
    "train.log_every": 2,
    "train.tensorboard": "false",
    "evaluate.every": 6,
    "evaluate.every_tokens": 50,
    "sample.tokens": 8,
}


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for number in range(5):
        words = [WORDS[(3 * i * i + number * i) % len(WORDS)] for i in range(60)]
        (folder / f"{number}.txt").write_text(" ".join(words), "utf8")
    return folder


def arguments(texts, out, *, step="all", **changed):
    options = TINY | {name.replace("__", "."): value for name, value in changed.items()}
    named = {"data.folder": texts, "out": out} | options
    return [step, *(f"--{name}={value}" for name, value in named.items() if value is not None)]


@pytest.fixture(scope="session")
def finished(texts, tmp_path_factory):
    """A whole run, never stopped."""
    out = tmp_path_factory.mktemp("run") / "whole"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert main(arguments(texts, out, train__tensorboard="true")) == 0
    torch.set_num_threads(threads)
    return out


def weights(out):
    """The trained model's tensors."""
    network, _ = steps.trained(Settings(out=str(out)))
    return network.state_dict()


def assert_same(out, finished):
    for name, value in weights(finished).items():
        assert torch.equal(weights(out)[name], value), name


# A whole run


def test_a_run_leaves_all_that_is_promised(finished, capsys):
    card = (finished / "card.md").read_text("utf8")
    held = Shards(finished / "shards").index["held_out"]
    for part in ("| trained on | 4 |", "| held out | 1 |", held["names"][0], "train.seed", "torch 2", "nats"):
        assert part in card
    assert "processor-seconds" in card
    rows = read_log(finished / "log.csv")
    assert [row["step"] for row in rows] == [2, 4, 6, 8, 10, 12]
    assert rows[-1]["tokens"] == 12 * 4 * 16
    assert rows[-1]["loss"] < rows[0]["loss"] < 1.2 * math.log(20)
    assert list((finished / "tensorboard").iterdir())
    assert len(json.loads((finished / "samples.json").read_bytes())) == 1


def test_the_held_out_text_is_read_on_the_way(finished, texts, tmp_path, capsys):
    rows = read_log(finished / "log.csv")
    assert [row["step"] for row in rows if not math.isnan(row["held_out"])] == [6, 12]
    network, shards = steps.trained(Settings(out=str(finished)))
    ids = torch.cat([torch.tensor([shards.end]), shards.read("held_out", 0, 50)])
    assert rows[-1]["held_out"] == pytest.approx(text_nats(network, ids, 16) / 50, abs=1e-5)
    assert (
        (finished / "log.csv").read_text("utf8").splitlines()[1].endswith(",")
    )  # empty where it was not read
    assert main(arguments(texts, tmp_path, evaluate__every=None, evaluate__every_tokens=None)) == 0
    assert_same(tmp_path, finished)  # to read it changes nothing
    assert all(math.isnan(row["held_out"]) for row in read_log(tmp_path / "log.csv"))
    assert "held out 2" not in capsys.readouterr().err


def test_blocks_are_compiled_when_asked_for(texts, finished, tmp_path, monkeypatch):
    def counting(function, backend):
        asked.append(backend)
        return function

    asked = []
    monkeypatch.setattr(torch, "compile", counting)
    assert main(arguments(texts, tmp_path, train__compiled="true")) == 0
    assert asked == ["inductor"] * 2  # to see whether it can be done, and the block
    assert_same(tmp_path, finished)


def test_the_training_is_that_of_fit(finished):
    settings = Settings.from_dict(json.loads((finished / "settings.json").read_bytes()))
    shards = Shards(finished / "shards")
    options = settings.train
    seed_everything(options.seed)
    network = steps.build(settings.model, shards.vocab_size)
    history = fit(
        network,
        language_loss,
        ShardBatches(shards, batch=4, length=16),
        steps=12,
        lr=options.lr,
        weight_decay=options.weight_decay,
        warmup=3,
        optimizer="muon",
        betas=(options.beta1, options.beta2),
        momentum=options.momentum,
        min_lr_ratio=options.min_lr_ratio,
    )
    for name, value in weights(finished).items():
        torch.testing.assert_close(network.state_dict()[name], value)
    logged = [row["loss"] for row in read_log(finished / "log.csv")]
    pairs = [sum(history.loss[i : i + 2]) / 2 for i in range(0, 12, 2)]
    assert logged == pytest.approx(pairs, abs=1e-5)


def test_the_score_is_the_cost_of_the_held_out_text(finished):
    network, shards = steps.trained(Settings(out=str(finished)))
    ids = torch.cat([torch.tensor([shards.end]), shards.read("held_out", 0, shards.tokens("held_out"))])
    total = 0.0
    with torch.no_grad():
        for n in range(1, len(ids)):  # the window in which token n is predicted, one token at a time
            length, last = 16, len(ids) - 1
            starts = [*range(0, last - length, 8), last - length]
            start = next(s for s in starts if s + length >= n)
            logits = network(ids[None, start:n])[0, -1]
            total += F.cross_entropy(logits, ids[n]).item()
    found = json.loads((finished / "held_out.json").read_bytes())
    assert found["nats"] * found["tokens"] == pytest.approx(total, rel=1e-4)
    assert found["tokens"] == len(ids) - 1
    assert found["characters"] == shards.index["held_out"]["characters"] == len(ids) - 2
    assert found["bits"] == pytest.approx(total / math.log(2) / (len(ids) - 2), rel=1e-4)
    counts = torch.bincount(shards.read("train", 0, shards.tokens("train")), minlength=shards.vocab_size) + 1
    costs = -(counts / counts.sum()).log2()
    assert found["counts_bits"] == pytest.approx(costs[ids[1:]].sum().item() / found["characters"], rel=1e-4)


@pytest.mark.parametrize("length", [2, 3, 9, 16, 17, 18, 24, 25, 50])
def test_every_token_is_predicted_once(length):
    class Uniform(torch.nn.Linear):
        def forward(self, tokens):
            assert tokens.shape[1] <= 16
            return torch.zeros(*tokens.shape, 7)

    nats = text_nats(Uniform(1, 1), torch.arange(length) % 7, 16, batch=2)
    assert nats == pytest.approx((length - 1) * math.log(7))
    with pytest.raises(ValueError, match="nothing to predict"):
        text_nats(Uniform(1, 1), torch.tensor([1]), 16)


def test_steps_one_by_one_give_the_same(texts, finished, tmp_path, capsys):
    for step in ("tokenise", "train", "evaluate", "sample"):
        assert main(arguments(texts, tmp_path / "run", step=step)) == 0
    assert_same(tmp_path / "run", finished)
    score = [json.loads((out / "held_out.json").read_bytes()) for out in (tmp_path / "run", finished)]
    assert score[0] == score[1]
    capsys.readouterr()
    asked = ["--sample.prompts=[the cat, a]", "--sample.tokens=3", "--sample.temperature=0"]
    assert main(["sample", f"--out={tmp_path / 'run'}", *asked]) == 0
    written = capsys.readouterr()
    assert len(written.out) == len("the cat") + 3 + len("a") + 3 + 2
    assert "the card is" in written.err
    again = tmp_path / "elsewhere"
    shutil.move(tmp_path / "run", again)  # a run can be moved, and read without the texts
    assert main(["evaluate", f"--out={again}"]) == 0


def test_a_file_of_settings_and_what_it_prints(texts, finished, tmp_path, capsys):
    assert parse([f"--config={finished / 'settings.json'}"])[1].model.d_model == 16
    (tmp_path / "a.yaml").write_text("train: {lr: 0.5, clip: null}\nout: there\n", "utf8")
    step, settings = parse(["evaluate", f"--config={tmp_path / 'a.yaml'}", "--out=here"])
    assert (step, settings.train.lr, settings.train.clip, settings.out) == ("evaluate", 0.5, None, "here")
    with pytest.raises(SystemExit) as end:
        main(["--print_config"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert parse_text(tmp_path, printed) == Settings()
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "the peak learning rate" in capsys.readouterr().out


def parse_text(folder, text):
    (folder / "printed.yaml").write_text(text, "utf8")
    return parse([f"--config={folder / 'printed.yaml'}"])[1]


def test_byte_pairs_are_learnt_from_the_training_texts(texts, tmp_path):
    ask = arguments(texts, tmp_path, step="tokenise", tokenizer__kind="bpe", tokenizer__vocab_size=300)
    assert main(ask) == 0
    shards = Shards(tmp_path / "shards")
    held = shards.index["held_out"]["names"]
    kept = [file.read_text("utf8") for file in sorted(texts.iterdir()) if file.name not in held]
    assert shards.tokenizer == BPETokenizer.train("\n".join(kept), 300, (END,))


# Stopped and gone on


class StoppedError(Exception):
    pass


@pytest.mark.parametrize(("at", "logged"), [(0, True), (3, True), (3, False), (5, True), (11, False)])
def test_it_goes_on_wherever_it_was_stopped(texts, finished, tmp_path, monkeypatch, capsys, at, logged):
    def stops(self, step, history):
        if step < at or logged:
            real(self, step, history)
        if step == at:
            with open(self.path, "a", encoding="utf8") as file:
                file.write("13,0.5,1.")  # a line that was cut off
            raise StoppedError

    real = logs.Log.__call__
    monkeypatch.setattr(logs.Log, "__call__", stops)
    with pytest.raises(StoppedError):
        main(arguments(texts, tmp_path))
    monkeypatch.setattr(logs.Log, "__call__", real)
    assert main(arguments(texts, tmp_path)) == 0
    assert_same(tmp_path, finished)
    done = (at + 1) // 4 * 4
    assert (f"going on after step {done}" in capsys.readouterr().err) == (0 < done < 12)
    rows, expected = read_log(tmp_path / "log.csv"), read_log(finished / "log.csv")
    assert [row["loss"] for row in rows] == [row["loss"] for row in expected]
    if at != 5 and at != 11:  # else it was killed between a checkpoint's step and the line of that step
        read = [
            [row["held_out"] for row in each if not math.isnan(row["held_out"])] for each in (rows, expected)
        ]
        assert read[0] == read[1]
    assert all(a["processor_seconds"] <= b["processor_seconds"] for a, b in pairwise(rows))


def test_a_finished_run_is_not_trained_again(texts, finished, capsys):
    before = (finished / "log.csv").read_bytes()
    assert main(arguments(texts, finished, train__tensorboard="true")) == 0
    assert (finished / "log.csv").read_bytes() == before
    assert "step " not in capsys.readouterr().err


def command(*options):
    return [sys.executable, *options, "-m", "tformer_lib.train"]


def start(command, folder):
    """A run in processes of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill_after_checkpoint(run, out):
    """SIGKILL, to all its processes, when there is something to go on from."""
    deadline = time.monotonic() + 120
    while not (out / "checkpoint" / "latest.json").exists():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for process in [*psutil.Process(run.pid).children(recursive=True), psutil.Process(run.pid)]:
        process.kill()
    run.communicate()
    assert run.returncode != 0
    assert not (out / "model").exists()


LONGER = {"train__steps": 60, "train__log_every": 20}


def test_killed_and_gone_on_gives_the_same_weights(texts, tmp_path, capsys):
    assert main(arguments(texts, tmp_path / "whole", **LONGER)) == 0
    ask = arguments(texts, tmp_path / "killed", **LONGER)
    kill_after_checkpoint(start([*command(), *ask], tmp_path), tmp_path / "killed")
    capsys.readouterr()
    assert main(ask) == 0  # the same command
    assert "going on after step" in capsys.readouterr().err
    assert_same(tmp_path / "killed", tmp_path / "whole")


def test_two_processes_killed_and_gone_on(texts, tmp_path, capsys):
    ask = arguments(texts, tmp_path / "two", **LONGER)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    kill_after_checkpoint(start([*command(*torchrun), *ask], tmp_path), tmp_path / "two")
    run = start([*command(*torchrun), *ask], tmp_path)
    out, err = run.communicate(timeout=240)
    assert run.returncode == 0, err
    assert err.count("going on after step") == 1  # one of the two speaks
    assert out.count("\n") >= 1
    assert main(arguments(texts, tmp_path / "one", **LONGER)) == 0
    for name, value in weights(tmp_path / "one").items():
        torch.testing.assert_close(weights(tmp_path / "two")[name], value, rtol=1e-3, atol=1e-3)
    rows = [read_log(tmp_path / run / "log.csv") for run in ("one", "two")]
    assert [r["loss"] for r in rows[0]] == pytest.approx([r["loss"] for r in rows[1]], abs=1e-3)
    assert "2 process(es)" in (tmp_path / "two" / "card.md").read_text("utf8")


def test_a_second_run_in_the_same_folder_waits_for_none(texts, tmp_path, capsys):
    ask = arguments(texts, tmp_path / "run", train__steps=3000)
    run = start([*command(), *ask], tmp_path)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "run" / "checkpoint" / "latest.json").exists():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "another run is training in" in refused(ask, capsys)
    finally:
        run.kill()
        run.communicate()
    short = arguments(texts, tmp_path / "other")
    assert main(short) == 0  # a folder is free again when a run has ended
    assert main(short) == 0


# Refusals: code 2, one line, nothing lost


def refused(ask, capsys):
    capsys.readouterr()
    assert main(ask) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("error: ")
    assert sum(line.startswith("error") for line in lines) == 1
    return lines[-1]


def test_wrong_settings_are_refused_before_anything_is_written(texts, tmp_path, capsys):
    out = tmp_path / "run"
    (tmp_path / "a.yaml").write_text("trane: {lr: 0.5}\n", "utf8")
    cases = [
        (["--data.foldr=x"], "there is no setting data.foldr; is it data.folder?"),
        ([f"--config={tmp_path / 'a.yaml'}"], "trane"),
        ([f"--config={tmp_path / 'b.yaml'}"], "b.yaml"),
        (["--train.lr=fast"], "train.lr"),
        (["--train.optimizer=sgd"], "train.optimizer"),
        (["bake"], "bake"),
        (arguments(None, out), "there is no text: say which folder"),
        (arguments(tmp_path / "nowhere", out), "nowhere is no folder"),
        (arguments(texts, out, data__pattern="*.md"), "called *.md (it holds 5 .txt)"),
        (arguments(texts, out, model__n_heads=3), "n_heads must divide d_model"),
        (arguments(texts, out, train__lr=-1), "lr must lie in"),
        (arguments(texts, out, evaluate__every=0), "evaluate.every must be at least 1"),
        (arguments(texts, out, train__accumulate=3), "a batch of 4 windows cannot be cut evenly for 1"),
        (arguments(texts, out, device="cake"), "device cake"),
        (arguments(texts, out, tokenizer__kind="bpe", tokenizer__vocab_size=9), "vocab_size is too small"),
        (arguments(texts, out, step="train"), "there are no shards in"),
        (arguments(texts, out, step="evaluate"), "there is no trained model in"),
        (arguments(texts, out, step="sample"), "there is no trained model in"),
    ]
    for ask, message in cases:
        assert message in refused(ask, capsys)
    assert not (out / "settings.json").exists()
    assert not (out / "shards" / "index.json").exists()


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_a_run_of_other_settings_texts_or_tokens_is_refused(texts, copy, tmp_path, capsys):
    other = shutil.copytree(texts, tmp_path / "texts")
    (other / "new.txt").write_text("a new text", "utf8")
    cases = [
        (arguments(texts, copy, train__lr=0.5), "train.lr was 0.01 and is 0.5"),
        (arguments(texts, copy, model__d_model=32), "model.d_model was 16 and is 32"),
        (arguments(texts, copy, train__steps=11), "train.steps was 12 and is 11"),
        (arguments(texts, copy, data__held_out=0.4), "data.held_out was 0.1 and is 0.4"),
        (arguments(texts, copy, tokenizer__kind="bpe"), "tokenizer.kind was 'char' and is 'bpe'"),
        (arguments(other, copy), "of something else: other texts"),
    ]
    before = (copy / "settings.json").read_bytes()
    for ask, message in cases:
        assert message in refused(ask, capsys)
    assert (copy / "settings.json").read_bytes() == before
    assert main(arguments(other, tmp_path / "b", step="tokenise")) == 0
    shards = f"--data.shards={tmp_path / 'b' / 'shards'}"
    assert "other tokens" in refused([*arguments(None, copy, step="train"), shards], capsys)
    assert "trained on other tokens" in refused(["evaluate", f"--out={copy}", shards], capsys)
    assert main(arguments(texts, copy)) == 0  # nothing is lost


def test_damage_is_named(texts, copy, capsys):
    ask = arguments(texts, copy)
    shard, (made,) = copy / "shards" / "train-00000.bin", copy.glob("checkpoint/step-*")
    good = shard.read_bytes()
    shard.write_bytes(good[:-2])
    assert "train-00000.bin is cut off or altered" in refused(ask, capsys)
    shard.write_bytes(good[2:] + good[:2])
    assert "train-00000.bin is altered" in refused(ask, capsys)
    shard.write_bytes(good)
    part = next(made.glob("*.distcp"))
    kept = part.read_bytes()
    part.write_bytes(kept[:-10])
    assert "is damaged" in refused(ask, capsys)
    part.write_bytes(kept)
    (copy / "tokens.json").unlink()
    assert "tokens.json is missing or damaged" in refused(ask, capsys)
    (copy / "settings.json").write_text('{"cake": 1}', "utf8")
    assert "settings.json holds no settings of a run" in refused(ask, capsys)


def test_prompts_that_cannot_be_read_and_texts_that_are_not_held_out(texts, copy, tmp_path, capsys):
    ask = [f"--out={copy}", "--sample.prompts=[Ω]"]
    assert "the prompt 'Ω': character 0" in refused(["sample", *ask], capsys)
    assert main(arguments(texts, tmp_path / "b", data__held_out=0, step="tokenise")) == 0
    none = arguments(texts, tmp_path / "b", data__held_out=0, step="train")
    assert "that could be read on the way: leave evaluate.every out" in refused(none, capsys)
    assert main([option for option in none if "evaluate.every" not in option]) == 0
    assert "nothing was held out" in refused(["evaluate", f"--out={tmp_path / 'b'}"], capsys)


def test_one_that_is_interrupted_says_how_to_go_on(texts, tmp_path, monkeypatch, capsys):
    def stops(settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "tokenise", stops)
    assert main(arguments(texts, tmp_path)) == 130
    assert "the same command goes on" in capsys.readouterr().err


# A full disk: one sentence, nothing half-written, and the same command goes on


class FullDisk:
    """A file system that has no room for files of this name, as Python's `open` and `os.replace` see it."""

    def __init__(self, monkeypatch, name):
        import builtins

        self.full, self.name = True, name
        real_open = builtins.open

        def refusing(path, mode="r", *arguments, **options):
            file = real_open(path, mode, *arguments, **options)
            if self.full and isinstance(path, str | os.PathLike) and set(mode) & set("wa"):
                plain = os.path.basename(path).removeprefix(".").removesuffix(".part")
                if fnmatch(plain, self.name):
                    file.close()
                    return Full(path, mode)
            return file

        monkeypatch.setattr(builtins, "open", refusing)
        monkeypatch.setattr("io.open", refusing)  # which pathlib calls


class Full(FileIO):
    """Takes half of what is written, as a real disk may."""

    def write(self, content):
        content = bytes(content)
        super().write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("name", "done"),
    [
        ("train-00000.bin", 0),
        ("tformer_tokenizer.json", 0),
        ("index.json", 0),
        ("settings.json", 0),
        ("log.csv", 4),
        ("*.distcp", 4),
        ("metadata*", 4),
        ("latest.json", 4),
        ("checkpoint.safetensors", 12),
        ("held_out.json", 12),
        ("samples.json", 12),
        ("card.md", 12),
    ],
)
def test_a_full_disk(texts, finished, tmp_path, monkeypatch, capsys, name, done):
    ask = arguments(texts, tmp_path / "run")
    if done:  # it fills up behind the first checkpoint
        real = logs.Log.__call__

        def stops(self, step, history):
            if step == 4:
                raise StoppedError
            real(self, step, history)

        monkeypatch.setattr(logs.Log, "__call__", stops)
        with pytest.raises(StoppedError):
            main(ask)
        monkeypatch.setattr(logs.Log, "__call__", real)
    before = (tmp_path / "run" / "log.csv").read_bytes() if done else b""
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, name)
        said = refused(ask, capsys)
        disk.full = False
    assert "there is no room left on the disk (No space left on device)" in said
    assert str(tmp_path / "run") in said.split(" could not be")[0]  # what could not be written
    assert "make room there" in said
    assert ("there is no checkpoint yet" if not done else f"after step {done}, is whole") in said
    left = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not [path for path in left if path.name.endswith(".part")]
    assert len([*(tmp_path / "run" / "checkpoint").glob("step-*")]) == bool(done)
    if name == "log.csv":
        assert (tmp_path / "run" / "log.csv").read_bytes() == before
    if name in ("train-00000.bin", "index.json"):
        assert not [path for path in left if path.parent.name == "shards"]
    assert main(ask) == 0
    assert_same(tmp_path / "run", finished)
    rows = [read_log(out / "log.csv") for out in (tmp_path / "run", finished)]
    assert [row["loss"] for row in rows[0]] == [row["loss"] for row in rows[1]]


def test_a_line_of_the_log_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    logs.append(path, b"one\n")
    disk = FullDisk(monkeypatch, "log.csv")
    with pytest.raises(OSError, match=r"No space left on device: '.*log\.csv'"):
        logs.append(path, b"two two\n")
    disk.full = False
    logs.append(path, b"three\n")
    assert path.read_bytes() == b"one\nthree\n"


# A run is lengthened


def rates(out):
    with open(out / "log.csv", encoding="utf8") as file:
        return [float(line.split(",")[3]) for line in [*file][1:]]


def test_a_finished_run_is_lengthened_and_killed_on_the_way(texts, finished, tmp_path, monkeypatch, capsys):
    first, second = (shutil.copytree(finished, tmp_path / name) for name in ("a", "b"))
    longer = {"train__steps": 20, "train__tensorboard": "true"}
    assert main(arguments(texts, first, **longer)) == 0
    said = capsys.readouterr().err
    assert "lengthened from 12 to 20 steps: its first 12 stay as they are" in said
    assert [row["step"] for row in read_log(first / "log.csv")] == list(range(2, 21, 2))
    assert rates(first)[:6] == rates(finished)
    plan = [0.01 * warmup_cosine(step - 1, 20, 3, 0.05) for step in range(14, 21, 2)]
    assert rates(first)[6:] == pytest.approx(plan)
    card = (first / "card.md").read_text("utf8")
    assert "lengthened from 12 to 20 steps after step 12" in card
    assert "trained for 20 of 20 steps" in card
    real = logs.Log.__call__

    for at in (13, 16):  # before its first new checkpoint, and after it

        def stops(self, step, history, at=at):
            real(self, step, history)
            if step == at:
                raise StoppedError

        monkeypatch.setattr(logs.Log, "__call__", stops)
        with pytest.raises(StoppedError):
            main(arguments(texts, second, **longer))
    monkeypatch.setattr(logs.Log, "__call__", real)
    assert main(arguments(texts, second, **longer)) == 0
    assert_same(second, first)
    assert "lengthened from 12 to 20 steps after step 12" in (second / "card.md").read_text("utf8")
    assert "a run of 20 steps" not in refused(arguments(texts, second), capsys)
    said = refused(arguments(texts, second), capsys)
    assert "train.steps was 20 and is 12" in said
    assert "of which train.steps can be raised" in said


def test_what_a_refusal_advises_works(texts, finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "moved")
    said = refused(arguments(texts, copy, train__lr=0.5), capsys)
    advice = said.partition("go on with the settings that it has: ")[2].split()
    assert main(advice[:4]) == 0
    assert_same(copy, finished)


def test_an_older_score_is_not_that_of_a_longer_run(texts, finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "run")
    assert main(arguments(texts, copy, step="train", train__steps=14)) == 0
    assert not (copy / "held_out.json").exists()
    assert main(["sample", f"--out={copy}", "--sample.tokens=2"]) == 0
    assert "nats a token\n\n| held out" not in (copy / "card.md").read_text("utf8")


def test_a_finished_run_says_so(texts, finished, capsys):
    capsys.readouterr()
    assert main(arguments(texts, finished, step="train", train__tensorboard="true")) == 0
    said = capsys.readouterr().err
    assert "is finished: all 12 steps are done" in said
    assert "--train.steps 24" in said
    assert "training " not in said


# A model that stands alone


def test_a_model_is_shared_alone(finished, tmp_path, capsys):
    ask = ["--sample.prompts=the ", "--sample.tokens=5"]
    capsys.readouterr()
    assert main(["sample", f"--out={shutil.copytree(finished, tmp_path / 'run')}", *ask]) == 0
    expected = capsys.readouterr().out
    assert not [*finished.rglob("tokenizer.json")]  # that is Hugging Face's, of another format
    model = shutil.copytree(finished / "model", tmp_path / "model")
    files = sorted(path.name for path in model.iterdir())
    for out in (model, tmp_path):  # the folder itself, and the one that it lies in
        assert main(["sample", f"--out={out}", *ask]) == 0
        assert capsys.readouterr().out == expected
    assert sorted(path.name for path in model.iterdir()) == files
    shutil.rmtree(tmp_path / "run" / "shards")
    assert main(["sample", f"--out={tmp_path / 'run'}", *ask]) == 0
    written = capsys.readouterr()
    assert written.out == expected
    assert "the card is" in written.err
    assert "there are no shards in" in refused(["evaluate", f"--out={tmp_path / 'run'}"], capsys)
    (model / "tformer_model.json").write_text('{"kind": "cake"}', "utf8")
    assert "tformer_model.json does not describe a model" in refused(["sample", f"--out={model}"], capsys)


def test_a_run_of_an_earlier_version(texts, copy, tmp_path, capsys):
    for name in ("tformer_model.json", "tformer_tokenizer.json"):
        (copy / "model" / name).unlink()
    note = json.loads((copy / "tokens.json").read_bytes())
    (copy / "tokens.json").write_text(json.dumps({"shards": note["shards"]}), "utf8")
    assert main(["sample", f"--out={copy}", "--sample.tokens=2"]) == 0
    shutil.move(copy / "shards", tmp_path / "shards")
    assert "--data.shards says where they are" in refused(["sample", f"--out={copy}"], capsys)
    assert main(["sample", f"--out={copy}", f"--data.shards={tmp_path / 'shards'}"]) == 0
    assert main(arguments(texts, copy, data__shards=tmp_path / "shards")) == 0  # which completes the model
    assert (copy / "model" / "tformer_tokenizer.json").exists()


@pytest.mark.parametrize("step", ["evaluate", "sample"])
def test_altered_shards_are_found_where_they_are_read(copy, step, capsys):
    if step == "sample":  # which reads them in old runs alone
        (copy / "model" / "tformer_model.json").unlink()
    shard = copy / "shards" / "held_out-00000.bin"
    content = bytearray(shard.read_bytes())
    content[4] ^= 1
    shard.write_bytes(content)
    assert "held_out-00000.bin is altered" in refused([step, f"--out={copy}"], capsys)


def test_text_of_a_run_that_is_read_only_is_not_lost(copy, monkeypatch, capsys):
    def refuses(path, content):
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(steps, "replace_file", refuses)
    monkeypatch.setattr("tformer_lib.runs.card.replace_file", refuses)
    capsys.readouterr()
    assert main(["sample", f"--out={copy}", "--sample.prompts=the cat", "--sample.tokens=3"]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("the cat")
    assert "samples.json does not have this text: Read-only file system" in written.err
    assert "card.md stays as it is" in written.err


def test_samples_show_no_control_characters(copy, monkeypatch, capsys):
    monkeypatch.setattr(steps, "generate", lambda *_, **__: torch.tensor([1, 2]))
    monkeypatch.setattr(CharTokenizer, "decode", lambda *_: "a\x1b[31m\rb\n\tc\x9b\x00\u202ed é")
    capsys.readouterr()
    assert main(["sample", f"--out={copy}"]) == 0
    wanted = "a\\x1b[31m\\rb\n\tc\\x9b\\x00\\u202ed é\n"
    assert capsys.readouterr().out == wanted
    assert wanted in (copy / "card.md").read_text("utf8")
    assert json.loads((copy / "samples.json").read_bytes())[0].startswith("a\x1b[31m")
    assert shown("é\x07", "ascii") == "\\xe9\\x07"


# What stands in the folder of texts


def test_nothing_held_out(texts, tmp_path, capsys):
    ask = arguments(texts, tmp_path / "a", data__held_out=0)
    assert "leave evaluate.every out" in refused(ask, capsys)
    assert not (tmp_path / "a").exists()
    assert main([each for each in ask if "evaluate.every=" not in each]) == 0
    assert "nothing was held out, so there is no score" in capsys.readouterr().err
    assert "nothing was held out: there is no score" in (tmp_path / "a" / "card.md").read_text("utf8")
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "x.txt").write_text("a b c d e f " * 9, "utf8")
    said = refused(arguments(alone, tmp_path / "b"), capsys)
    assert "--data.separator" in said
    assert main(arguments(alone, tmp_path / "b", data__separator="c")) == 0
    assert "data.held_out" in refused(arguments(texts, tmp_path / "c", data__held_out=1.5), capsys)


def test_a_run_inside_the_texts_is_none_of_them(texts, tmp_path, capsys):
    folder = shutil.copytree(texts, tmp_path / "texts")
    for out in (folder / "run", folder / "other", folder):
        ask = arguments(folder, out, data__pattern="*", tokenizer__kind="bpe", tokenizer__vocab_size=260)
        assert main(ask) == 0
        assert main(ask) == 0
        index = Shards(out / "shards").index
        assert index["train"]["documents"] + index["held_out"]["documents"] == 5


def test_what_was_held_out_is_said(texts, tmp_path, capsys):
    folder = shutil.copytree(texts, tmp_path / "texts")
    shutil.copy(folder / "0.txt", folder / "again.txt")
    (folder / "long.txt").write_text("the cat sat on a mat " * 200, "utf8")
    assert main(arguments(folder, tmp_path / "run", step="tokenise", data__held_out=0.01)) == 0
    said = capsys.readouterr().err
    assert "1 document(s) are the same as another one" in said
    assert "since whole documents are held out" in said
    shards = Shards(tmp_path / "run" / "shards")
    share = shards.tokens("held_out") / (shards.tokens("train") + shards.tokens("held_out"))
    assert f"({share:.1%}, in 1 of 7 documents)" in said


def test_signs_of_life_while_a_long_text_is_cut(texts, tmp_path, monkeypatch, capsys):
    signs = "making the tokenizer", "cutting 0.txt, after 0% of the characters"
    heard, real = {sign: threading.Event() for sign in signs}, words.say

    def say(text):
        for sign, event in heard.items():
            if text.startswith(f"{sign} (") and text.endswith(" s)"):
                event.set()
        real(text)

    def make(*arguments, **options):
        assert heard[signs[0]].wait(60)
        return make_tokenizer(*arguments, **options)

    def encode(self, text):
        assert heard[signs[1]].wait(60)
        return real_encode(self, text)

    real_encode = CharTokenizer.encode
    monkeypatch.setattr(words, "EVERY", 0.001)
    monkeypatch.setattr(words, "say", say)
    monkeypatch.setattr(steps, "make_tokenizer", make)
    monkeypatch.setattr(CharTokenizer, "encode", encode)
    assert main(arguments(texts, tmp_path, step="tokenise")) == 0
    said = capsys.readouterr().err
    assert f"{signs[0]} (" in said
    assert f"{signs[1]} (" in said


# The command line


def test_files_of_settings_are_named_with_what_is_wrong_in_them(tmp_path, capsys):
    file = tmp_path / "a.yaml"
    for content, message in (
        ("train: {stepz: 4}\n", "there is no setting train.stepz; is it train.steps?"),
        ("stepz: 4\n", "there is no setting stepz; is it train.steps?"),
        ("train: {lr: fast}\n", "train.lr"),
        ("train: [1\n", "parsing"),
    ):
        file.write_text(content, "utf8")
        for ask in ([f"--config={file}"], ["--config", str(file)]):
            said = refused(ask, capsys)
            assert said.startswith(f"error: {file}: ")
            assert message in said


@pytest.mark.parametrize(
    ("given", "prompts"),
    [
        ("def ", ["def "]),
        ('["a","b c"]', ["a", "b c"]),
        ("[the cat, a]", ["the cat", "a"]),
        ("", [""]),
        ("5", ["5"]),
    ],
)
def test_one_prompt_or_a_list(tmp_path, given, prompts):
    assert parse(["sample", "--sample.prompts", given])[1].sample.prompts == prompts
    (tmp_path / "a.json").write_text(json.dumps({"sample": {"prompts": "def "}}), "utf8")
    assert parse([f"--config={tmp_path / 'a.json'}"])[1].sample.prompts == ["def "]
    assert Settings.from_dict({"sample": {"prompts": "def "}}).sample.prompts == ["def "]


def test_without_the_extra_the_hint_comes_first(tmp_path):
    code = (
        "import sys\n"
        "for name in ('cloudpickle', 'filelock', 'jsonargparse', 'tensorboard'): sys.modules[name] = None\n"
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if sys.modules.get(name, 1) is None else real(name, *a)\n"
        "import runpy\n"
        "sys.argv = ['train', '--data.folder=x']\n"
        "runpy.run_module('tformer_lib.train', run_name='__main__')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert run.stderr == (
        'error: cloudpickle, filelock, jsonargparse not installed: pip install "tformer-lib[train]"\n'
    )


def test_workers_end_with_a_launcher_that_is_killed(texts, tmp_path):
    ask = arguments(texts, tmp_path / "two", train__steps=100_000)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run = start([*command(*torchrun), *ask], tmp_path)
    deadline = time.monotonic() + 240
    while not (tmp_path / "two" / "checkpoint" / "latest.json").exists():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = psutil.Process(run.pid).children(recursive=True)
    assert len(workers) >= 2
    run.kill()
    try:
        _, left = psutil.wait_procs(workers, timeout=120)
        assert not [w for w in left if w.status() != psutil.STATUS_ZOMBIE]
    finally:
        for worker in workers:
            if worker.is_running():
                worker.kill()
        run.communicate()
