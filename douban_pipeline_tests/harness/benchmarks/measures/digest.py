"""What a slot adds to the waiting for the model, and listing ten years of slots.

On a SQLite file of its own; WeRSS and the model answer at once, so that all time is ours and theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date, timedelta

from sqlalchemy import insert

from douban_pipeline.digest.store import slots
from douban_pipeline.digest.store.tables import slot_run
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline_tests.digest.stage import SLOTS, Stage, stage
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World

ARTICLES = 50
_DAYS = 3650
_LAST = date(2026, 11, 19)


def measure_slot(at: Stage, articles: int = ARTICLES) -> tuple[float, float]:
    """Run a slot over new articles: intake, analyses, findings, report and pages; return seconds and those of CPU."""
    for number in range(articles):
        at.publish(number, number % 100)
    began, cpu = time.perf_counter(), time.process_time()
    ended = at.run("22:00")
    took, busy = time.perf_counter() - began, time.process_time() - cpu
    assert len(at.analyses()) == articles, ended
    return took, busy


def measure_list(at: Stage) -> tuple[int, float]:
    """List ten years of slots; return how many, and the seconds."""
    first = _LAST - timedelta(days=_DAYS - 1)
    moment = at.clock.at
    rows = [
        {
            "run_date": first + timedelta(days=number),
            "slot": slot,
            "scheduled_at": moment,
            "status": SlotStatus.SUCCESS.value,
            "error": "",
            "counters": {"articles_new": 9, "analysed": 9, "findings": 1, "best_score": 71},
            "started_at": moment,
            "updated_at": moment,
        }
        for number in range(_DAYS)
        for slot in SLOTS
    ]
    engine = at.services.engine
    with engine.begin() as connection:
        connection.execute(insert(slot_run), rows)
    began = time.perf_counter()
    with engine.connect() as connection:
        found = slots.between(connection, first, _LAST)
    return len(found), time.perf_counter() - began


def digest(world: World) -> Iterator[Figure]:
    """Run a slot over stand-ins that answer at once, and list ten years of slots."""
    with stage(world.scratch, at="22:00") as at:
        world.say(f"a slot of {ARTICLES} articles")
        took, busy = measure_slot(at)
        world.say("ten years of slots")
        found, listing = measure_list(at)
    yield Figure(f"a slot of {ARTICLES} articles", took, "s", Target(most=15), note="stand-ins counted")
    yield Figure(f"a slot of {ARTICLES} articles, CPU", busy, "s")
    yield Figure(f"listing {found:,} slots", listing, "s", Target(most=2))


MEASURES = (Measure("digest", "what a slot of the digest costs", digest, ()),)
