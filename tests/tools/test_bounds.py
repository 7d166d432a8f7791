"""The versions that the weekly run of the unit tests installs are the ends of pyproject.toml's ranges."""

import tomllib

import pytest
from bounds import ROOT, bounds
from packaging.requirements import Requirement


def asked():
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]["dependencies"]
    return {Requirement(line).name: Requirement(line).specifier for line in lines}


def test_the_oldest_is_in_the_range_and_nothing_older_is():
    for line in bounds("oldest"):
        name, _, version = line.partition("==")
        assert asked()[name].contains(version)
        parts = version.split(".")
        older = ".".join([parts[0], str(int(parts[1]) - 1), *parts[2:]])
        assert not asked()[name].contains(older)


def test_the_newest_is_left_to_pip():
    assert [Requirement(line).specifier for line in bounds("newest")] == [asked()["torch"], asked()["numpy"]]


def test_a_range_without_a_lower_end_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch", "numpy>=1.26"]\n')
    with pytest.raises(ValueError, match="torch has no lower end"):
        bounds("oldest", tmp_path / "pyproject.toml")


def test_the_workflow_runs_both():
    text = (ROOT / ".github" / "workflows" / "versions.yml").read_text("utf8")
    assert "[oldest, newest]" in text
    assert "tools/bounds.py" in text
