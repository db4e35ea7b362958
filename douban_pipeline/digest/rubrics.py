"""The criteria for articles: two files that the operator edits, identified by the hash of their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from douban_pipeline.core.files import replaced

SUBJECT, RUBRIC = "subject.md", "rubric.md"
PROMPT_VERSION = "1"
"""Incremented when the surrounding prompt changes the meaning of answers."""
_LONGEST = 20_000


class RubricError(Exception):
    """An operator's file cannot be used; the message names the file and the remedy."""


@dataclass(frozen=True)
class Rubric:
    """What articles are judged for (``subject``), how they are scored (``rubric``), and the origin of both."""

    subject: str
    rubric: str
    origin: str

    @cached_property
    def hash(self) -> str:
        """Identifies this version; stored with each result."""
        return hashlib.sha256("\x1f".join((PROMPT_VERSION, self.subject, self.rubric)).encode()).hexdigest()


def built_in(name: str) -> str:
    """Return a file shipped with the package."""
    return files("douban_pipeline.digest").joinpath("defaults", name).read_text(encoding="utf-8")


def read_rubric(folder: Path) -> Rubric:
    """Return the current rubric: the files in ``folder``, or the built-in ones where a file is missing.

    Raises:
        RubricError: A file cannot be read, is empty or too long.
    """
    found = {name: _own(folder / name) for name in (SUBJECT, RUBRIC)}
    texts = {name: built_in(name) if text is None else text for name, text in found.items()}
    origins = ["内置" if text is None else str(folder / name) for name, text in found.items()]
    return Rubric(texts[SUBJECT].strip(), texts[RUBRIC].strip(), "、".join(dict.fromkeys(origins)))


def write_defaults(folder: Path) -> list[Path]:
    """Write the missing files, for the operator to edit; return them.

    Raises:
        OSError: One cannot be written; it is still missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [folder / name for name in (SUBJECT, RUBRIC) if not (folder / name).exists()]
    for path in missing:
        with replaced(path) as part:  # a file cut off by a full disk would be taken for the operator's
            part.write_text(built_in(path.name), encoding="utf-8")
    return missing


def _own(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RubricError(f"{path} 无法读取（{type(error).__name__}）：改成 UTF-8 文本，或删除它以用内置的") from error
    if not text.strip() or len(text) > _LONGEST:
        raise RubricError(f"{path} 为空或超过 {_LONGEST} 字：改好它，或删除它以用内置的")
    return text
