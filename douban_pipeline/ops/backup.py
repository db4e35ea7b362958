"""Backups of our tables: consistent, compressed, and either whole or not there."""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Engine, Table, func, inspect, select

from douban_pipeline import __version__
from douban_pipeline.core.database import reading
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.ops.backup_file import Header, written
from douban_pipeline.ops.client_programs import DUMP, OperatingError, options_file, program, require_server

_OPTIONS = (
    "--single-transaction",  # one moment of all tables, and nobody waits
    "--quick",
    "--hex-blob",
    "--no-tablespaces",  # would need a right over the whole server
    "--skip-add-locks",  # would need a right over the whole database when it is read back
    "--skip-triggers",
    "--skip-tz-utc",  # DATETIMEs have no zone, and there is no TIMESTAMP
)
_SHOWN = 1_000
PARTIAL = ".partial"


def back_up(engine: Engine, tables: OwnTables, prefix: str, path: Path, now: datetime) -> Header:
    """Write a backup of our tables to ``path``, which is replaced only by a whole one.

    Tables that an earlier release made are taken as they are, so that a backup can come before an upgrade.

    Raises:
        OperatingError: It cannot be written, there is nothing to save, or the server refuses.
        DatabaseError: The tables are a newer release's, which may have more of them.
    """
    require_server(engine.url)
    with reading(engine) as connection:
        present = present_tables(connection, tables)
        if not present:
            raise OperatingError("our tables do not exist: there is nothing to save")
        version = migrations.known(migrations.current(engine, prefix), prefix)
        # Without a version they were read back in part only, or damaged; a copy may still be of use to somebody.
        header = Header(prefix, version or "", __version__, now, newest_write(connection, tables))
    # The version last: tables that were read back only in part have none, and nothing runs on them.
    names = [*sorted(present), *([migrations.version_table(prefix)] if version else [])]
    with options_file(engine.url) as options, _target(path) as target:
        command = [program(DUMP), f"--defaults-file={options}", *_OPTIONS, str(engine.url.database), *names]
        with written(target, header) as packed:
            _copy_output(command, packed)
    return header


def present_tables(connection: Connection, tables: OwnTables) -> dict[str, Table]:
    """Return those of our tables that exist, by name."""
    names = set(inspect(connection).get_table_names())
    return {table.name: table for table in tables.metadata.sorted_tables if table.name in names}


def newest_write(connection: Connection, tables: OwnTables) -> datetime | None:
    """Return when the newest change in the log was prepared; ``None`` if there is none, or no log."""
    if tables.log.name not in present_tables(connection, tables):
        return None
    return connection.execute(select(func.max(tables.log.c.prepared_at))).scalar()


def file_in(folder: Path, prefix: str, now: datetime) -> Path:
    """Return the name of a backup of this moment in ``folder``."""
    return folder / f"douban_pipeline-{prefix}{now:%Y%m%dT%H%M%SZ}.sql.gz"


def drop_old(folder: Path, prefix: str, keep: int) -> list[Path]:
    """Remove all but the newest ``keep`` backups that `file_in` named in ``folder``; return what was removed."""
    form = re.compile(rf"douban_pipeline-{re.escape(prefix)}\d{{8}}T\d{{6}}Z\.sql\.gz")
    old = sorted(path for path in folder.iterdir() if form.fullmatch(path.name))[:-keep]
    for path in old:
        path.unlink()
    return old


@contextmanager
def _target(path: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes the place of ``path`` if the block ends well, and is removed if not."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            try:
                fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OperatingError(f"another process is writing {path}") from error
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
            f"{path} cannot be written: {error.strerror or error}; what was there before stands"
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
            told = complaints.read(_SHOWN).decode(errors="replace").strip()
            raise OperatingError(f"{Path(command[0]).name} failed ({status}): {told}")
