"""The form of a backup: gzip; a line that says what it is; SQL; a last line without which it is not whole."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from douban_pipeline.ops.client_programs import OperatingError

_FIRST = b"-- douban_pipeline backup "
_LAST = b"-- douban_pipeline end of backup\n"
_PIECE = 1 << 20
_LONGEST_LINE = 10_000


@dataclass(frozen=True, slots=True)
class Header:
    """What a backup says of itself.

    Attributes:
        prefix: Of the tables in it.
        version: Of the tables in it, see `catalog.migrations`.
        release: Of the pipeline that made it.
        taken_at: When it was begun; it holds everything committed until then.
        newest_write: When the newest change in its log was prepared (``None``: there was none), at least.
    """

    prefix: str
    version: str
    release: str
    taken_at: datetime
    newest_write: datetime | None

    def line(self) -> bytes:
        """Return it as the first line of a backup."""
        told = {name: _iso(value) for name, value in asdict(self).items()}
        return _FIRST + json.dumps(told).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Header | None:
        """Read it from the first line of a file; ``None`` if that is no backup's."""
        if not line.startswith(_FIRST):
            return None
        try:
            told = json.loads(line.removeprefix(_FIRST))
            moments = {name: told[name] and _moment(told[name]) for name in ("taken_at", "newest_write")}
            return cls(str(told["prefix"]), str(told["version"]), str(told["release"]), **moments)
        except (ValueError, KeyError, TypeError):
            return None


@contextmanager
def written(target: IO[bytes], header: Header) -> Iterator[gzip.GzipFile]:
    """Give a stream for the SQL of a backup; its last line is written only if the block ends well."""
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=target) as packed:
        packed.write(header.line())
        yield packed
        packed.write(_LAST)


def verify(path: Path) -> Header:
    """Read the whole of a backup and return its header.

    Raises:
        OperatingError: It cannot be read, is no backup of ours, or is not whole.
    """
    end = b""
    try:
        with gzip.open(path, "rb") as packed:
            header = Header.of(packed.readline(_LONGEST_LINE))
            if header is None:
                raise OperatingError(f"{path} is no backup that `douban-pipeline backup` made")
            while piece := packed.read(_PIECE):
                end = (end + piece)[-len(_LAST) :]
    except OSError as error:
        if error.errno is None:  # what gzip says of a file that is none
            raise OperatingError(f"{path} is no backup that `douban-pipeline backup` made: {error}") from error
        raise OperatingError(f"{path} cannot be read: {error.strerror}") from error
    except (EOFError, zlib.error) as error:
        raise OperatingError(f"{path} is damaged or not whole: {error}") from error
    if end != _LAST:
        raise OperatingError(f"{path} is not whole: its end is missing")
    return header


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the SQL of a backup, piece by piece."""
    with gzip.open(path, "rb") as packed:
        while piece := packed.read(_PIECE):
            yield piece


def _iso(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
