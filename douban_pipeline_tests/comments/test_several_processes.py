"""Several processes of the service behind one port, on MariaDB and Redis, and workers that are woken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import redis

from douban_pipeline.comments.cache.lists import WakeUps
from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.sections import find_section
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.serving import SECRET
from douban_pipeline_tests.conftest import server_url
from douban_pipeline_tests.harness.rig.dagster_stack import free_port

pytestmark = [pytest.mark.mariadb, pytest.mark.redis]
PATIENCE = 120.0
"""Seconds: processes start slowly on a busy machine."""


@contextmanager
def running_command(log: Path, given: Mapping[str, str], *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of ``douban-pipeline``, its output in ``log``, and have it end in peace."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "douban_pipeline", *command],
            cwd=log.parent,
            env={**os.environ, **given},
            stdout=output,
            stderr=output,
        )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(PATIENCE)


@contextmanager
def serving(processes: int, log: Path, given: Mapping[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of ``douban-pipeline serve`` and its process, once it answers."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with running_command(log, given, "serve", "--port", str(port), "--processes", str(processes)) as running:
        until = time.monotonic() + PATIENCE
        while not answers(base):
            said = log.read_text(encoding="utf-8")
            assert running.poll() is None, said
            assert time.monotonic() < until, said
            threading.Event().wait(0.1)
        yield base, psutil.Process(running.pid)


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


@pytest.fixture
def environment(services: CommentsServices, tmp_path: Path) -> dict[str, str]:
    """The variables under which commands share the database and the Redis."""
    settings = services.settings
    return {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_SYSTEMS": "douban,comments",
        "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": settings.database_url.get_secret_value(),
        "DOUBAN_PIPELINE_COMMENTS_REDIS_URL": settings.redis_url.get_secret_value(),
        "DOUBAN_PIPELINE_COMMENTS_REDIS_PREFIX": settings.redis_prefix,
        "DOUBAN_PIPELINE_COMMENTS_TOKEN_SECRET": SECRET,
        "DOUBAN_PIPELINE_COMMENTS_PUBLISH_PER_MINUTE": "1000",
    }


def publish(base: str, start: int, count: int, *, again: str = "") -> list[int]:
    """Publish so many comments at once, a connection each; return their ids.

    Each request is repeated at the address ``again``, as after an answer that was lost, if there is one.
    """
    expires = datetime.now(UTC) + timedelta(hours=1)
    found: list[int] = []
    failed: list[object] = []

    def one(number: int) -> None:
        headers = {
            "Authorization": f"Bearer {make_token(1 + number, SECRET, expires)}",
            "Idempotency-Key": f"k{number}",
        }
        body = {"content": f"第 {number} 条"}
        told = set()
        for address in filter(None, (base, again)):
            path = f"{address}/comments/v1/sections/1/7/comments"
            answer = httpx.post(path, json=body, headers=headers, timeout=PATIENCE, trust_env=False)
            if answer.status_code == 202:
                told.add(int(answer.json()["id"]))
            else:
                failed.append((answer.status_code, answer.text))
        found.extend(told)

    threads = [threading.Thread(target=one, args=(start + number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    return found


def test_two_processes_share_a_section_without_gap_or_double(services, environment, tmp_path):
    with serving(2, tmp_path / "serve.log", environment) as (base, parent):
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
    assert_there_once(services, ids)


def assert_there_once(services: CommentsServices, ids: Collection[int]) -> None:
    """Exactly these comments are there, their floors without a gap, and every counter is what its rows say."""
    with reading(services.engine) as connection:
        section = find_section(connection, 1, 7)
        assert section is not None
        rows = connection.exec_driver_sql("SELECT comment_id, floor FROM cmt_comment ORDER BY floor").all()
        assert list(count_differences(connection, section["section_id"])) == []
    assert [row.floor for row in rows] == list(range(1, len(ids) + 1))
    assert {row.comment_id for row in rows} == set(ids)


@pytest.mark.long
def test_two_services_and_two_workers_of_which_one_is_killed_lose_and_double_nothing(services, environment, tmp_path):
    def ask(query: str) -> list[Any]:
        with reading(services.engine) as connection:
            return list(connection.exec_driver_sql(query).scalars())

    def wait_for(query: str, wanted: Any, of: Collection[subprocess.Popen[bytes]]) -> None:
        until = time.monotonic() + PATIENCE
        while ask(query) != [wanted]:
            assert [worker.poll() for worker in of] == [None] * len(of), "no worker ends by itself"
            assert time.monotonic() < until, (query, ask(query))
            threading.Event().wait(0.05)

    def like(base: str, number: int, user: int) -> None:
        token = make_token(user, SECRET, datetime.now(UTC) + timedelta(hours=1))
        answer = httpx.put(
            f"{base}/comments/v1/comments/{number}/vote",
            json={"value": 1},
            headers={"Authorization": f"Bearer {token}", "Idempotency-Key": f"like-{number}-{user}"},
            timeout=PATIENCE,
            trust_env=False,
        )
        assert answer.status_code == 202, answer.text

    finished = "SELECT COUNT(*) FROM cmt_event WHERE state = 2"
    with ExitStack() as opened:
        first, second = (
            opened.enter_context(serving(1, tmp_path / f"serve-{number}.log", environment))[0] for number in (1, 2)
        )
        workers = [
            opened.enter_context(running_command(tmp_path / f"worker-{number}.log", environment, "comment-worker"))
            for number in (1, 2)
        ]
        ids = publish(first, 0, 6, again=second) + publish(second, 6, 6, again=first)
        wait_for(finished, 12, workers)
        wait_for("SELECT COUNT(DISTINCT owner) FROM cmt_shard WHERE owner <> ''", 2, workers)
        [owner] = ask("SELECT owner FROM cmt_shard WHERE shard = (SELECT MAX(shard) FROM cmt_event)")
        [killed] = [worker for worker in workers if worker.pid == int(owner.rpartition(":")[2])]
        [other] = [worker for worker in workers if worker is not killed]
        # Stopped with the section in its hands, so that there is something that it leaves behind.
        psutil.Process(killed.pid).suspend()
        ids += publish(first, 12, 6, again=second)
        for number in ids[:12]:
            like(first, number, 90)
            like(second, number, 90)
            like(second, number, 91)
        killed.kill()
        killed.wait(PATIENCE)
        ids += publish(second, 18, 6, again=first)
        wait_for(finished, 24 + 24, [other])
        assert ask("SELECT COUNT(*) FROM cmt_shard WHERE owner = " + repr(owner)) == [0]
    assert len(set(ids)) == len(ids) == 24
    assert_there_once(services, ids)
    assert ask("SELECT like_count FROM cmt_comment ORDER BY floor") == [2] * 12 + [0] * 12
    assert sorted(ask("SELECT seq FROM cmt_event")) == list(range(1, 49))


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
    client = redis.Redis(port=free_port(), socket_connect_timeout=1)
    asked: list[float] = []

    class Told(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            asked.append(timeout or 0.0)
            return False

    WakeUps(client, "wake").wait(Told(), 0.05)
    client.close()
    assert asked == [0.05]
