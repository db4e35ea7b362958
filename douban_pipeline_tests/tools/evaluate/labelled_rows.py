"""Input files of an evaluation: a corpus of subjects, and labelled rows. JSON lines; rows also as CSV.

They may be compressed with gzip, xz or bzip2.
"""

from __future__ import annotations

import csv
import enum
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.files import FILE_PROBLEMS, unpacked, what_is_wrong
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.matching import Kind, Video
from douban_pipeline.matching.site_videos import facts_of_values

CLEANING_SOURCES = ("perturb", "sony-cms-title", "dytt8-title", "heimuer-cms-title", "tvbox-list", "maccms-quoted")
"""Sources of titles alone: they test the cleaning of titles, every other source the matching of records."""

_KINDS = {"movie": Kind.FILM, "tv": Kind.SERIES}
_DETAIL = re.compile(r"[:(]")


class FormatError(OperatingError):
    """A file cannot be read; the message names the file, the line and what is wrong with it."""


Key = tuple[str, int, str]
"""File, line and own id of a row; the id prevents comparing different rows when a file was rewritten."""


class Expectation(enum.StrEnum):
    """Kind of a row's label.

    Attributes:
        GOLD: The true subject is known.
        NONE: The subject is not in the corpus, so every link is wrong.
        TRAP: There is one subject that it must not be linked to; other links are not judged.
    """

    GOLD = "gold"
    NONE = "none"
    TRAP = "trap"


@dataclass(frozen=True, slots=True)
class GoldRow:
    """One labelled local record.

    Attributes:
        file: Base name of its file.
        row: Its line there, from 1.
        gid: The row's own id, if it has one.
        source: Origin of the record, without the detail after ``:`` or ``(``.
        label: How the label was made.
        tags: Its difficulties.
        expected: The true subject; None where it is not in the corpus, and for traps.
        trap: A subject it must not be linked to.
        video: The record as the matcher's input.
        rich: Whether year and people are known.
    """

    file: str
    row: int
    gid: str | None
    source: str
    label: str
    tags: tuple[str, ...]
    expected: int | None
    trap: int | None
    video: Video
    rich: bool

    @property
    def key(self) -> Key:
        """What identifies the row among others and in earlier predictions."""
        return self.file, self.row, self.gid or ""

    @property
    def expectation(self) -> Expectation:
        """The kind of its label."""
        if self.trap is not None:
            return Expectation.TRAP
        return Expectation.NONE if self.expected is None else Expectation.GOLD

    @property
    def headline(self) -> bool:
        """Whether it has a true subject and is more than a title to be cleaned."""
        return self.expectation is Expectation.GOLD and self.source not in CLEANING_SOURCES

    def wrong_with(self, douban_id: int | None) -> bool:
        """Return whether linking it to that subject is known to be wrong."""
        if self.trap is not None:
            return douban_id == self.trap
        return self.expected != douban_id


@dataclass(frozen=True, slots=True)
class CorpusSubject:
    """A subject of the corpus: its kind, as searches report it, and its record, as Douban answers."""

    kind: str
    record: SubjectRecord


def titled(title: str, year: int | None) -> str:
    """Return a title with its year, as people read it."""
    return f"{title} ({year})" if year else title


def read_corpus(path: Path) -> dict[int, CorpusSubject]:
    """Read the subjects of a corpus by id.

    Raises:
        FormatError: A line is not a subject, or the file cannot be read.
    """
    corpus: dict[int, CorpusSubject] = {}
    for line, raw in _lines(path):
        try:
            douban_id = int(raw["id"])
            corpus[douban_id] = CorpusSubject(
                raw.get("kind") or "",
                SubjectRecord(
                    douban_id=douban_id,
                    title=raw["title"],
                    original_title=raw.get("original_title") or "",
                    aliases=tuple(raw.get("aka") or ()),
                    year=raw.get("year"),
                    release_dates=tuple(raw.get("pubdates") or ()),
                    regions=tuple(raw.get("regions") or ()),
                    languages=tuple(raw.get("languages") or ()),
                    genres=tuple(raw.get("genres") or ()),
                    directors=tuple(raw.get("directors") or ()),
                    actors=tuple(raw.get("actors") or ()),
                    duration_minutes=raw.get("duration_min"),
                    episodes=raw.get("episodes"),
                    rating=raw.get("rating"),
                    id_confirmed=True,
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}, line {line}: no subject with `id` and `title`: {error!r}") from None
    return corpus


def read_gold(path: Path) -> list[GoldRow]:
    """Read labelled rows: with ``douban_id`` or ``vod_douban_id``, with ``"expect": "none"``, or with ``trap_id``.

    Raises:
        FormatError: A line has no label or no name, or the file cannot be read.
    """
    return [_gold(path, line, raw) for line, raw in _rows(path)]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a file with their lines: those of a CSV file without its empty cells."""
    lines = list(filled_lines(path))
    if not lines or lines[0][1].lstrip("\ufeff \t").startswith("{"):
        yield from _lines(path)
        return
    reader = csv.DictReader(text.lstrip("\ufeff") for _, text in lines)
    if "vod_name" not in (reader.fieldnames or ()):
        raise FormatError(f"{path}, line {lines[0][0]}: neither JSON nor the heads of a CSV file with `vod_name`")
    for number, row in enumerate(reader, start=1):
        yield (
            lines[number][0] if number < len(lines) else number,
            {name: cell for name, cell in row.items() if name and cell},
        )


def _gold(path: Path, line: int, raw: Mapping[str, Any]) -> GoldRow:
    none = raw.get("expect") == "none"
    try:
        trap = None if raw.get("trap_id") is None else int(raw["trap_id"])
        expected = None if none or trap is not None else int(raw.get("douban_id") or raw["vod_douban_id"])
        video = facts_of_values(raw, vod_id=line, kind=_KINDS.get(raw.get("type") or ""))
    except (KeyError, TypeError, ValueError) as error:
        message = "a row needs `vod_name` and one of `douban_id` (or `vod_douban_id`), `expect: none`, `trap_id`"
        raise FormatError(f"{path}, line {line}: {message}: {error!r}") from None
    return GoldRow(
        file=path.name,
        row=line,
        gid=raw.get("gid"),
        source=_DETAIL.split(raw.get("source") or "", maxsplit=1)[0].strip() or "unknown",
        label=raw.get("label") or ("trap" if trap is not None else "none" if none else "gold"),
        tags=tuple(tags.split(",") if isinstance(tags := raw.get("tags") or (), str) else tags),
        expected=expected,
        trap=trap,
        video=video,
        rich=video.year is not None and bool(video.directors or video.actors),
    )


def filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, with their numbers from 1.

    Raises:
        FormatError: The file cannot be read, or is not UTF-8.
    """
    try:
        with unpacked(path) as file:
            text = file.read().decode("utf-8")
    except FILE_PROBLEMS as error:
        raise FormatError(f"{path} cannot be read: {what_is_wrong(error)}") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8: {error.reason}") from None
    for line, each in enumerate(text.split("\n"), start=1):
        if each.strip():
            yield line, each


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, each in filled_lines(path):
        try:
            raw = json.loads(each)
        except json.JSONDecodeError as error:
            raise FormatError(f"{path}, line {line}: no JSON: {error.msg}") from None
        if not isinstance(raw, dict):
            raise FormatError(f"{path}, line {line}: no JSON object")
        yield line, raw
