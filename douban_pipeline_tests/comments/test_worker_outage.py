"""The database goes away under a worker and comes back: the worker waits for it and goes on where it was."""

from __future__ import annotations

import logging
import threading

import pytest
from sqlalchemy import make_url, select

from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.types import EventState
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.comments.lines import Line
from douban_pipeline_tests.comments.stage import stage, user


class Told:
    """A consumer during whose first call the database goes away."""

    def __init__(self, line: Line) -> None:
        self.line, self.events = line, []

    def follow(self, applied):
        self.events += [event.event_id for event in applied]
        if len(self.events) == 1:
            self.line.cut()

    def work(self):
        return 0


@pytest.mark.mariadb
@pytest.mark.parametrize("threads", [1, 4])
def test_losing_the_database_does_not_end_a_worker(mariadb_url, caplog, threads):
    url = make_url(mariadb_url)
    line = Line((url.host, url.port or 3306))
    line.start()
    engine = open_engine(url.set(port=line.port))
    paused: list[float] = []
    with stage(mariadb_url) as place:
        told = Told(line)
        worker = Worker(engine, place.clock, "lost@here:1", SafetyReview(), (told,), threads=threads)

        class Stopped(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                paused.append(timeout or 0.0)
                if len(paused) == 2:
                    line.mend()
                return False

        def idle(stopped: threading.Event, _pause: float) -> None:
            stopped.set()

        first = place.publish(user(2), "之前")
        second = place.publish(user(3), "之后")
        with caplog.at_level(logging.WARNING):
            worker._batch = 1
            worker.run(Stopped(), 0.0, idle)
        assert place.roots() == [second, first]
        assert paused[:2] == [1.0, 2.0]
        with place.engine.connect() as connection:
            states = connection.execute(select(tables.event.c.state)).scalars().all()
            owners = set(connection.execute(select(tables.shard.c.owner)).scalars())
        assert states == [EventState.FINISHED] * 2, "what was applied when it went away is passed to the caches again"
        assert told.events == [1, 1, 2]
        assert owners == {""}
    said = [record.getMessage() for record in caplog.records if record.name.endswith("comments.worker")]
    assert [text.split(":")[0] for text in said] == [
        "the database fails, events wait; next attempt in 1 s",
        "the database fails, events wait; next attempt in 2 s",
        "the database answers again after 2 failures",
    ]
    engine.dispose()
    line.cut()


@pytest.mark.mariadb
def test_a_worker_that_is_stopped_while_the_database_is_away_ends(mariadb_url, caplog):
    url = make_url(mariadb_url)
    line = Line((url.host, url.port or 3306))
    line.start()
    engine = open_engine(url.set(port=line.port))
    with stage(mariadb_url) as place:
        worker = Worker(engine, place.clock, "lost@here:1", SafetyReview())

        class Stopped(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                self.set()
                return True

        worker.turn()
        line.cut()
        worker.run(Stopped(), 0.0)
    assert "their leases expire" in caplog.text
    engine.dispose()
