"""A worker that is killed at a chosen point, by SIGKILL, in a child process a case.

``python -m douban_pipeline_tests.comments.crashing URL`` reads points from its input, a line each, and answers with
``killed`` or ``ended``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

from sqlalchemy import Engine

from douban_pipeline.comments import worker as working
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import batches, events, shards
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.owner import owner_name
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

POINTS = (
    "after the claim",
    "after reading",
    "after the lock",
    "after the steps",
    "halfway through writing",
    "before the commit",
    "after the commit",
    "after the caches",
    "after the last mark",
)


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def killing(after: Any) -> Any:
    """Return a function that does what it did, then is killed."""

    def called(*given: Any, **named: Any) -> NoReturn:
        after(*given, **named)
        die()

    return called


class Silent:
    """A follower that does nothing."""

    def follow(self, applied: object) -> None: ...

    def work(self) -> int:
        return 0


def crash(url: str, point: str) -> None:
    """Work until the point."""
    follower = Silent()
    engine = open_engine(url)
    worker = Worker(engine, FakeClock(), owner_name("worker"), SafetyReview(), (follower,))
    match point:
        case "after the claim":
            shards.claim_shards = killing(shards.claim_shards)
        case "after reading":
            batches.select_pending = killing(batches.select_pending)
        case "after the lock":
            shards.lock_shard = killing(shards.lock_shard)
        case "after the steps":
            working.apply_events = killing(working.apply_events)
        case "halfway through writing":
            batches._write_opinions = killing(batches._write_opinions)
        case "before the commit":
            batches.write_batch = killing(batches.write_batch)
        case "after the commit":
            follower.follow = die  # type: ignore[method-assign]
        case "after the caches":
            events.finish = die
        case "after the last mark":
            committed, before = working.run_transaction, _finished(engine)

            def marked(engine: Engine, work: Any) -> Any:
                done = committed(engine, work)
                if _finished(engine) > before:
                    die()
                return done

            working.run_transaction = marked
    worker.turn()


def _finished(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT COUNT(*) FROM cmt_event WHERE state = 2").scalar() or 0)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            crash(sys.argv[1], line.strip())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("killed" if killed else "ended", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
