"""Filling a database with a generated library: the CMS's real tables, 1.7 million videos in some minutes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from douban_pipeline.demo.cms_schema import checked_prefix, default_types
from douban_pipeline.demo.library import LibraryError, create_library
from douban_pipeline_tests.harness.generated.stored import (
    COLUMNS,
    FIELD_END,
    LINE_END,
    stored_of,
    write_file,
)
from douban_pipeline_tests.harness.generated.videos import video_of

Progress = Callable[[str], None]
"""Is told, in a sentence, what is being done."""

_CHUNK = 25_000
"""Videos of one file, some 75 MB; twice as many files as there are processes lie on the disk at once."""

_ALONE = 5_000
"""So many are quicker made by this process alone."""

_INSERTED = 500
"""Videos of one transaction where rows are inserted."""

_SAMPLED = 48
"""Videos that are looked at to tell whose library it is."""

_SORT_BUFFER = 256 << 20

_PACKAGES = Path(__file__).parents[3]


def fill(
    engine: sa.Engine,
    count: int,
    *,
    seed: int,
    now: datetime,
    prefix: str = "mac_",
    progress: Progress = lambda _: None,
) -> int:
    """Create the CMS's tables, put the videos 1 to ``count`` in, and return how many were missing.

    Safe to repeat: a complete library of this size and seed is left alone, whatever was written to its metadata
    since; one that was left half made, or has lost videos, gets the rest. On MariaDB and MySQL the rows are loaded
    from files that other processes write, with the indexes built at the end, if the server allows it
    (``local_infile``); elsewhere they are inserted.

    Args:
        engine: Where to: SQLite, MariaDB or MySQL.
        count: How many videos.
        seed: What they are generated from.
        now: The time their ages are counted to; does not matter for what is there already.
        prefix: Table prefix.
        progress: Is told what is being done.

    Raises:
        LibraryError: The table holds videos that are not of this library, or the server did not take ours as they are.
        ValueError: ``count`` is below 1, or the prefix is none.
    """
    if count < 1:
        raise ValueError(f"a library of {count} videos cannot be made")
    table = f"{checked_prefix(prefix)}vod"
    present = _present(engine, table, count, seed, now)
    if not present:
        # The types come first: where a video is, all types are.
        create_library(engine, [], default_types(), prefix=prefix)
    gaps = list(_gaps(engine, table, count)) if present < count else []
    missing = sum(map(len, gaps))
    mysql = engine.dialect.name in ("mysql", "mariadb")
    if missing:
        progress(f"{missing:,} of {count:,} videos are missing and are made")
        if mysql and _may_load(engine):
            # Most of the work is in the indexes: row by row for a few, sorted at the end for many.
            _load(engine, table, gaps, seed, now, progress, sorted_after=missing > present // 4)
        else:
            if mysql:
                progress("the server's local_infile is OFF: rows are inserted, which takes several times as long")
            _insert(engine, table, gaps, seed, now, progress)
    if mysql:
        _build_indexes(engine, table, progress)
    return missing


def _present(engine: sa.Engine, table: str, count: int, seed: int, now: datetime) -> int:
    """Return how many videos of this library there are.

    Raises:
        LibraryError: There are others.
    """
    if not sa.inspect(engine).has_table(table):
        return 0
    vod = sa.table(table, sa.column("vod_id"), sa.column("vod_play_url"))
    with engine.connect() as connection:
        totals = sa.select(sa.func.count(), sa.func.min(vod.c.vod_id), sa.func.max(vod.c.vod_id)).select_from(vod)
        present, first, last = connection.execute(totals).one()
        if not present:
            return 0
        wanted = {1 + (count - 1) * n // (_SAMPLED - 1) for n in range(_SAMPLED)} | {first, last}
        sample = connection.execute(sa.select(vod).where(vod.c.vod_id.in_(sorted(wanted)))).all()
    # Play links follow from id and seed, and nobody but a collector ever changes them.
    own = sum(row.vod_play_url == video_of(row.vod_id, seed, now)["vod_play_url"] for row in sample)
    if last > count or 2 * own < len(sample):
        raise LibraryError(
            f"{table} in {engine.url.render_as_string(hide_password=True)} holds other videos than those of a library "
            f"of {count:,} with seed {seed}: nothing was inserted; choose an empty database"
        )
    return int(present)


def _gaps(engine: sa.Engine, table: str, count: int) -> Iterator[range]:
    """Yield the ids from 1 to ``count`` that are not there."""
    key: sa.ColumnElement[int] = sa.column("vod_id")
    query = sa.select(key).select_from(sa.table(table)).order_by(key)
    expected = 1
    with engine.connect() as connection:
        while expected <= count:
            found = connection.execute(query.where(key >= expected).limit(20_000)).scalars().all()
            for vod_id in found:
                if vod_id > expected:
                    yield range(expected, vod_id)
                expected = vod_id + 1
            if not found:
                yield range(expected, count + 1)
                return


def _may_load(engine: sa.Engine) -> bool:
    with engine.connect() as connection:
        return bool(connection.exec_driver_sql("SELECT @@GLOBAL.local_infile").scalar())


def _load(
    engine: sa.Engine,
    table: str,
    gaps: Sequence[range],
    seed: int,
    now: datetime,
    progress: Progress,
    *,
    sorted_after: bool,
) -> None:
    chunks = [gap[start : start + _CHUNK] for gap in gaps for start in range(0, len(gap), _CHUNK)]
    total, done = sum(map(len, gaps)), 0
    loader = sa.create_engine(engine.url, connect_args={"local_infile": True, "charset": "utf8mb4"})
    statement = (
        f"LOAD DATA LOCAL INFILE %s INTO TABLE `{table}` CHARACTER SET utf8mb4 "
        f"FIELDS TERMINATED BY X'{ord(FIELD_END):02X}' ESCAPED BY '' LINES TERMINATED BY X'{ord(LINE_END):02X}' "
        f"({', '.join(f'`{name}`' for name in COLUMNS)})"
    )
    try:
        with loader.connect() as connection, tempfile.TemporaryDirectory(prefix="generated-library-") as folder:
            if sorted_after:
                connection.exec_driver_sql(f"ALTER TABLE `{table}` DISABLE KEYS")
            for path, size in _files(chunks, seed, now, Path(folder)):
                taken = connection.exec_driver_sql(statement, (str(path),)).rowcount
                warning = connection.exec_driver_sql("SHOW WARNINGS LIMIT 1").first()
                connection.commit()
                path.unlink()
                # LOCAL turns what is wrong with a row into a warning, in strict mode too.
                if taken != size or warning:
                    raise LibraryError(f"{table} took {taken} of {size} videos as they are: {warning}")
                done += size
                progress(f"{done:,} of {total:,} videos loaded")
    finally:
        loader.dispose()


def _files(chunks: Sequence[range], seed: int, now: datetime, folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield a file for each chunk, made by other processes while the one before is loaded."""
    if sum(map(len, chunks)) <= _ALONE:
        for chunk in chunks:
            path = folder / f"{chunk[0]}"
            write_file(path, chunk, seed, now)
            yield path, len(chunk)
        return
    workers = min(4, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        waiting = iter(chunks)
        running = []

        def begin() -> None:
            for chunk in waiting:
                running.append((chunk, pool.submit(_write_elsewhere, folder / f"{chunk[0]}", chunk, seed, now)))
                return

        for _ in range(2 * workers - 1):
            begin()
        while running:
            chunk, made = running.pop(0)
            path = made.result()
            begin()
            yield path, len(chunk)


def _write_elsewhere(path: Path, chunk: range, seed: int, now: datetime) -> Path:
    arguments = (chunk[0], chunk[-1], seed, int(now.astimezone(UTC).timestamp()), path)
    command = [sys.executable, "-m", "douban_pipeline_tests.harness.generated.stored", *map(str, arguments)]
    search = os.pathsep.join(filter(None, (str(_PACKAGES), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": search}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if made.returncode:
        raise RuntimeError(f"the videos {chunk[0]} to {chunk[-1]} could not be made: {made.stderr[-2000:]}")
    return path


def _insert(engine: sa.Engine, table: str, gaps: Sequence[range], seed: int, now: datetime, progress: Progress) -> None:
    statement = sa.insert(sa.table(table, *(sa.column(name) for name in COLUMNS)))
    total, done = sum(map(len, gaps)), 0
    for gap in gaps:
        for start in range(0, len(gap), _INSERTED):
            part = gap[start : start + _INSERTED]
            with engine.begin() as connection:
                connection.execute(statement, [stored_of(vod_id, seed, now) for vod_id in part])
            before, done = done, done + len(part)
            if before // 10_000 < done // 10_000:
                progress(f"{done:,} of {total:,} videos inserted")


def _build_indexes(engine: sa.Engine, table: str, progress: Progress) -> None:
    """Build the indexes that a load put off, this one or one that was interrupted."""
    with engine.connect() as connection:
        indexes = connection.exec_driver_sql(f"SHOW INDEX FROM `{table}`").mappings().all()
        if any(index["Comment"] == "disabled" for index in indexes):
            progress("the indexes are built")
            # Without threads the table is read once for each index; with any number, once. MySQL has none.
            threads = "myisam_repair_threads = 2, " if getattr(connection.dialect, "is_mariadb", False) else ""
            connection.exec_driver_sql(
                f"SET SESSION {threads}myisam_sort_buffer_size = {_SORT_BUFFER}, read_buffer_size = 1048576"
            )
            connection.exec_driver_sql(f"ALTER TABLE `{table}` ENABLE KEYS")
            connection.exec_driver_sql(f"ANALYZE TABLE `{table}`")
