"""A file is read the same whether and however it is packed, and a broken one says in a few words what is wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from douban_pipeline.core.files import FILE_PROBLEMS, unpacked, what_is_wrong

TEXT = b"one\ntwo\n" * 500
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()], ids=["plain", *PACKERS])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.xz"])
def test_what_a_file_is_is_told_by_its_first_bytes(tmp_path: Path, pack: Callable[[bytes], bytes], name: str) -> None:
    path = tmp_path / name
    path.write_bytes(pack(TEXT))
    with unpacked(path) as file:
        assert list(file) == TEXT.splitlines(keepends=True)


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with unpacked(path) as file:
        assert list(file) == []


@pytest.mark.parametrize("kind", PACKERS)
def test_a_file_that_ends_in_the_middle_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "cut"
    path.write_bytes(PACKERS[kind](TEXT)[:-12])
    with pytest.raises(FILE_PROBLEMS) as refused, unpacked(path) as file:
        file.read()
    assert what_is_wrong(refused.value)


def test_a_missing_file_is_told_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(FILE_PROBLEMS) as refused, unpacked(tmp_path / "missing"):
        pass
    assert what_is_wrong(refused.value) == "No such file or directory"
