"""The file of a backup: compressed, and either complete or absent.

Format: gzip; a header line; one line of JSON per table (``["table", name, columns]``) and per row (the values); a last
line that marks it as complete. Files of the core system that releases before this format wrote hold SQL instead.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.language import terminal_text

ENDING = "jsonl"
PARTIAL = ".partial"
_ENDINGS = f"({ENDING}|sql)"
"""Endings of the files, before that of gzip; the second is of SQL."""
_BASE = "douban"
"""The system of files whose header names none."""
_FIRST_LINE = b"-- douban_pipeline backup "
_LAST_LINE = b"-- douban_pipeline end of backup\n"
_PIECE = 1 << 20
_LONGEST_LINE = 10_000


@dataclass(frozen=True, slots=True)
class BackupHeader:
    """The header of a backup.

    Attributes:
        prefix: Prefix of the tables in it.
        version: Version of the tables in it, see `core.migrations`; empty if none was recorded.
        release: Release of the pipeline that wrote it.
        taken_at: When it was started; it contains everything committed until then.
        newest_write: Lower bound of when the newest change in its log was prepared (``None``: there was none).
        system: System of the tables.
    """

    prefix: str
    version: str
    release: str
    taken_at: datetime
    newest_write: datetime | None
    system: str = _BASE

    def line(self) -> bytes:
        """Return the header as the first line of a backup."""
        fields = {name: _iso(value) for name, value in asdict(self).items()}
        return _FIRST_LINE + json.dumps(fields).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> BackupHeader | None:
        """Return the header parsed from the first line of a file; ``None`` if it is not a backup."""
        if not line.startswith(_FIRST_LINE):
            return None
        try:
            fields = json.loads(line.removeprefix(_FIRST_LINE))
            moments = {name: fields[name] and _moment(fields[name]) for name in ("taken_at", "newest_write")}
            own = str(fields.get("system", _BASE))
            return cls(str(fields["prefix"]), str(fields["version"]), str(fields["release"]), **moments, system=own)
        except (ValueError, KeyError, TypeError):
            return None


@contextmanager
def backup_stream(target: IO[bytes], header: BackupHeader) -> Iterator[gzip.GzipFile]:
    """Yield a stream for the lines of a backup; its last line is written only if the block succeeds."""
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=target) as packed:
        packed.write(header.line())
        yield packed
        packed.write(_LAST_LINE)


def verify_backup(path: Path) -> BackupHeader:
    """Read a backup completely and return its header.

    Raises:
        OperatingError: It cannot be read, is not a backup of ours, or is incomplete.
    """
    end = b""
    not_ours = terminal_text("{path} is not a backup made by `douban-pipeline backup`").format(path=path)
    try:
        with gzip.open(path, "rb") as packed:
            header = BackupHeader.of(packed.readline(_LONGEST_LINE))
            if header is None:
                raise OperatingError(not_ours)
            while piece := packed.read(_PIECE):
                end = (end + piece)[-len(_LAST_LINE) :]
    except OSError as error:
        if error.errno is None:  # raised by gzip for a file that is not gzip
            raise OperatingError(terminal_text("{not_ours}: {error}").format(not_ours=not_ours, error=error)) from error
        raise OperatingError(
            terminal_text("{path} cannot be read: {error}").format(path=path, error=error.strerror)
        ) from error
    except (EOFError, zlib.error) as error:
        raise OperatingError(
            terminal_text("{path} is damaged or incomplete: {error}").format(path=path, error=error)
        ) from error
    if end != _LAST_LINE:
        raise OperatingError(terminal_text("{path} is incomplete: its end is missing").format(path=path))
    return header


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines between the first and the last line of a backup."""
    with gzip.open(path, "rb") as packed:
        packed.readline(_LONGEST_LINE)
        for line in packed:
            if line != _LAST_LINE:
                yield line


def holds_sql(path: Path) -> bool:
    """Return whether a backup holds SQL, as the core system's did in earlier releases."""
    return not next(lines_of(path), b"").startswith(b'["table",')


def file_in(folder: Path, label: str, now: datetime) -> Path:
    """Return the path in ``folder`` of a backup taken at ``now``."""
    return folder / f"douban_pipeline-{label}{now:%Y%m%dT%H%M%SZ}.{ENDING}.gz"


def drop_old(folder: Path, label: str, keep: int) -> list[Path]:
    """Delete all but the newest ``keep`` backups in ``folder`` named by `file_in`; return the deleted paths."""
    form = re.compile(rf"douban_pipeline-{re.escape(label)}\d{{8}}T\d{{6}}Z\.{_ENDINGS}\.gz")
    old = sorted(path for path in folder.iterdir() if form.fullmatch(path.name))[:-keep]
    for path in old:
        path.unlink()
    return old


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces ``path`` if the block succeeds, and is removed otherwise."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            try:
                fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OperatingError(terminal_text("another process is writing {path}").format(path=path)) from error
            try:
                os.ftruncate(descriptor, 0)
                yield target
                target.flush()
                os.fsync(descriptor)
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise OperatingError(
            terminal_text("{path} cannot be written: {error}; what was there before is kept").format(
                path=path, error=error.strerror or error
            )
        ) from error


def _iso(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
