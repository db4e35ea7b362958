"""A file is replaced whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from douban_pipeline.core.files import replaced


def test_a_file_is_replaced_with_its_permissions_and_through_links(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    with replaced(link) as part:
        part.write_text("after")
        assert path.read_text() == "before"
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("after", 0o640, True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]


def test_a_new_file_is_as_readable_as_any_and_a_chosen_mode_counts(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    for name, mode in (("plain", None), ("chosen", 0o600)):
        with replaced(tmp_path / name, mode) as part:
            part.write_text("x")
    assert (tmp_path / "plain").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert (tmp_path / "chosen").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_what_was_there(tmp_path: Path, error: type[BaseException] | BaseException) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def write() -> None:
        with replaced(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises((KeyboardInterrupt, OSError)):
        write()
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "before"


def test_the_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "nowhere" / "file", tmp_path / "folder"):
        with pytest.raises((FileNotFoundError, IsADirectoryError)) as caught, replaced(path) as part:
            part.write_text("x")
        assert caught.value.filename == str(path)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_pipe_is_written_itself(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with replaced(pipe) as part:
        part.write_text("through")
    reader.join()
    assert read == ["through"]
