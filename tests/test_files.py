"""Files are replaced in one step, or stay as they were."""

import errno
import os

import pytest

from tformer_lib.files import replace_file


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    replace_file(path, b"old")

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, step, broken)
    with pytest.raises(OSError, match="disk full"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_new_content_takes_the_old_one_s_place_and_a_killed_writer_s_part(tmp_path):
    path = tmp_path / "file"
    replace_file(path, b"old")
    (tmp_path / ".file.part").write_bytes(b"left by a writer that was killed, and longer")
    replace_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_error_of_the_disk_names_the_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as `write` and `fsync` say it

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*file'") as caught:
        replace_file(tmp_path / "file", b"new")
    assert caught.value.filename == str(tmp_path / "file")
    assert not [*tmp_path.iterdir()]
