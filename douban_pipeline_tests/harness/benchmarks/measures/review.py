"""Reviewing in a real browser: the served sheet is worked through by keys, and a long queue is opened.

In the middle of the sitting the service is killed with -9, and starts again a few choices later.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from playwright.sync_api import Browser, Page, Response, expect

from douban_pipeline.core.database import reading
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline_tests.harness.benchmarks import browsing
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Say, Target, World
from douban_pipeline_tests.harness.generated.videos import work_id_of
from douban_pipeline_tests.harness.generated.works import subject_id_of
from douban_pipeline_tests.harness.reviewing.sitting import REVIEWER, Openings, Sitting, review, shares
from douban_pipeline_tests.harness.reviewing.world import SEED, ReviewWorld, Size
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

WAIT_MILLISECONDS = 120_000
SETTLED_SECONDS = 300.0
DEAD_CHOICES = 4
"""Choices that are made while the service is dead."""
OPENINGS = 5
KEYS_AMONG_MANY = 40

_FIRST_CARD = """() => document.querySelector("article.current.filled [data-pick]") && performance.now()"""


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


def served(world: ReviewWorld, browser: Browser, count: int, pace: float, say: Say) -> Iterator[Figure]:
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
    done = review(page, truth_of(world), count, pace=pace, between=between)
    seconds = time.time() - began
    say(f"{len(done.chosen)} reviewed in {seconds:.0f} s; waiting until all are settled")
    wait_for(lambda: len(settled(world, began)) >= len(done.chosen), seconds=SETTLED_SECONDS, poll=2)
    say(f"the page says: {page.locator('#count').inner_text()} {page.locator('#trouble').inner_text()}")
    still = world.backfill_runs(backfill)
    found = settled(world, began)
    page.context.close()
    runs = f"by {len({row['run_id'] for row in found})} runs; backfill beside: {still}"
    yield from _sitting_figures("served", done)
    yield from _applied_figures(done, found)
    yield _lost("served", done, found, runs)


def opening(world: ReviewWorld, browser: Browser, say: Say) -> Openings:
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
    sign(page)
    page.wait_for_load_state("networkidle")
    done = review(page, truth_of(world), KEYS_AMONG_MANY, pace=0.3)
    page.context.close()
    return Openings(count, done, seconds, cpu, sent)


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


def openings(found: Openings) -> Iterator[Figure]:
    """Return the figures of a queue that was opened some times."""
    note = f"{found.waiting:,} videos wait"
    (middle, _, _), (cpu, _, _) = shares(found.seconds[1:]), shares(found.cpu[1:])
    yield Figure("first card, service just started", found.seconds[0], "s", note=note)
    yield Figure("first card", middle, "s", Target(most=1), note=note)
    yield Figure("opening, the service's CPU", 1000 * cpu, "ms", note=note)
    yield Figure("opening, sent to the browser", shares(found.sent[1:])[0] / 1e6, "MB", note=note)
    yield from _sitting_figures("a long queue", found.sitting)


def _sitting_figures(name: str, done: Sitting) -> Iterator[Figure]:
    middle, most, worst = shares(done.milliseconds)
    script, script_most, _ = shares(done.scripts)
    note = f"median {middle:.0f}, most {worst:.0f}; of it the page's scripts {script:.0f}, p95 {script_most:.0f} ms"
    keys = f"{len(done.chosen)} videos"
    yield Figure(f"{name}: keys a video", done.keys_each, "", Target(most=1.3), note=keys)
    yield Figure(f"{name}: from a key to the next frame, p95", most, "ms", Target(most=50), note=note)


def _applied_figures(done: Sitting, found: Sequence[dict[str, Any]]) -> Iterator[Figure]:
    for what, name, target in (
        ("recorded", "created_at", None),
        ("applied", "settled_at", Target(most=2)),
    ):
        taken = [row[name].timestamp() - done.chosen[row["vod_id"]] for row in found if row["vod_id"] in done.chosen]
        middle, most, worst = shares(taken)
        note = f"median {middle:.1f}, most {worst:.1f} s, of {len(taken)}"
        yield Figure(f"served: from choice to {what}, p95", most, "s", target, note=note)


def _lost(name: str, done: Sitting, found: Sequence[dict[str, Any]], note: str) -> Figure:
    lost = len(set(done.chosen) - {row["vod_id"] for row in found})
    return Figure(f"{name}: decisions lost", lost, "", Target(most=0), note=f"{_states(found)}; {note}")


def _states(found: Sequence[dict[str, Any]]) -> str:
    counts = Counter(f"{row['action']} {row['state']} {row['state_reason'][:40]}".strip() for row in found)
    return "; ".join(f"{count} × {state}" for state, count in counts.most_common(6))


def opened(world: World, videos: int = 1_500, queue: int = 1_000) -> Iterator[Figure]:
    """Open a queue of videos that wait in a browser, and decide about some of them by keys."""
    with _browser() as browser, ReviewWorld(Size(videos, queue), world.scratch, dagster=False, say=world.say) as place:
        yield from openings(opening(place, browser, world.say))


def sitting(world: World, videos: int = 3_000, waiting: int = 200, pace: float = 1.5) -> Iterator[Figure]:
    """Review videos on the served sheet by keys, beside a backfill; choices are ``pace`` seconds apart at the least."""
    size = Size(videos, waiting + 2 * DEAD_CHOICES)
    with _browser() as browser, ReviewWorld(size, world.scratch, dagster=True, say=world.say) as place:
        yield from served(place, browser, waiting, pace, world.say)


@contextmanager
def _browser() -> Iterator[Browser]:
    path = browsing.chromium()
    if path is None:
        raise RigError("no Chromium here that Playwright can drive")
    with browsing.browser(path) as browser:
        yield browser


MEASURES = (
    Measure("review-opened", "a reviewer's queue opened in a browser, and keys", opened, ()),
    Measure("review-sitting", "videos reviewed in a browser beside a backfill", sitting, ()),
)
