"""A source that falls ill under load: how many requests it still gets until nobody asks, and how soon it is used again.

Six callers with gates of their own, as six processes have, five calls under way at once at 600 a minute, real HTTP,
virtual time. What is counted is what the upstream saw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Engine

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import GateClosed, SourceError
from douban_pipeline.core.gate import Gate
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.douban.sources.errors import RULES
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.clocks import START, SharedClock
from douban_pipeline_tests.harness.fixtures.scenario import FILMS
from douban_pipeline_tests.stand_ins.faults import FAULTS
from douban_pipeline_tests.stand_ins.replay import ReplayServer

CALLERS, AT_ONCE, A_MINUTE = 6, 5, 600
WELL = timedelta(seconds=6)
"""How long the source is well before it falls ill."""

TABLE = {
    # fault: (requests until silence, seconds until recovery), at most. Ten failures in a row; good answers of those
    # under way when it fell ill come in between.
    "server_error": (14, 60),
    "empty_body": (14, 60),
    "wrong_page": (14, 60),
    "garbage": (14, 60),
    "wrong_id": (14, 60),
    "empty": (14, 60),
    "timeout": (14, 60),
    # It says itself that it is too much: a minute or a little more.
    "throttled": (5, 92),
    # Bans alone are waited out for long.
    "captcha": (5, 3602),
    "error_in_200": (5, 3602),
    "login_redirect": (5, 3602),
    "forbidden": (5, 3602),
}


class SlowArchive(Archive):
    """An archive at which every call takes its time, so that several are under way at once."""

    def __init__(self, engine: Engine, clock: SharedClock, rng: Random) -> None:
        super().__init__(engine, own_tables("mac_").snapshot, clock)
        self._time, self._rng = clock, rng

    def put(self, source: str, key: str, status: int, body: bytes, parser_version: str) -> int:
        """Keep the answer, after a while."""
        self._time.sleep(self._rng.uniform(0.3, 1.0))
        return super().put(source, key, status, body, parser_version)


@dataclass
class Course:
    """What happened; one caller moves at a time, so nothing needs a lock.

    Attributes:
        lasts: How long the source stays ill once nobody asks it.
        ill_at: When it fell ill.
        before: How many requests it had until then.
        silent_at: When nobody asked any more.
        requests: How many requests it got from falling ill until then.
        healed_at: When it was well again.
        used_at: When it gave the first good answer after that.
        probes: Requests it got while it was ill and nobody but a probe asked.
    """

    fault: str
    lasts: timedelta = timedelta()
    ill_at: datetime | None = None
    before: int = 0
    silent_at: datetime | None = None
    requests: int = 0
    healed_at: datetime | None = None
    used_at: datetime | None = None
    probes: int = 0


@dataclass
class Load:
    """The callers and their upstream."""

    folder: Path
    upstream: ReplayServer
    clock: SharedClock
    course: Course
    engines: list[Engine] = field(default_factory=list)

    def play(self) -> Course:
        """Let them call until the source is in use again."""
        self.clock.run([self._caller(number) for number in range(CALLERS)])
        for engine in self.engines:
            engine.dispose()
        return self.course

    def _caller(self, number: int) -> Callable[[], None]:
        engine = open_engine(f"sqlite:///{self.folder / 'library.sqlite'}")
        tables, rng = own_tables("mac_"), Random(number)
        if number == 0:
            tables.metadata.create_all(engine, tables=[tables.gate, tables.snapshot])
        self.engines.append(engine)
        gate = Gate(engine, tables.gate, self.clock, rng=rng)
        gate.configure("douban", A_MINUTE, AT_ONCE)
        archive = SlowArchive(engine, self.clock, rng)
        fetcher = Fetcher("douban", gate, archive, self.clock, rules=RULES, rng=rng)
        wanted = FILMS[number]["id"]

        def call() -> None:
            with fetcher:
                while self.course.used_at is None:
                    self._turn()
                    try:
                        fetcher.get(
                            self.upstream.douban_url,
                            {"id": str(wanted)},
                            Call(key=str(wanted), parser_version="1", parse=lambda body: parse_subject(body, wanted)),
                        )
                    except GateClosed as error:
                        self._closed()
                        wait = (error.until - self.clock.now()).total_seconds()
                        self.clock.sleep(max(wait, 0.0) + rng.uniform(0, 2))
                    except SourceError:
                        continue
                    else:
                        if self.course.healed_at is not None:
                            self.course.used_at = self.clock.now()

        return call

    def _turn(self) -> None:
        course, now = self.course, self.clock.now()
        if course.ill_at is None and now >= START + WELL:
            self.upstream.faults.add("douban", course.fault)
            course.ill_at, course.before = now, self.upstream.requests.count("douban")
        if course.silent_at is not None and course.healed_at is None and now >= course.silent_at + course.lasts:
            course.probes = self.upstream.requests.count("douban") - course.before - course.requests
            self.upstream.faults.clear()
            course.healed_at = now

    def _closed(self) -> None:
        course = self.course
        if course.ill_at is not None and course.silent_at is None:
            course.silent_at = self.clock.now()
            course.requests = self.upstream.requests.count("douban") - course.before
            self._turn()


def outage(folder: Path, fault: str, lasts: timedelta = timedelta()) -> Course:
    """Return what happened when a source fell ill in the way of ``fault``."""
    clock = SharedClock()
    with ReplayServer(FILMS, now=lambda: clock.now().timestamp()) as upstream:
        return Load(folder, upstream, clock, Course(fault, lasts)).play()


@pytest.mark.usefixtures("told_timeouts")
@pytest.mark.parametrize("fault", FAULTS)
def test_requests_until_silence_and_seconds_until_recovery(tmp_path: Path, fault: str) -> None:
    most_requests, most_seconds = TABLE[fault]
    course = outage(tmp_path, fault)
    assert course.before > 30, "at full rate until it fell ill"
    assert 1 <= course.requests <= most_requests
    assert course.used_at is not None
    assert course.healed_at is not None
    assert (course.used_at - course.healed_at).total_seconds() <= most_seconds


@pytest.mark.parametrize("fault", ["server_error", "wrong_page"])
def test_an_hour_of_illness_costs_a_dozen_probes(tmp_path: Path, fault: str) -> None:
    course = outage(tmp_path, fault, timedelta(hours=1))
    assert course.requests <= 14
    assert 6 <= course.probes <= 12
    assert course.used_at is not None
    assert course.healed_at is not None
    assert course.used_at - course.healed_at <= timedelta(minutes=15, seconds=2)
