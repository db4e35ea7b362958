"""``make bench-review``: two hundred videos reviewed in a real browser, beside a backfill, and what came of each.

The served sheet is worked through by keys; in the middle the service is killed with -9. Then as many are reviewed on
the static sheet, without the service, and launched by the links that it makes. Last, a queue of thousands is opened.
"""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import psutil
import sqlalchemy as sa
import typer
from playwright.sync_api import Browser, Page, Response, expect, sync_playwright
from rich.console import Console
from rich.table import Table

from douban_pipeline.core.database import reading
from douban_pipeline.douban.review.reading.page import sheet_page
from douban_pipeline.douban.review.reading.queue import review_queue_of
from douban_pipeline.douban.review.reading.sheet import sheet_of
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline_tests.browser import clicks
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import subject_id_of
from douban_pipeline_tests.harness.reviewing.sitting import REVIEWER, Openings, Sitting, review, shares
from douban_pipeline_tests.harness.reviewing.world import SEED, ReviewWorld, Size
from douban_pipeline_tests.harness.rig.waiting import wait_for

WAIT_MILLISECONDS = 120_000
SETTLED_SECONDS = 300.0
DEAD_CHOICES = 4
"""Choices that are made while the service is dead."""
OPENED = 5_000
OPENINGS = 5
KEYS_AMONG_MANY = 40

_FIRST_CARD = """() => document.querySelector("article.current.filled [data-pick]") && performance.now()"""

console = Console()


@dataclass(frozen=True, slots=True)
class Row:
    """A figure: what, how much, and what it should keep to."""

    name: str
    value: str
    target: str = ""


def measure(
    videos: Annotated[int, typer.Option(min=64, help="Videos in the library.")] = 3_000,
    waiting: Annotated[int, typer.Option(min=0, help="Videos reviewed on each sheet; 0 leaves that out.")] = 200,
    pace: Annotated[float, typer.Option(min=0, help="Least seconds from one choice to the next.")] = 1.5,
    opened: Annotated[int, typer.Option(help="Videos in the queue that is opened; 0 leaves that out.")] = OPENED,
    static: Annotated[bool, typer.Option(help="Also review on the static sheet.")] = True,
    chromium: Annotated[str, typer.Option(help="The browser.")] = "/usr/bin/chromium",
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the figures, as JSON.")] = None,
) -> None:
    """Measure how fast people review."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us wants the same as by Ctrl-C
    began = time.monotonic()

    def say(text: str) -> None:
        load = psutil.getloadavg()[0]
        console.print(f"{time.monotonic() - began:6.1f} s  load {load:4.1f}  {text}", highlight=False, soft_wrap=True)

    rows: list[Row] = []

    def tell(found: list[Row]) -> None:
        rows.extend(found)
        for row in found:
            say(f"{row.name}: {row.value} {row.target}")

    with browsing(chromium) as browser, tempfile.TemporaryDirectory(prefix="reviewing-") as folder:
        if waiting:
            size = Size(videos, waiting + 2 * DEAD_CHOICES)
            with ReviewWorld(size, Path(folder) / "reviewed", dagster=True, say=say) as world:
                tell(served(world, browser, waiting, pace, say))
                if static:
                    tell(by_launchpad(world, browser, waiting, Path(folder), say))
        if opened:
            with ReviewWorld(Size(opened + videos, opened), Path(folder) / "opened", dagster=False, say=say) as world:
                tell(_opening_rows(opening(world, browser, say)))
    table = Table("figure", "value", "target")
    for row in rows:
        table.add_row(row.name, row.value, row.target)
    console.print(table)
    if json_file is not None:
        found = {row.name: {"value": row.value, "target": row.target} for row in rows}
        json_file.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")


@contextmanager
def browsing(chromium: str) -> Iterator[Browser]:
    """Yield a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, chromium_sandbox=False, args=["--no-proxy-server"]
        )
        yield browser
        browser.close()


