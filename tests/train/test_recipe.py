"""`python -m tformer_lib.train` from a folder of texts to a card; stopped, gone on, refused."""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from itertools import pairwise

import psutil
import pytest
import torch
import torch.nn.functional as F

from tformer_lib.data.shard_writing import END
from tformer_lib.data.shards import ShardBatches, Shards
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.train import log as logs
from tformer_lib.train import steps
from tformer_lib.train.__main__ import main, parse
from tformer_lib.train.log import read_log
from tformer_lib.train.scoring import text_nats
from tformer_lib.train.settings import Settings
from tformer_lib.training import fit, seed_everything

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
    written = ["--sample.prompts=[the cat, a]", "--sample.tokens=3", "--sample.temperature=0"]
    assert main(["sample", f"--out={tmp_path / 'run'}", *written]) == 0
    shown = capsys.readouterr()
    assert len(shown.out) == len("the cat") + 3 + len("a") + 3 + 2
    assert "the card is" in shown.err
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
        (arguments(texts, copy, train__steps=13), "train.steps was 12 and is 13"),
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

    monkeypatch.setitem(sys.modules["tformer_lib.train.__main__"].STEPS, "all", (stops,))
    assert main(arguments(texts, tmp_path)) == 130
    assert "the same command goes on" in capsys.readouterr().err
