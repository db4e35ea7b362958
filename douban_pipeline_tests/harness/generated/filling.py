"""A generated library in a database: rows as the CMS stores them, 1.7 million videos in some minutes on MariaDB."""

from __future__ import annotations

import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from datetime import datetime
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from douban_pipeline.demo.cms_schema import VOD_COLUMNS, checked_prefix, default_types
from douban_pipeline.demo.library import LibraryError, create_library
from douban_pipeline_tests.harness.generated.videos import COLUMNS as GIVEN
from douban_pipeline_tests.harness.generated.videos import video_of

Progress = Callable[[str], None]
_CHUNK = 25_000
"""Videos of one file, some 75 MB; twice as many files as there are processes lie on the disk at once."""
_ALONE = 5_000
"""So many are quicker made by this process alone."""
_INSERTED = 500
"""Videos of one transaction where rows are inserted."""
_SORT_BUFFER = 256 << 20

FIELD_END, LINE_END = "\x1f", "\x1e"
"""Neither is ever in a row, so that nothing in the file has to be escaped."""

_FALLBACKS = {
    column.name: column.fallback
    for column in VOD_COLUMNS
    if column.name in GIVEN or (column.default is None and not column.nullable)
}

COLUMNS = tuple(_FALLBACKS)
"""What a row has, in this order: what generated videos have, and what has no default; the rest is the table's."""

_WIDTHS = tuple((column.name, column.width) for column in VOD_COLUMNS if column.width and column.name in GIVEN)
_SPECIAL = re.compile("[&<>\"']").search
_ENTITIES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#039;"}


def stored_of(vod_id: int, seed: int, now: datetime) -> dict[str, Any]:
    """Return :data:`COLUMNS` of a video, short text escaped and cut as `demo.library.escape_as_cms` does."""
    row = _FALLBACKS | video_of(vod_id, seed, now)
    for name, width in _WIDTHS:
        text = row[name]
        if text:
            if _SPECIAL(text):
                row[name] = text = text.translate(_ENTITIES)
            if len(text) > width:
                row[name] = text[:width]
    return row


def write_file(path: Path, vod_ids: range, seed: int, now: datetime) -> Path:
    """Write rows for `LOAD DATA`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for vod_id in vod_ids:
            file.write(FIELD_END.join(map(str, stored_of(vod_id, seed, now).values())) + LINE_END)
    return path


def fill(
    engine: sa.Engine,
    count: int,
    *,
    seed: int,
    now: datetime,
    prefix: str = "mac_",
    progress: Progress = lambda _: None,
) -> None:
    """Create the CMS's tables in an empty database, and put the videos 1 to ``count`` in.

    Rows are loaded from files that other processes write, with the indexes built at the end, if the server allows it
    (``local_infile``); elsewhere they are inserted.

    Raises:
        LibraryError: The server did not take our videos as they are.
    """
    table = f"{checked_prefix(prefix)}vod"
    create_library(engine, [], default_types(), prefix=prefix)
    chunks = [range(start, min(start + _CHUNK, count + 1)) for start in range(1, count + 1, _CHUNK)]
    if _may_load(engine):
        _load(engine, table, chunks, seed, now, progress)
        _build_indexes(engine, table, progress)
    else:
        progress("rows are inserted, which takes several times as long as loading them (local_infile)")
        _insert(engine, table, count, seed, now, progress)


def _may_load(engine: sa.Engine) -> bool:
    if engine.dialect.name not in ("mysql", "mariadb"):
        return False
    with engine.connect() as connection:
        return bool(connection.exec_driver_sql("SELECT @@GLOBAL.local_infile").scalar())


def _load(engine: sa.Engine, table: str, chunks: Sequence[range], seed: int, now: datetime, progress: Progress) -> None:
    total, done = sum(map(len, chunks)), 0
    loader = sa.create_engine(engine.url, connect_args={"local_infile": True, "charset": "utf8mb4"})
    statement = (
        f"LOAD DATA LOCAL INFILE %s INTO TABLE `{table}` CHARACTER SET utf8mb4 "
        f"FIELDS TERMINATED BY X'{ord(FIELD_END):02X}' ESCAPED BY '' LINES TERMINATED BY X'{ord(LINE_END):02X}' "
        f"({', '.join(f'`{name}`' for name in COLUMNS)})"
    )
    try:
        with loader.connect() as connection, tempfile.TemporaryDirectory(prefix="generated-library-") as folder:
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
    if len(chunks) == 1 and len(chunks[0]) <= _ALONE:
        yield write_file(folder / "1", chunks[0], seed, now), len(chunks[0])
        return
    workers = min(4, os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting, running = iter(chunks), deque[tuple[Future[Path], int]]()

        def begin(most: int) -> None:
            for chunk in islice(waiting, most):
                running.append((pool.submit(write_file, folder / f"{chunk[0]}", chunk, seed, now), len(chunk)))

        begin(2 * workers)
        while running:
            made, size = running.popleft()
            path = made.result()
            begin(1)
            yield path, size


def _insert(engine: sa.Engine, table: str, count: int, seed: int, now: datetime, progress: Progress) -> None:
    statement = sa.insert(sa.table(table, *(sa.column(name) for name in COLUMNS)))
    for start in range(1, count + 1, _INSERTED):
        part = range(start, min(start + _INSERTED, count + 1))
        with engine.begin() as connection:
            connection.execute(statement, [stored_of(vod_id, seed, now) for vod_id in part])
        if start // 10_000 < part[-1] // 10_000:
            progress(f"{part[-1]:,} of {count:,} videos inserted")


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
