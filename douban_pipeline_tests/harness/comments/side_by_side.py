"""The same comments elsewhere: in isso where it is installed, and in one table with OFFSET, as small servers list them.

isso is no dependency of the project: install it in an environment of its own and name its program, or have it on PATH.
The table of its own is asked without HTTP, which only helps it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from douban_pipeline.demo.comment_sample import generate
from douban_pipeline_tests.harness.comments.callers import percentile
from douban_pipeline_tests.harness.comments.loading import LARGE
from douban_pipeline_tests.harness.comments.publishing import tokens
from douban_pipeline_tests.harness.comments.running import Running, cpu_seconds, free_port

SIZE = 20
_PUBLISHED = 50
_URI = "/film/"
_WAIT_SECONDS = 60


def program() -> str | None:
    """Return isso's program: that of BENCH_ISSO, or one on PATH; None where there is none."""
    return os.environ.get("BENCH_ISSO") or shutil.which("isso")


def measure(place: Running, engine: sa.Engine, section_id: int, count: int, home: Path, times: int) -> dict[str, Any]:
    """Return milliseconds of page one and of the page half way by likes, and comments published a second, of each.

    Args:
        place: Our service.
        engine: Its database, in which the plain table is made too.
        section_id: A section of ``count`` comments in it.
        count: How many comments each gets.
        home: Folder for isso's files.
        times: How often each page is read.
    """
    figures = {**_ours(place, engine, section_id, count, times), **_plain(engine, count, times)}
    isso = program()
    if isso is None:
        return {**figures, "isso": "not found: pip install isso into an environment of its own, BENCH_ISSO=…/bin/isso"}
    with _running_isso(isso, home, count) as (base, process):
        return {**figures, **_isso(base, process, count, times)}


def _figures(
    name: str,
    top: Callable[[], object],
    far: Callable[[], object],
    publish: Callable[[int], object],
    times: int,
    used: Callable[[], float] | None = None,
) -> dict[str, float]:
    """Measure one server; ``used`` returns the seconds of processor that it has used, where that can be told."""
    found = {}
    for place, read in (("page one", top), ("half way", far)):
        read()
        before = used() if used is not None else 0.0
        taken = [_milliseconds(read) for _ in range(times)]
        found[f"{name}: {place}, ms p50"] = statistics.median(taken)
        found[f"{name}: {place}, ms p95"] = percentile(taken, 0.95)
        if used is not None:
            found[f"{name}: {place}, ms of its processor"] = 1000 * (used() - before) / times
    begun = time.perf_counter()
    for number in range(_PUBLISHED):
        publish(number)
    found[f"{name}: published a second, one by one"] = _PUBLISHED / (time.perf_counter() - begun)
    return found


def _milliseconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def _ask(url: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Any:
    given = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, given, {"Content-Type": "application/json", **(headers or {})})
    with urllib.request.urlopen(asked, timeout=_WAIT_SECONDS) as answer:
        return json.loads(answer.read())


