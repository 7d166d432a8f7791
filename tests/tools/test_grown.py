"""The script that Part I grows: collected from tagged cells, short, equal to the library; and it writes."""

import json
import subprocess
import sys

import grown
import pytest
import torch
from nbformat import v4
from torch import nn

from tests.site.pages import ROOT
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models import gpt
from tformer_lib.models.language import language_loss

TRAIN = 'def train(model, ids, steps, lr):\n    """Trains."""\n\n    return loss(model)\n\n\nshown = 1'
SAMPLE = "@torch.no_grad()\ndef sample(model, ids, length):  # later\n    return ids"
GPT = (
    'class GPT:\n    """A\n    model."""\n\n    x = 1\n\n'
    '    def forward(self):\n        """Goes."""\n        return Part'
)


@pytest.fixture
def book(tmp_path):
    """Writes notebooks, in order of their names: from a name to its cells, each a source and its tags."""

    def write(**notebooks):
        for name, cells in notebooks.items():
            made = [v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in cells]
            content = v4.new_notebook(cells=[v4.new_markdown_cell("def no(): ..."), *made])
            (tmp_path / f"{name[1:]}.ipynb").write_text(json.dumps(content), "utf8")
        return sorted(tmp_path.glob("*.ipynb"))

    return write


def test_what_is_needed_comes_in_in_the_order_of_the_chapters(book):
    folder = book(
        _02_second=[(SAMPLE, ["grown"]), ("def three(): ...", []), ("class Part:\n    pass", ["grown", "x"])],
        _01_first=[(TRAIN, ["grown"]), ("def loss(model):\n    return 0", ["grown"])],
        _06_last=[(GPT, ["grown"]), ("class DecoderBlock(Part):\n    pass", ["grown"])],
        _05_unused=[("def unused():\n    return GPT", ["grown"])],
    )
    script = grown.collect(folder)
    between = script.removeprefix(grown.HEAD).removesuffix(grown.MAIN)
    parts = [
        "def train(model, ids, steps, lr):\n    return loss(model)",
        "def loss(model):\n    return 0",
        SAMPLE,
        "class Part:\n    pass",
        "class GPT:\n    x = 1\n    def forward(self):\n        return Part",
        "class DecoderBlock(Part):\n    pass",
    ]
    assert between == "\n" + "\n\n".join(parts) + "\n\n"
    compile(script, "grown.py", "exec")


def test_a_later_version_takes_the_place_of_an_earlier_one(book):
    folder = book(
        _01_first=[(TRAIN, ["grown"]), (SAMPLE, ["grown"])],
        _06_last=[("def train(model):\n    return 1.0", ["grown"])],
    )
    script = grown.collect(folder)
    assert script.count("def train(") == 1
    assert script.index("def sample(") < script.index("def train(model):\n    return 1.0")


def test_notebooks_without_such_cells_are_refused(book):
    with pytest.raises(ValueError, match="has the tag 'grown'"):
        grown.collect(book(_01_first=[(TRAIN, [])]))


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """The file that `make grown` writes."""
    path = tmp_path_factory.mktemp("grown") / "grown.py"
    assert grown.main(["--to", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def parts(script):
    """What the file defines."""
    found = {"__name__": "grown_script"}
    exec(compile(script.read_text("utf8"), str(script), "exec"), found)
    return found


def test_it_is_short_and_has_every_part(script, parts):
    lines = script.read_text("utf8").splitlines()
    assert len(lines) <= grown.MOST_LINES
    assert max(map(len, lines)) <= 120
    wanted = {"language_loss", "train", "sample", "attend", "MultiHead", "MLP", "Block", "GPT"} | set(
        grown.ALSO
    )
    assert wanted <= set(parts)


def copy(source: nn.Module, target: nn.Module) -> None:
    """The parameters of a linear map or a norm; a bias that the source lacks is zero."""
    own, other = list(source.parameters()), list(target.parameters())
    for parameter in other[len(own) :]:
        nn.init.zeros_(parameter)
    for a, b in zip(own, other, strict=False):
        b.data.copy_(a)


def test_its_model_is_the_library_s(parts):
    """The same weights, drawn at random, give the same logits and the same loss, in float64."""
    torch.manual_seed(0)
    ours = parts["GPT"](11, D=16, H=2, M=3, context=8).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.5)
    config = TransformerConfig(d_model=16, n_heads=2, n_blocks=3)
    theirs = gpt.GPT(config, 11, positions=LearnedPositions(8, 16)).double()
    theirs.embed.weight.data.copy_(ours.embed.weight)
    theirs.positions.table.data.copy_(ours.place.weight)
    copy(ours.norm, theirs.transformer.final_norm)
    for a, b in zip(ours.blocks, theirs.transformer.blocks, strict=True):
        (attention,) = [module for module in a.children() if isinstance(module, parts["MultiHead"])]
        (mlp,) = [module for module in a.children() if isinstance(module, parts["MLP"])]
        first, second = [module for module in a.children() if module not in (attention, mlp)]
        for name in ("W_q", "W_k", "W_v", "W_o"):
            copy(getattr(attention, name), getattr(b.self_attention, name))
        into, out = [module for module in mlp.modules() if isinstance(module, nn.Linear)]
        copy(into, b.mlp.W_in)
        copy(out, b.mlp.W_out)
        copy(first, b.self_attention_norm)
        copy(second, b.mlp_norm)
    tokens = torch.randint(11, (4, 8))
    torch.testing.assert_close(ours(tokens), theirs(tokens))
    torch.testing.assert_close(parts["language_loss"](ours, tokens), language_loss(theirs, tokens))


def test_it_learns(parts):
    ids = torch.arange(400) % 7
    torch.manual_seed(0)
    model = parts["GPT"](7, D=16, H=2, M=1, context=8)
    before = parts["language_loss"](model, ids[None, :9])
    parts["train"](model, ids, 60, lr=1e-2, B=8, N=8)
    assert parts["language_loss"](model, ids[None, :9]) < before / 4
    written = parts["sample"](model, ids[:3], 12, temperature=0.1)
    assert written.tolist() == [n % 7 for n in range(15)]


def test_it_runs_on_a_text(script, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("to be, or not to be, that is the question\n" * 40, "utf8")
    command = [sys.executable, str(script), str(text), "20"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout) == 302  # the first letter, 300 more, and the end of the line
    assert set(run.stdout) <= set(text.read_text("utf8"))


def test_the_site_offers_it():
    assert "tformer_grown: book/site/extensions" in (ROOT / "_config.yml").read_text("utf8")
