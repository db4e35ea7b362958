"""Backups of our tables: consistent, compressed, and either complete or absent.

File format: gzip; a header line; SQL; a last line that marks it as complete.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Engine, Table, func, inspect, select

from douban_pipeline import __version__
from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.language import said
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.ops.client_programs import DUMP, OperatingError, options_file, program, require_server

_OPTIONS = (
    "--single-transaction",  # all tables at one moment, without blocking other connections
    "--quick",
    "--hex-blob",
    "--no-tablespaces",  # would require a privilege on the whole server
    "--skip-add-locks",  # would require a privilege on the whole database during a restore
    "--skip-triggers",
    "--skip-tz-utc",  # DATETIMEs have no zone, and there is no TIMESTAMP
)
_SHOWN = 1_000
PARTIAL = ".partial"


def back_up(engine: Engine, tables: OwnTables, prefix: str, path: Path, now: datetime) -> BackupHeader:
    """Write a backup of our tables to ``path``, which is replaced only by a complete one.

    Tables of an earlier release are saved unchanged, so that a backup can be taken before an upgrade.

    Raises:
        OperatingError: It cannot be written, there is nothing to save, or the server refuses.
        DatabaseError: The tables are of a newer release, which may have more of them.
    """
    require_server(engine.url)
    with reading(engine) as connection:
        present = present_tables(connection, tables)
        if not present:
            raise OperatingError(
                said("我们的表不存在：没有可备份的", "our tables do not exist: there is nothing to save")
            )
        version = migrations.known(migrations.current(engine, prefix), prefix)
        # Without a version they were restored only partly, or damaged; a copy may still be useful.
        header = BackupHeader(prefix, version or "", __version__, now, newest_write(connection, tables))
    # The version last: partly restored tables have none, so that no command or run uses them.
    names = [*sorted(present), *([migrations.version_table(prefix)] if version else [])]
    with options_file(engine.url) as options, whole_file(path) as target:
        command = [program(DUMP), f"--defaults-file={options}", *_OPTIONS, str(engine.url.database), *names]
        with backup_stream(target, header) as packed:
            _copy_output(command, packed)
    return header


def present_tables(connection: Connection, tables: OwnTables) -> dict[str, Table]:
    """Return our existing tables by name."""
    names = set(inspect(connection).get_table_names())
    return {table.name: table for table in tables.metadata.sorted_tables if table.name in names}


def newest_write(connection: Connection, tables: OwnTables) -> datetime | None:
    """Return when the newest change in the log was prepared; ``None`` if there is none, or no log."""
    if tables.log.name not in present_tables(connection, tables):
        return None
    return connection.execute(select(func.max(tables.log.c.prepared_at))).scalar()


def file_in(folder: Path, prefix: str, now: datetime, ending: str = "sql") -> Path:
    """Return the path in ``folder`` of a backup taken at ``now``."""
    return folder / f"douban_pipeline-{prefix}{now:%Y%m%dT%H%M%SZ}.{ending}.gz"


def drop_old(folder: Path, prefix: str, keep: int, ending: str = "sql") -> list[Path]:
    """Delete all but the newest ``keep`` backups in ``folder`` named by `file_in`; return the deleted paths."""
    form = re.compile(rf"douban_pipeline-{re.escape(prefix)}\d{{8}}T\d{{6}}Z\.{ending}\.gz")
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
                raise OperatingError(said(f"另一个进程正在写 {path}", f"another process is writing {path}")) from error
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
            said(
                f"{path} 无法写入：{error.strerror or error}；原有的内容没有变",
                f"{path} cannot be written: {error.strerror or error}; what was there before is kept",
            )
        ) from error


def _copy_output(command: Sequence[str], target: gzip.GzipFile) -> None:
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints)  # noqa: S603 (no shell)
        assert process.stdout is not None
        try:
            shutil.copyfileobj(process.stdout, target, 1 << 20)
            status = process.wait()
        finally:
            process.stdout.close()
            process.kill()
            process.wait()
        if status:
            complaints.seek(0)
            message = complaints.read(_SHOWN).decode(errors="replace").strip()
            name = Path(command[0]).name
            raise OperatingError(said(f"{name} 失败（{status}）：{message}", f"{name} failed ({status}): {message}"))


DOUBAN = "douban"
_FIRST_LINE = b"-- douban_pipeline backup "
_LAST_LINE = b"-- douban_pipeline end of backup\n"
_PIECE = 1 << 20
_LONGEST_LINE = 10_000


@dataclass(frozen=True, slots=True)
class BackupHeader:
    """The header of a backup.

    Attributes:
        prefix: Prefix of the tables in it.
        version: Version of the tables in it, see `store.migrations`.
        release: Release of the pipeline that wrote it.
        taken_at: When it was started; it contains everything committed until then.
        newest_write: Lower bound of when the newest change in its log was prepared (``None``: there was none).
        system: System of the tables; Douban's are stored as SQL, those of others as rows, see `systems.copies`.
    """

    prefix: str
    version: str
    release: str
    taken_at: datetime
    newest_write: datetime | None
    system: str = DOUBAN

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
            own = str(fields.get("system", DOUBAN))
            return cls(str(fields["prefix"]), str(fields["version"]), str(fields["release"]), **moments, system=own)
        except (ValueError, KeyError, TypeError):
            return None


@contextmanager
def backup_stream(target: IO[bytes], header: BackupHeader) -> Iterator[gzip.GzipFile]:
    """Yield a stream for the SQL of a backup; its last line is written only if the block succeeds."""
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
    not_ours = said(
        f"{path} 不是 `douban-pipeline backup` 写的备份", f"{path} is not a backup made by `douban-pipeline backup`"
    )
    try:
        with gzip.open(path, "rb") as packed:
            header = BackupHeader.of(packed.readline(_LONGEST_LINE))
            if header is None:
                raise OperatingError(not_ours)
            while piece := packed.read(_PIECE):
                end = (end + piece)[-len(_LAST_LINE) :]
    except OSError as error:
        if error.errno is None:  # raised by gzip for a file that is not gzip
            raise OperatingError(said(f"{not_ours}：{error}", f"{not_ours}: {error}")) from error
        raise OperatingError(
            said(f"{path} 无法读取：{error.strerror}", f"{path} cannot be read: {error.strerror}")
        ) from error
    except (EOFError, zlib.error) as error:
        raise OperatingError(
            said(f"{path} 已损坏或不完整：{error}", f"{path} is damaged or incomplete: {error}")
        ) from error
    if end != _LAST_LINE:
        raise OperatingError(said(f"{path} 不完整：缺少结尾", f"{path} is incomplete: its end is missing"))
    return header


def sql_pieces(path: Path) -> Iterator[bytes]:
    """Yield the SQL of a backup, piece by piece."""
    with gzip.open(path, "rb") as packed:
        while piece := packed.read(_PIECE):
            yield piece


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines between the first and the last line of a backup."""
    with gzip.open(path, "rb") as packed:
        packed.readline(_LONGEST_LINE)
        for line in packed:
            if line != _LAST_LINE:
                yield line


def _iso(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