def _ours(place: Running, engine: sa.Engine, section_id: int, count: int, times: int) -> dict[str, float]:
    query = sa.text(
        "SELECT like_count, comment_id FROM cmt_comment WHERE section_id = :section "
        "ORDER BY like_count DESC, comment_id DESC LIMIT 1 OFFSET :place"
    )
    with engine.connect() as connection:
        likes, comment_id = connection.execute(query, {"section": section_id, "place": count // 2}).one()
    base = f"{place.bases[0]}/comments/v1/sections/1/{LARGE}"
    page = f"{base}/page?sort=likes&size={SIZE}"
    users = tokens()

    def publish(number: int) -> None:
        headers = {"Authorization": f"Bearer {users[number % len(users)]}"}
        _ask(f"{base}/comments", {"content": f"第 {number} 条，好看"}, headers)

    def read(url: str) -> None:
        assert len(_ask(url)["items"]) == SIZE

    return _figures(
        "ours",
        lambda: read(page),
        lambda: read(f"{page}&cursor={likes}.{comment_id}"),
        publish,
        times,
        place.service_seconds,
    )


def _plain(engine: sa.Engine, count: int, times: int) -> dict[str, float]:
    """Measure one table with its votes in it, indexed by page and votes, counted and paged by OFFSET."""
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE plain_comment (id BIGINT PRIMARY KEY AUTO_INCREMENT, page_key VARCHAR(190) NOT NULL, "
            "rid BIGINT NOT NULL DEFAULT 0, user_id BIGINT NOT NULL, content TEXT NOT NULL, vote_up INT NOT NULL, "
            "is_pending BOOL NOT NULL DEFAULT 0, created_at DATETIME NOT NULL, "
            "KEY by_page (page_key), KEY by_root (rid))"
        )
    insert = sa.text(
        "INSERT INTO plain_comment (page_key, user_id, content, vote_up, created_at) "
        "VALUES (:page, :user, :content, :likes, UTC_TIMESTAMP())"
    )
    rows = [
        {"page": _URI, "user": 10 + number % 5000, "content": f"第 {number} 条评论，好看", "likes": liked}
        for number, liked in enumerate(generate(count).likes.tolist(), 1)
    ]
    for start in range(0, count, 5000):
        with engine.begin() as connection:
            connection.execute(insert, rows[start : start + 5000])
    where = "page_key = :page AND rid = 0 AND is_pending = 0"
    listed = sa.text(
        f"SELECT * FROM plain_comment WHERE {where} ORDER BY vote_up DESC, created_at DESC LIMIT {SIZE} OFFSET :place"
    )
    counted = sa.text(f"SELECT COUNT(*) FROM plain_comment WHERE {where}")
    replies = sa.text("SELECT * FROM plain_comment WHERE rid IN :ids").bindparams(sa.bindparam("ids", expanding=True))

    def read(offset: int) -> None:
        with engine.connect() as connection:
            connection.execute(counted, {"page": _URI}).scalar()
            found: Sequence[Any] = connection.execute(listed, {"page": _URI, "place": offset}).all()
            connection.execute(replies, {"ids": [row.id for row in found]}).all()

    def publish(number: int) -> None:
        with engine.begin() as connection:
            connection.execute(insert, {"page": _URI, "user": number, "content": "好看", "likes": 0})

    return _figures("one table", lambda: read(0), lambda: read(count // 2), publish, times)


def _isso(base: str, process: psutil.Process, count: int, times: int) -> dict[str, float]:
    page = f"{base}/?uri={_URI}&limit={SIZE}&sort=upvotes"

    def read(offset: int) -> None:
        assert len(_ask(f"{page}&offset={offset}")["replies"]) == SIZE

    def publish(number: int) -> None:
        _ask(f"{base}/new?uri={_URI}", {"text": f"第 {number} 条，好看", "author": "甲"})

    return _figures("isso", lambda: read(0), lambda: read(count // 2), publish, times, lambda: cpu_seconds(process))


@contextmanager
def _running_isso(isso: str, home: Path, count: int) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of isso with a thread of ``count`` comments, and its process."""
    port, database = free_port(), home / "isso.sqlite"
    base = f"http://127.0.0.1:{port}"
    settings = home / "isso.cfg"
    settings.write_text(
        f"[general]\ndbpath = {database}\nhost = {base}/\n[server]\nlisten = {base}/\npublic-endpoint = {base}\n"
        "[guard]\nenabled = false\n[moderation]\nenabled = false\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([isso, "-c", str(settings), "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(f"{base}/info", process)
        _fill(database, count)
        yield base, psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_WAIT_SECONDS)


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            _ask(url)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("isso did not come up")


def _fill(database: Path, count: int) -> None:
    now = time.time()
    with sqlite3.connect(database, timeout=_WAIT_SECONDS) as connection:
        connection.execute("INSERT INTO threads (uri, title) VALUES (?, ?)", (_URI, "片名"))
        thread = connection.execute("SELECT id FROM threads WHERE uri = ?", (_URI,)).fetchone()[0]
        connection.executemany(
            "INSERT INTO comments (tid, parent, created, modified, mode, remote_addr, text, author, likes, dislikes, "
            "voters, notification) VALUES (?, NULL, ?, NULL, 1, '127.0.0.1', ?, '甲', ?, 0, ?, 0)",
            (
                (thread, now - count + number, f"第 {number} 条评论，好看", liked, b"\0" * 256)
                for number, liked in enumerate(generate(count).likes.tolist(), 1)
            ),
        )
    connection.close()
