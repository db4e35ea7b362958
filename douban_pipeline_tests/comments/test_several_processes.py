"""Several processes of the service behind one port, on MariaDB and Redis, and workers that are woken."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
import pytest
import redis

from douban_pipeline.comments.caching.waking import WakeUps
from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.counting import count_differences
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.sections import find_section
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.serving import SECRET
from douban_pipeline_tests.conftest import server_url

pytestmark = [pytest.mark.mariadb, pytest.mark.redis]
PATIENCE = 120.0
"""Seconds: processes start slowly on a busy machine."""


@contextmanager
def serving(processes: int, home: Path, given: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of ``douban-pipeline serve`` and its process, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "douban_pipeline", "serve", "--port", str(port), "--processes", str(processes)]
    with (home / "serve.log").open("wb") as log:
        running = subprocess.Popen(command, cwd=home, env={**os.environ, **given}, stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + PATIENCE
        while not answers(base):
            said = (home / "serve.log").read_text(encoding="utf-8")
            assert running.poll() is None, said
            assert time.monotonic() < until, said
            threading.Event().wait(0.1)
        yield base, psutil.Process(running.pid)
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(PATIENCE)


def answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/healthz", timeout=PATIENCE, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def services(mariadb_url: str, tmp_path: Path) -> Iterator[CommentsServices]:
    given = {"database_url": mariadb_url, "redis_url": server_url("redis"), "token_secret": SECRET}
    prefix = f"test{uuid.uuid4().hex[:8]}:"
    settings = CommentsSettings(
        _env_file=None, home=tmp_path, redis_prefix=prefix, publish_per_minute=1000, cms_login=False, **given
    )
    found = open_services(settings, "worker")
    TREE.upgrade(found.engine)
    yield found
    found.close()
    client = redis.Redis.from_url(server_url("redis"))
    for key in client.scan_iter(f"{prefix}*", count=1000):
        client.delete(key)
    client.close()


def publish(base: str, start: int, count: int) -> list[int]:
    """Publish so many comments at once, a connection each; return their ids."""
    expires = datetime.now(UTC) + timedelta(hours=1)
    found: list[int] = []
    failed: list[object] = []

    def one(number: int) -> None:
        headers = {"Authorization": f"Bearer {make_token(1 + number, SECRET, expires)}"}
        body = {"content": f"第 {number} 条"}
        path = f"{base}/comments/v1/sections/1/7/comments"
        answer = httpx.post(path, json=body, headers=headers, timeout=PATIENCE, trust_env=False)
        if answer.status_code == 202:
            found.append(int(answer.json()["id"]))
        else:
            failed.append((answer.status_code, answer.text))

    threads = [threading.Thread(target=one, args=(start + number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    return found


def test_two_processes_share_a_section_without_gap_or_double(services, tmp_path):
    settings = services.settings
    given = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_SYSTEMS": "douban,comments",
        "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": settings.database_url.get_secret_value(),
        "DOUBAN_PIPELINE_COMMENTS_REDIS_URL": settings.redis_url.get_secret_value(),
        "DOUBAN_PIPELINE_COMMENTS_REDIS_PREFIX": settings.redis_prefix,
        "DOUBAN_PIPELINE_COMMENTS_TOKEN_SECRET": SECRET,
        "DOUBAN_PIPELINE_COMMENTS_PUBLISH_PER_MINUTE": "1000",
    }
    with serving(2, tmp_path, given) as (base, parent):
        answering: list[psutil.Process] = []
        until = time.monotonic() + PATIENCE
        while len(answering) < 2:
            assert time.monotonic() < until
            answering = [child for child in parent.children() if "spawn_main" in " ".join(child.cmdline())]
        ids = publish(base, 0, 6)
        # Whichever process is held up, the other one takes its requests.
        for each in answering:
            with suppress(psutil.NoSuchProcess):  # one that is held up for long is replaced
                each.suspend()
            ids += publish(base, len(ids), 6)
            with suppress(psutil.NoSuchProcess):
                each.resume()
    nodes = {(number >> 12) & 1023 for number in ids}
    assert len(set(ids)) == 18
    assert len(nodes) == 2, "each process hands out ids under a number of its own"
    worker = services.worker()
    while worker.turn():
        pass
    worker.stop()
    with reading(services.engine) as connection:
        section = find_section(connection, 1, 7)
        assert section is not None
        rows = connection.exec_driver_sql("SELECT comment_id, floor FROM cmt_comment ORDER BY floor").all()
        assert list(count_differences(connection, section["section_id"])) == []
    assert [row.floor for row in rows] == list(range(1, 19))
    assert {row.comment_id for row in rows} == set(ids)


def test_a_worker_is_woken_and_waits_no_longer_than_it_must(services):
    assert services.lists is not None
    heard, woken = services.lists.wake_ups(), threading.Event()
    stopped = threading.Event()

    class Waiting(threading.Thread):
        rounds = 0

        def run(self) -> None:
            while not stopped.is_set():
                heard.wait(stopped, 60.0)
                self.rounds += 1
                woken.set()

    thread = Waiting(daemon=True)
    thread.start()
    assert woken.wait(PATIENCE), "the first wait ends once it hears"
    for _ in range(3):
        woken.clear()
        services.wake_workers()
        assert woken.wait(PATIENCE)
    stopped.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    heard.close()


def test_without_redis_a_worker_waits_as_it_was_told():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        client = redis.Redis(port=closed.getsockname()[1], socket_connect_timeout=1)
        asked: list[float] = []

        class Told(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                asked.append(timeout or 0.0)
                return False

        WakeUps(client, "wake").wait(Told(), 0.05)
        client.close()
    assert asked == [0.05]
