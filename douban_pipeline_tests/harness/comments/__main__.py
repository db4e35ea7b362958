"""``make bench-comments``: how fast comments are published, applied in batches, read and scored, on MariaDB and Redis.

The services and a worker run as processes of their own, as they do on a site; the database is one of its own, dropped
afterwards. Each figure is printed beside its target with the machine's load, and ``--json`` writes all of them.
A busy machine makes them small: then look at the processor's milliseconds, which are printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.reading import Order
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.comments import outage, publishing, reading, scoring_speed, side_by_side
from douban_pipeline_tests.harness.comments.loading import COLD, OUTAGE, database, drop_keys, fill, publish_heat
from douban_pipeline_tests.harness.comments.running import own_redis, running

PARTS = ("batches", "publishing", "pages", "cold", "outage", "depth", "scoring", "others")
_OTHERS = 20_000
"""Comments that other servers are measured with, which get slow with more."""
Figures = dict[str, Any]
TARGETS: Sequence[tuple[str, str, str, Callable[[Figures], float]]] = (
    ("publishing", "publish to visible, p95 in seconds", "≤ 0.5", lambda found: found["visible p95, s"]),
    (
        "batches",
        "events in a batch against one by one",
        "≥ 10",
        lambda found: found["batch, events a second"] / found["single, events a second"],
    ),
    ("pages", "page one, requests a second", "≥ 1500", lambda found: found["requests a second"]),
    ("pages", "page one, p95 in milliseconds", "≤ 20", lambda found: found["p95, ms"]),
    (
        "depth",
        "page far down against page one",
        "≤ 2",
        lambda found: max(found[f"{order} far p50"] / found[f"{order} top p50"] for order in Order),
    ),
    (
        "depth",
        "pages at the top and far down, p95 in milliseconds",
        "≤ 30",
        lambda found: max(found[f"{order} {name} p95"] for order in Order for name in ("top", "far")),
    ),
    (
        "cold",
        "readings of a cold page for all callers, over all processes",
        "1",
        lambda found: found["readings of the page"],
    ),
    ("cold", "callers of a cold page that are answered, %", "100", lambda found: found["answered, %"]),
    ("outage", "Redis killed: requests that fail, %", "≤ 0.1", lambda found: 100 * found["failed after, share"]),
    (
        "outage",
        "Redis killed: answers with a hidden comment",
        "0",
        lambda found: found["answers with a hidden comment"],
    ),
    (
        "scoring",
        "1,000,000 comments scored and published, seconds",
        "≤ 20",
        lambda found: max(each["scored and published, seconds"] for each in found.values()),
    ),
    (
        "scoring",
        "1,000,000 comments scored, MB",
        "≤ 1000",
        lambda found: max(each["most memory, MB"] for each in found.values()),
    ),
)


def measure(given: argparse.Namespace, console: Console) -> dict[str, Figures]:
    """Measure the parts that are wanted; return their figures by part."""
    figures: dict[str, Figures] = {}

    def note(part: str, found: Figures) -> None:
        figures[part] = {**found, "load": os.getloadavg()[0]} if part != "scoring" else found
        console.print(f"{part}: " + ", ".join(f"{what} {_shown(value)}" for what, value in figures[part].items()))

    with database(given.server) as url, tempfile.TemporaryDirectory() as folder:
        engine, home = open_engine(url), Path(folder)
        TREE.upgrade(engine)
        if "batches" in given.only:
            note("batches", publishing.measure_batches(engine, given.events))
        if {"publishing", "pages"} & set(given.only):
            with running(url, given.redis, home, processes=given.processes) as place:
                note("publishing", publishing.measure_publishing(place, engine, given.rate, given.seconds))
                if "pages" in given.only:
                    note("pages", reading.measure_hot(place, given.seconds, given.connections))
            drop_keys(given.redis, place.prefix)
        if "cold" in given.only:
            fill(engine, 2000, COLD)
            # A section is hot from its first request, and its page kept until all have been answered.
            kept = {"HOT_PER_SECOND": "1", "LOCAL_MS": "10000"}
            with running(url, given.redis, home, services=given.processes, settings=kept) as place:
                note("cold", reading.measure_cold(place, given.callers))
            drop_keys(given.redis, place.prefix)
        if "outage" in given.only and shutil.which("redis-server"):
            fill(engine, 2000, OUTAGE)
            with own_redis(home) as (redis, process), running(url, redis, home) as place:
                note("outage", outage.measure_outage(place, engine, process, given.seconds))
        if "depth" in given.only:
            section_id = fill(engine, given.comments)
            # Every page is read: none is a copy that the process keeps.
            with running(url, given.redis, home, settings={"LOCAL_MS": "0", "LIST_SECONDS": "3600"}) as place:
                publish_heat(engine, given.redis, place.prefix, section_id)
                note("depth", reading.measure_depth(place, engine, section_id, given.comments, given.times))
            drop_keys(given.redis, place.prefix)
        if "others" in given.only:
            count = min(given.comments, _OTHERS)
            section_id = fill(engine, count)
            with running(url, given.redis, home, settings={"LOCAL_MS": "0", "LIST_SECONDS": "3600"}) as place:
                note("others", side_by_side.measure(place, engine, section_id, count, home, given.times))
            drop_keys(given.redis, place.prefix)
        engine.dispose()
    if "scoring" in given.only:
        note("scoring", scoring_speed.measure(given.server, given.redis, given.comments, console))
    return figures


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Measure, print each figure beside its target, and write all of them where wanted."""
    parser = argparse.ArgumentParser(prog="bench-comments", description=__doc__)
    parser.add_argument(
        "--server", default=os.environ.get("DOUBAN_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/")
    )
    parser.add_argument("--redis", default=os.environ.get("DOUBAN_TEST_REDIS_URL", "redis://127.0.0.1:6379/13"))
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS[:-1],
        help="parts that are measured; others: isso and a plain table beside ours",
    )
    parser.add_argument("--comments", type=int, default=1_000_000, help="comments of the large section")
    parser.add_argument("--events", type=int, default=20_000, help="events that are applied in batches")
    parser.add_argument("--rate", type=int, default=200, help="comments published a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2, help="processes of the service")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--callers", type=int, default=10_000, help="callers of a cold page")
    parser.add_argument("--times", type=int, default=200, help="pages read in each order, at the top and far down")
    parser.add_argument("--json", type=Path, help="file for all figures")
    given = parser.parse_args()
    console = Console(width=160, highlight=False)
    figures = measure(given, console)
    for part, name, target, figure in TARGETS:
        if part in figures:
            console.print(f"{figure(figures[part]):12.3f}  {target:>8}  {name}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
