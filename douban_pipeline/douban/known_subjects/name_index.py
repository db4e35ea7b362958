"""A bigram index of the names of a million subjects on disk.

One SQLite file, written completely and then put in place atomically. For each pair of characters it holds a packed
array with the numbers of the names that contain it, and for each name its subject and its number of pairs. A search
reads some ten arrays and counts.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from douban_pipeline.core.owner import is_dead, owner_name
from douban_pipeline.douban.known_subjects.subject_files import NamedSubject
from douban_pipeline.matching.text import normalise

FORMAT = 1
"""Version of the file format. A file of another version is not read and has to be built again."""
_PART = ".part"
_LEAST_SHARE = 0.5
"""Least share of a name's pairs that a query must contain."""
_MOST_NUMBERS = 60_000
"""Most numbers of names that a search reads; the rarest pairs come first."""
_RANKED = 200
_YEAR_POINTS = (0.3, 0.15)
"""Points for the same year, and for the year before or after."""

_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE subject (
    place INTEGER PRIMARY KEY, douban_id INTEGER NOT NULL, title TEXT NOT NULL, original_title TEXT NOT NULL,
    names TEXT NOT NULL, year INTEGER, series INTEGER NOT NULL
);
CREATE TABLE pair (pair TEXT PRIMARY KEY, size INTEGER NOT NULL, numbers BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE packed (name TEXT PRIMARY KEY, numbers BLOB NOT NULL);
"""


class IndexUnusable(ValueError):  # noqa: N818 (as its like in `errors`)
    """The file is not an index of this release; the message says how to build one."""


@dataclass(frozen=True, slots=True)
class IndexContents:
    """What an index holds.

    Attributes:
        subjects: Number of subjects.
        names: Number of their names, each form counted once per subject.
        built_at: When it was built (UTC).
        sources: Its sources, with the number of subjects from each.
    """

    subjects: int
    names: int
    built_at: datetime
    sources: Mapping[str, int]


def build(path: Path, subjects: Iterable[NamedSubject], sources: Mapping[str, int]) -> IndexContents:
    """Write the index of ``subjects`` to ``path`` and return its contents; a previous index is used until then.

    Args:
        path: The file; its folder is created.
        subjects: The subjects, each once.
        sources: Their sources, with the number of subjects from each; read after the last subject, so that it may be
            counted during iteration.

    Raises:
        OSError: The file cannot be written; the previous one is unchanged.
        sqlite3.Error: SQLite cannot write the file (a full disk); the previous one is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}{owner_name('')}{_PART}")
    part.unlink(missing_ok=True)
    _remove_abandoned(path)
    try:
        contents = _write(part, subjects, sources)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return contents


def _remove_abandoned(path: Path) -> None:
    """Remove what builds of the index left that were killed; those of other machines may still be at work."""
    for part in path.parent.iterdir():
        if part.name.startswith(f"{path.name}@") and part.name.endswith(_PART):
            owner = part.name.removeprefix(path.name).removesuffix(_PART)
            if is_dead(owner):
                part.unlink(missing_ok=True)


def _write(path: Path, subjects: Iterable[NamedSubject], sources: Mapping[str, int]) -> IndexContents:
    pairs: dict[str, array[int]] = {}
    owners, sizes = array("i"), array("H")

    def rows() -> Iterator[tuple[Any, ...]]:
        for place, subject in enumerate(subjects):
            forms = {normalise(name) for name in (subject.title, subject.original_title, *subject.names) if name}
            for found in {frozenset(_pairs(form)) for form in forms if form}:
                for pair in found:
                    pairs.setdefault(pair, array("i")).append(len(owners))
                owners.append(place)
                sizes.append(min(len(found), 65_535))
            yield (
                place,
                subject.douban_id,
                subject.title,
                subject.original_title,
                json.dumps(subject.names, ensure_ascii=False),
                subject.year,
                subject.series,
            )

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")  # nobody reads the file before it is complete
        connection.executescript(_TABLES)
        with connection:
            connection.executemany("INSERT INTO subject VALUES (?, ?, ?, ?, ?, ?, ?)", rows())
            listed = ((pair, len(numbers), numbers.tobytes()) for pair, numbers in sorted(pairs.items()))
            connection.executemany("INSERT INTO pair VALUES (?, ?, ?)", listed)
            connection.executemany(
                "INSERT INTO packed VALUES (?, ?)", [("owners", owners.tobytes()), ("sizes", sizes.tobytes())]
            )
            [count] = connection.execute("SELECT count(*) FROM subject").fetchone()
            built_at = datetime.now(UTC).replace(microsecond=0)
            contents = IndexContents(count, len(owners), built_at, dict(sources))
            connection.executemany(
                "INSERT INTO about VALUES (?, ?)",
                [
                    ("format", str(FORMAT)),
                    ("subjects", str(count)),
                    ("names", str(len(owners))),
                    ("built_at", built_at.isoformat()),
                    ("sources", json.dumps(contents.sources, ensure_ascii=False)),
                ],
            )
    return contents


