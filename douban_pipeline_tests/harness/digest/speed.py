"""Measures what a slot adds to the waiting for the model, and listing ten years of slots.

``python -m douban_pipeline_tests.harness.digest.speed``, on a SQLite file of its own; WeRSS and the model are on
loopback and answer at once, so that all the time is ours and theirs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from sqlalchemy import insert

from douban_pipeline.digest.store import slots
from douban_pipeline.digest.store.tables import slot_run
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline_tests.digest.stage import SLOTS, Stage, stage

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


def main() -> None:
    """Measure all, or say what went wrong."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder), at="22:00") as at:
        took, busy = measure_slot(at)
        console.print(f"a slot of {ARTICLES} articles: {took:.2f} s, {busy:.2f} s of CPU, stand-ins counted")
        found, took = measure_list(at)
        console.print(f"listing {found:,} slots: {took:.2f} s")


if __name__ == "__main__":
    main()
