"""Values of the CMS's columns as the soak compares them: one text a value, whoever told it, short enough to keep."""

from __future__ import annotations

import enum
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

NO_ROW = "(no row)"
"""What stands in every column of a video that does not exist."""

_DECIMALS = frozenset({"vod_score", "vod_douban_score"})
_LONGEST = 64
_SHOWN = 24


def canonical(column: str, value: Any) -> str:
    """Return ``value`` of ``column`` as text: equal for equal values, whether the database, JSON or Python told them.

    Long texts become their beginning and a hash, so that the history of a library fits into memory.
    """
    if value is None:
        return "(null)"
    if column in _DECIMALS:
        return str(Decimal(str(value)).quantize(Decimal("0.1")))
    text = str(value)
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"{text[:_SHOWN]}… #{digest}"


def canonical_row(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return a row, or some columns of one, as `canonical` texts; the key is left out."""
    return {str(name): canonical(str(name), value) for name, value in row.items() if name != "vod_id"}


Columns = Mapping[str, str]
"""Columns of one video as `values.canonical` texts."""


class Fate(enum.StrEnum):
    """What became of an act."""

    INTENDED = "intended"
    """Nothing was done yet: nothing was sent to the database."""
    BEGUN = "begun"
    """It was sent, or about to be: nobody knows whether it took effect."""
    DONE = "done"
    MISSED = "missed"
    """It certainly did not take effect."""
    UNKNOWN = "unknown"
    """The connection died in the middle; as `BEGUN`, but known to be so."""
    REPORTED = "told"
    """Something that people did through the project itself: no write to the CMS of theirs."""


_OPEN = (Fate.BEGUN, Fate.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Entry:
    """One act on one video."""

    number: int
    at: datetime
    who: str
    what: str
    vod_id: int
    fate: Fate = Fate.INTENDED
    before: Columns | None = None
    after: Columns | None = None
    ended_at: datetime | None = None
    looked: str = ""
    note: str = ""

    @property
    def happened(self) -> bool:
        """Whether it certainly took effect."""
        return self.fate is Fate.DONE

    @property
    def doubtful(self) -> bool:
        """Whether nobody can be sure that it took effect."""
        return self.fate in _OPEN

    def edges(self) -> dict[str, tuple[str | None, str | None]]:
        """Return, by column, what stood before and after; None for "no such row"."""
        names = {**(self.before or {}), **(self.after or {})}
        return {
            name: (
                None if self.before is None else self.before.get(name),
                None if self.after is None else self.after.get(name),
            )
            for name in names
        }


class Journal:
    """An append-only file of JSON lines. Safe to use from several threads; a file that is there is gone on with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._entries: dict[int, Entry] = {}
        self._last = 0
        if path.exists():
            # A line that was cut off by a kill was never acted upon.
            whole = path.read_bytes().rpartition(b"\n")[0]
            for line in whole.decode().splitlines():
                self._take(json.loads(line))
            with path.open("wb") as file:
                file.write(whole + b"\n" if whole else b"")
        self._file = path.open("a", encoding="utf-8")

    def intend(self, who: str, what: str, vod_id: int) -> int:
        """Write down that somebody is about to do something to a video; return the act's number."""
        return self._begin({"who": who, "what": what, "vod_id": vod_id, "fate": Fate.INTENDED})

    def begin(self, number: int, before: Columns | None, wanted: Columns | None) -> None:
        """Write down what stands and what shall stand, right before the write is sent."""
        self._write({"n": number, "fate": Fate.BEGUN, "before": _plain(before), "after": _plain(wanted)})

    def done(self, number: int, after: Columns | None) -> None:
        """Write down what stands after the write."""
        self._write({"n": number, "fate": Fate.DONE, "after": _plain(after)})

    def missed(self, number: int, why: str) -> None:
        """Write down that nothing was changed."""
        self._write({"n": number, "fate": Fate.MISSED, "note": why})

    def unknown(self, number: int, why: str) -> None:
        """Write down that nobody knows whether the write took effect."""
        self._write({"n": number, "fate": Fate.UNKNOWN, "note": why})

    def look(self, number: int, reported: str) -> None:
        """Write down what looking told of a write whose fate is unknown; it stays in doubt, for others write too."""
        self._write({"n": number, "looked": reported})

    def tell(self, who: str, what: str, vod_id: int = 0, note: str = "") -> int:
        """Write down what people did through the project itself."""
        return self._begin({"who": who, "what": what, "vod_id": vod_id, "fate": Fate.REPORTED, "note": note})

    def entries(self) -> list[Entry]:
        """Return all acts, the oldest first."""
        with self._lock:
            return [self._entries[number] for number in sorted(self._entries)]

    def close(self) -> None:
        """Close the file; safe to repeat."""
        self._file.close()

    def _begin(self, line: dict[str, Any]) -> int:
        with self._lock:
            number = self._last + 1
            self._append({"n": number, **line})
        return number

    def _write(self, line: dict[str, Any]) -> None:
        with self._lock:
            self._append(line)

    def _append(self, line: dict[str, Any]) -> None:
        line["at"] = datetime.now(UTC).isoformat()
        # Flushed to the system: what survives is what was written, though this process be killed.
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        number, at = line["n"], datetime.fromisoformat(line["at"])
        self._last = max(self._last, number)
        known = self._entries.get(number)
        if known is None:
            known = Entry(number, at, line["who"], line["what"], line["vod_id"])
        fate = Fate(line.get("fate", known.fate))
        given = {name: line[name] for name in ("before", "after", "note", "looked") if name in line}
        ended = known.ended_at or (at if fate in (Fate.DONE, Fate.MISSED, Fate.UNKNOWN) else None)
        self._entries[number] = replace(known, fate=fate, ended_at=ended, **given)


def _plain(columns: Columns | None) -> dict[str, str] | None:
    return None if columns is None else dict(columns)