def new_page(browser: Browser) -> Page:
    """Return a page of a context of its own, as a reviewer's browser has it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="zh-CN")
    context.set_default_timeout(WAIT_MILLISECONDS)
    expect.set_options(timeout=WAIT_MILLISECONDS)
    return context.new_page()


def sign(page: Page) -> None:
    """Fill in the reviewer."""
    page.get_by_label("审核员").first.fill(REVIEWER)
    page.locator("h1").click()


def served(world: ReviewWorld, browser: Browser, count: int, pace: float, say: Any) -> list[Row]:
    """Review on the served sheet while a backfill runs, and kill the service in the middle."""
    backfill = world.launch_backfill()
    page = new_page(browser)
    page.goto(world.url)
    sign(page)
    say("the backfill and the sitting begin")

    def between(number: int) -> None:
        if number == count // 2:
            world.kill_service()
            say("the service is killed")
        elif number == count // 2 + DEAD_CHOICES:
            world.serve()
            say("the service answers again")
        elif number % 50 == 0:
            say(f"{number} of {count} reviewed")

    began = time.time()
    sitting = review(page, truth_of(world), count, pace=pace, between=between)
    seconds = time.time() - began
    say(f"{len(sitting.chosen)} reviewed in {seconds:.0f} s; waiting until all are settled")
    wait_for(lambda: len(settled(world, began)) >= len(sitting.chosen), seconds=SETTLED_SECONDS, poll=2)
    say(f"the page says: {page.locator('#count').inner_text()} {page.locator('#trouble').inner_text()}")
    still = world.backfill_runs(backfill)
    found = settled(world, began)
    page.context.close()
    return [
        *_sitting_rows("served", sitting),
        *_applied_rows(sitting, found),
        Row("served: decisions lost", str(len(set(sitting.chosen) - {row["vod_id"] for row in found})), "0"),
        Row("served: what came of them", _states(found)),
        Row("served: runs that recorded", str(len({row["run_id"] for row in found}))),
        Row("backfill beside: runs by state", still),
    ]


def by_launchpad(world: ReviewWorld, browser: Browser, count: int, folder: Path, say: Any) -> list[Row]:
    """Review on the static sheet, without the service, and launch what it came to."""
    say("the static sheet: judged anew")
    world.kill_service()
    world.wait_again(count)
    queue = review_queue_of(world.services, most=count)
    path = folder / "review_queue.html"
    path.write_bytes(sheet_page(sheet_of(world.services, queue)))
    page = new_page(browser)
    page.goto(path.as_uri())
    sign(page)
    sitting = review(page, truth_of(world), len(queue.first), pace=0)
    page.keyboard.press("g")
    links = [str(link.get_attribute("href")) for link in page.locator("#links a").all()]
    say(f"{len(sitting.chosen)} reviewed; {len(links)} launches")
    began, opened = time.time(), new_page(browser)
    for link in links:
        opened.goto(link, wait_until="domcontentloaded")
        clicks.launch(opened)
    wait_for(lambda: len(settled(world, began)) >= len(sitting.chosen), seconds=SETTLED_SECONDS, poll=2)
    found = settled(world, began)
    opened.context.close()
    page.context.close()
    return [
        *_sitting_rows("static", sitting),
        Row("static: launches", f"{len(links)} (a link and a click each)"),
        Row("static: decisions lost", str(len(set(sitting.chosen) - {row["vod_id"] for row in found})), "0"),
        Row("static: what came of them", _states(found)),
    ]


def opening(world: ReviewWorld, browser: Browser, say: Any) -> Openings:
    """Open a long queue some times, and decide about some of it."""
    count = len(world.waiting())
    seconds: list[float] = []
    cpu: list[float] = []
    sent: list[int] = []
    for number in range(OPENINGS):
        if not number:
            world.kill_service()
            world.serve()
        before = world.service.usage().cpu_seconds
        page = new_page(browser)
        size: list[int] = []

        def count_bytes(answer: Response, size: list[int] = size) -> None:
            if "picture" not in answer.url:
                size.append(len(answer.body()))

        page.on("response", count_bytes)
        page.goto(world.url)
        took = page.wait_for_function(_FIRST_CARD, polling="raf").json_value() / 1000
        seconds.append(took)
        cpu.append(world.service.usage().cpu_seconds - before)
        sent.append(sum(size))
        say(f"first card of {count:,} after {took:.2f} s, {cpu[-1] * 1000:.0f} ms CPU, {sent[-1]:,} bytes")
        page.remove_listener("response", count_bytes)  # what comes later has no page to be read from
        if number < OPENINGS - 1:
            page.context.close()
    # Nobody records them: this is about the page alone.
    sign(page)
    page.wait_for_load_state("networkidle")
    sitting = review(page, truth_of(world), KEYS_AMONG_MANY, pace=0.3)
    page.context.close()
    return Openings(count, sitting, seconds, cpu, sent)


def truth_of(world: ReviewWorld) -> dict[int, int]:
    """Return the right subject of every video that waits."""
    return {vod_id: subject_id_of(work_id_of(vod_id, SEED)) for vod_id in world.waiting()}


def settled(world: ReviewWorld, since: float) -> list[dict[str, Any]]:
    """Return the decisions that were recorded since a moment and are pending no more."""
    decision = world.services.tables.decision
    query = sa.select(decision).where(decision.c.state != DecisionState.PENDING)
    with reading(world.services.engine) as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [row for row in rows if row["created_at"].timestamp() >= since]


def _sitting_rows(name: str, sitting: Sitting) -> list[Row]:
    middle, most, worst = shares(sitting.milliseconds)
    script, script_most, _ = shares(sitting.scripts)
    return [
        Row(f"{name}: videos", str(len(sitting.chosen))),
        Row(f"{name}: keys a video", f"{sitting.keys_each:.2f}", "≤ 1.3"),
        Row(f"{name}: ms from key to next frame", f"median {middle:.0f}, p95 {most:.0f}, most {worst:.0f}", "≤ 50"),
        Row(f"{name}: of it the page's scripts", f"median {script:.0f}, p95 {script_most:.0f} ms"),
    ]


def _opening_rows(found: Openings) -> list[Row]:
    name = f"opening {found.waiting:,}"
    cpu = f"{shares(found.cpu[1:])[0] * 1000:.0f} ms, at first {found.cpu[0] * 1000:.0f} ms"
    return [
        *_sitting_rows(f"among {found.waiting:,}", found.sitting),
        Row(f"{name}: first card, service just started", f"{found.seconds[0]:.2f} s"),
        Row(f"{name}: first card, median", f"{shares(found.seconds[1:])[0]:.2f} s", "≤ 1 s"),
        Row(f"{name}: CPU of the service", cpu),
        Row(f"{name}: bytes", f"{shares(found.sent[1:])[0]:,.0f}"),
    ]


def _applied_rows(sitting: Sitting, found: Sequence[dict[str, Any]]) -> list[Row]:
    def told(name: str) -> str:
        values = [
            row[name].timestamp() - sitting.chosen[row["vod_id"]] for row in found if row["vod_id"] in sitting.chosen
        ]
        if not values:
            return "none"
        middle, most, worst = shares(values)
        return f"median {middle:.1f}, p95 {most:.1f}, most {worst:.1f} s"

    return [
        Row("served: from choice to recorded", told("created_at")),
        Row("served: from choice to applied", told("settled_at"), "p95 ≤ 60 s"),
    ]


def _states(found: Sequence[dict[str, Any]]) -> str:
    counts = Counter(f"{row['action']} {row['state']} {row['state_reason'][:40]}".strip() for row in found)
    return "; ".join(f"{count} × {state}" for state, count in counts.most_common(6))


if __name__ == "__main__":
    typer.run(measure)