class NameIndex:
    """The index of a file, open for reading. Safe to share between threads.

    A file that is replaced while it is open is not noticed: the next run opens the new one.

    Args:
        path: The file that `build` wrote.

    Raises:
        IndexUnusable: The file is not an index, or has another format version.
        FileNotFoundError: There is no such file.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise FileNotFoundError(path)
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            about = dict(self._connection.execute("SELECT name, value FROM about").fetchall())
            packed = dict(self._connection.execute("SELECT name, numbers FROM packed").fetchall())
        except sqlite3.Error as error:
            raise IndexUnusable(f"{path} is no index of subjects ({error}): make it anew: {_REMEDY}") from error
        if about.get("format") != str(FORMAT):
            raise IndexUnusable(f"{path} is of format {about.get('format')}, this release reads {FORMAT}: {_REMEDY}")
        self._owners = np.frombuffer(packed["owners"], dtype=np.int32)
        self._sizes = np.frombuffer(packed["sizes"], dtype=np.uint16)
        self.contents = IndexContents(
            int(about["subjects"]),
            int(about["names"]),
            datetime.fromisoformat(about["built_at"]),
            json.loads(about["sources"]),
        )

    def find(self, names: Iterable[str], *, year: int | None = None, limit: int = 20) -> list[NamedSubject]:
        """Return the subjects whose names are most similar to one of ``names``, the most similar first.

        Args:
            names: The names to find, in any form; they are normalised.
            year: Subjects of this year are ranked higher.
            limit: Most subjects.
        """
        points: dict[int, float] = {}
        for form in dict.fromkeys(normalise(name) for name in names):
            for place, value in self._like(form):
                points[place] = max(value, points.get(place, 0.0))
        with self._lock:
            found = {place: self._subject(place) for place in points}
        ranked = sorted(
            found, key=lambda place: (-points[place] - _year_points(found[place].year, year), found[place].douban_id)
        )
        return [found[place] for place in ranked[:limit]]

    def subjects(self) -> Iterator[NamedSubject]:
        """Yield all subjects."""
        last = -1
        while True:
            with self._lock:
                places = [
                    place
                    for (place,) in self._connection.execute(
                        "SELECT place FROM subject WHERE place > ? ORDER BY place LIMIT 1000", (last,)
                    )
                ]
                batch = [self._subject(place) for place in places]
            if not batch:
                return
            yield from batch
            last = places[-1]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _like(self, form: str) -> list[tuple[int, float]]:
        """Return places of subjects with the similarity of one of their names, 0 to 1."""
        asked = sorted(set(_pairs(form)))
        numbers, left_out = self._numbers(asked)
        if not numbers.size:
            return []
        named, counts = np.unique(numbers, return_counts=True)
        sizes = self._sizes[named].astype(np.float32)
        # The omitted pairs may be in the name, too.
        near = (counts + left_out >= _LEAST_SHARE * sizes) | (counts + left_out == len(asked))
        named, counts, sizes = named[near], counts[near], sizes[near]
        share = counts * (0.6 / sizes + 0.4 / max(len(asked) - left_out, 1))
        order = np.argsort(-share, kind="stable")[:_RANKED]
        return list(zip(self._owners[named[order]].tolist(), share[order].tolist(), strict=True))

    def _numbers(self, asked: list[str]) -> tuple[npt.NDArray[np.int32], int]:
        """Return the numbers of the names that contain some of these pairs, and how many pairs were omitted."""
        marks = ", ".join("?" * len(asked))
        with self._lock:
            sizes = self._connection.execute(
                f"SELECT pair, size FROM pair WHERE pair IN ({marks}) ORDER BY size, pair",  # noqa: S608 (marks alone)
                asked,
            ).fetchall()
            taken: list[npt.NDArray[np.int32]] = []
            total = 0
            for pair, size in sizes:
                if taken and total + size > _MOST_NUMBERS:
                    break
                [blob] = self._connection.execute("SELECT numbers FROM pair WHERE pair = ?", (pair,)).fetchone()
                taken.append(np.frombuffer(blob, dtype=np.int32))
                total += size
        joined = np.concatenate(taken) if taken else np.empty(0, dtype=np.int32)
        return joined, len(sizes) - len(taken)

    def _subject(self, place: int) -> NamedSubject:
        row = self._connection.execute(
            "SELECT douban_id, title, original_title, names, year, series FROM subject WHERE place = ?", (place,)
        ).fetchone()
        douban_id, title, original_title, names, year, series = row
        return NamedSubject(douban_id, title, original_title, tuple(json.loads(names)), year, bool(series))


_REMEDY = "`douban-pipeline index load FILE`"


def _pairs(form: str) -> Iterator[str]:
    """Yield the pairs of characters of a name; for a single character, the character itself."""
    if len(form) == 1:
        yield form
    yield from (one + other for one, other in zip(form, islice(form, 1, None), strict=False))


def _year_points(found: int | None, wanted: int | None) -> float:
    if found is None or wanted is None:
        return 0.0
    gap = abs(found - wanted)
    return _YEAR_POINTS[gap] if gap < len(_YEAR_POINTS) else 0.0
