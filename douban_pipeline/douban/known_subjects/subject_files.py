"""Reads published files of subjects: JSON lines or CSV, plain or compressed, with various column names."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from douban_pipeline.core.files import FILE_PROBLEMS, PACKED_ENDINGS, unpacked, what_is_wrong
from douban_pipeline.core.payload import as_int
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID, subject_ids

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "douban_id", "subject_id", "movie_id", "url", "link"),
    "title": ("title", "name", "vod_name", "movie_title"),
    "original_title": ("original_title", "original_name", "orig_title", "foreign_title"),
    "names": ("names", "aka", "alias", "aliases", "other_names", "other_titles", "vod_sub"),
    "year": ("year", "vod_year", "release_year", "pubdate", "release_date"),
    "kind": ("kind", "type", "subtype", "category"),
}
_YEAR = re.compile(r"(?:18|19|20)\d\d")
_SPLIT = re.compile(r"\s*[/|]\s*")
_SERIES = frozenset({"tv", "series", "tvseries", "tv_series", "season", "show", "电视剧", "剧集", "连续剧", "番剧"})
_LONGEST_NAME = 200
_MOST_NAMES = 30
_KEPT_PROBLEMS = 5


class SubjectFileError(ValueError):
    """No subject can be read from a file; the message names the file and says what to do."""


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """A subject and all its names.

    Attributes:
        douban_id: Douban's id.
        title: Its title.
        original_title: Its title in the original language, "" if that is the title or unknown.
        names: Its other names, each once.
        year: Year of the first release, None if unknown.
        series: Whether it is a series; False also if unknown.
    """

    douban_id: int
    title: str
    original_title: str = ""
    names: tuple[str, ...] = ()
    year: int | None = None
    series: bool = False


@dataclass(slots=True)
class FileReport:
    """Result of reading a file.

    Attributes:
        read: Number of rows with a subject.
        refused: Number of rows without one.
        problems: The problems of the first refused rows, with their lines.
    """

    read: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    def refuse(self, line: int, why: str) -> None:
        """Record a row without a subject."""
        self.refused += 1
        if len(self.problems) < _KEPT_PROBLEMS:
            self.problems.append(f"line {line}: {why}")


def subjects_in(path: Path, report: FileReport) -> Iterator[NamedSubject]:
    """Yield the subjects of a file; rows without an id or a title are counted and skipped.

    Args:
        path: JSON lines (``.jsonl``, ``.json``, ``.ndjson``) or CSV (``.csv``, ``.tsv``), optionally compressed
            (``.gz``, ``.xz``, ``.bz2``).
        report: Counts the rows.

    Raises:
        SubjectFileError: The file cannot be read, is of another kind, or has no column for ids or titles.
    """
    name = path.name.lower()
    for ending in PACKED_ENDINGS:
        name = name.removesuffix(ending)
    rows: Callable[[IO[str], Path], Iterator[tuple[int, Mapping[str, Any] | str]]]
    if name.endswith((".jsonl", ".ndjson", ".json")):
        rows = _json_rows
    elif name.endswith((".csv", ".tsv")):
        rows = _csv_rows
    else:
        raise SubjectFileError(
            f"{path}: give JSON lines (.jsonl) or CSV (.csv, .tsv), perhaps compressed (.gz, .xz, .bz2)"
        )
    try:
        with _opened(path) as file:
            for line, row in rows(file, path):
                if isinstance(row, str):
                    report.refuse(line, row)
                    continue
                subject = _subject_of(row)
                if isinstance(subject, str):
                    report.refuse(line, subject)
                else:
                    report.read += 1
                    yield subject
    except (*FILE_PROBLEMS, UnicodeDecodeError, csv.Error) as error:
        raise SubjectFileError(f"{path}: cannot be read: {what_is_wrong(error)}") from error


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    with unpacked(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
        yield text


def _json_rows(file: IO[str], path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    for line, text in enumerate(file, start=1):
        if line == 1 and text.lstrip().startswith("["):
            raise SubjectFileError(f"{path}: is one JSON array; give one object a line (jq -c '.[]')")
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            yield line, f"no JSON: {error}"
            continue
        yield line, row if isinstance(row, dict) else "no JSON object"


def _csv_rows(file: IO[str], path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    reader = csv.DictReader(file, dialect="excel-tab" if ".tsv" in path.name.lower() else "excel")
    heads = {head.strip().casefold() for head in reader.fieldnames or () if head}
    for wanted in ("id", "title"):
        if heads.isdisjoint(_COLUMNS[wanted]):
            raise SubjectFileError(
                f"{path}: no column for the {wanted}: it has {', '.join(sorted(heads)) or 'no heads'};"
                f" call one of them {' or '.join(_COLUMNS[wanted])}"
            )
    for row in reader:
        yield reader.line_num, row


def _subject_of(row: Mapping[str, Any]) -> NamedSubject | str:
    """Return the subject of a row, or the row's problem as text."""
    plain = {str(key).strip().casefold(): value for key, value in row.items() if key is not None}

    def value(column: str) -> Any:
        return next((plain[name] for name in _COLUMNS[column] if plain.get(name) not in (None, "", [])), None)

    given = value("id")
    douban_id = as_int(given) or next(iter(subject_ids(str(given or ""))), 0)
    title = _name(value("title"))
    if douban_id < SMALLEST_ID:
        return f"id {str(given)[:40]!r} is no id of a subject"
    if not title:
        return f"subject {douban_id} has no title"
    original = _name(value("original_title"))
    names = dict.fromkeys(name for name in _names(value("names")) if name not in (title, original))
    year = _YEAR.search(str(value("year") or ""))
    kind = str(value("kind") or "").strip().casefold()
    return NamedSubject(
        douban_id,
        title,
        original if original != title else "",
        tuple(names)[:_MOST_NAMES],
        int(year[0]) if year else None,
        kind in _SERIES,
    )


def _names(value: Any) -> Iterable[str]:
    listed = value if isinstance(value, list | tuple) else _SPLIT.split(str(value or ""))
    return filter(None, map(_name, listed))


def _name(value: Any) -> str:
    return " ".join(str(value or "").split())[:_LONGEST_NAME]
