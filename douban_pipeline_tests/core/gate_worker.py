"""What a process does in the tests of the gate; in a module of its own, which a new process imports quickly."""

from __future__ import annotations

import os
import signal
from datetime import datetime
from random import Random
from typing import Any

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.gate import Gate
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.douban.store.tables import own_tables

FIRST = 90_000_100
"""The subject that the first process asks for; each further process asks for the next."""


def work(url: str, clock: Any, upstream_url: str, worker: int, until: datetime, killed_at: datetime | None) -> None:
    """Ask for one subject, again and again, as one process of several; each answer takes its time.

    Args:
        url: The library.
        clock: The time that all share.
        upstream_url: Address of douban.php.
        worker: Number of the process; says which subject it asks for.
        until: When it stops.
        killed_at: When it is killed, with a call under way.
    """
    engine, tables = open_engine(url), own_tables("mac_")
    rng = Random(worker)

    def slow(body: bytes) -> bytes:
        if killed_at is not None and clock.now() >= killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        clock.sleep(rng.uniform(0.3, 2.5))
        return body

    with Fetcher("douban", Gate(engine, tables.gate, clock), Archive(engine, tables.snapshot, clock), clock) as fetcher:
        clock.enter()
        try:
            while clock.now() < until:
                asked = {"id": str(FIRST + worker)}
                fetcher.get(upstream_url, asked, Call(key=asked["id"], parser_version="1", parse=slow))
        finally:
            clock.leave()
    engine.dispose()
