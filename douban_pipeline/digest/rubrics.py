"""What articles are judged for and how: two files that the operator edits, known by the hash of what they say."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

SUBJECT, RUBRIC = "subject.md", "rubric.md"
PROMPT_VERSION = "1"
"""Raised when the prompt around them changes what answers mean."""
_LONGEST = 20_000


class RubricError(Exception):
    """A file of the operator cannot be used; the message names it and what to do."""


@dataclass(frozen=True)
class Rubric:
    """What articles are judged for (``subject``) and how they are scored (``rubric``), and where both come from."""

    subject: str
    rubric: str
    origin: str

    @cached_property
    def hash(self) -> str:
        """What tells it from every other version, kept with each result."""
        return hashlib.sha256("\x1f".join((PROMPT_VERSION, self.subject, self.rubric)).encode()).hexdigest()


def built_in(name: str) -> str:
    """Return a file as it comes with the package."""
    return files("douban_pipeline.digest").joinpath("defaults", name).read_text(encoding="utf-8")


def read_rubric(folder: Path) -> Rubric:
    """Return what is in force: the files in ``folder``, and what is built in for those that are not there.

    Raises:
        RubricError: A file cannot be read, is empty or too long.
    """
    found = {name: _own(folder / name) for name in (SUBJECT, RUBRIC)}
    texts = {name: built_in(name) if text is None else text for name, text in found.items()}
    origins = ["内置" if text is None else str(folder / name) for name, text in found.items()]
    return Rubric(texts[SUBJECT].strip(), texts[RUBRIC].strip(), "、".join(dict.fromkeys(origins)))


def write_defaults(folder: Path) -> list[Path]:
    """Write the files that are not there yet, for the operator to edit; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in (SUBJECT, RUBRIC):
        path = folder / name
        if not path.exists():
            path.write_text(built_in(name), encoding="utf-8")
            written.append(path)
    return written


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
