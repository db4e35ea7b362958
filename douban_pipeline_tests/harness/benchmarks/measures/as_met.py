"""What people meet of the systems, in the table of all: how late entries come, served comments, a queue for review.

`make bench-feeds`, `bench-comments` and `bench-review` measure the same at any size, and more.
"""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.comments.store.migrations import TREE as COMMENTS
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.benchmarks import browsing
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.comments import loading
from douban_pipeline_tests.harness.comments.publishing import measure_publishing
from douban_pipeline_tests.harness.comments.reading import measure_hot
from douban_pipeline_tests.harness.comments.running import own_redis, running
from douban_pipeline_tests.harness.feeds.__main__ import measure
from douban_pipeline_tests.harness.feeds.bundled import bundled_feeds
from douban_pipeline_tests.harness.feeds.replay import Trial
from douban_pipeline_tests.harness.reviewing.sitting import Openings, shares
from douban_pipeline_tests.harness.rig.databases import MARIADB, server_url

FEEDS, DAYS, POLLS = 60, 2, 24
"""Generated accounts, days of the replay, and polls a source and day that are set."""
RATE, SECONDS, CONNECTIONS, PROCESSES = 100, 8, 16, 2
"""Comments published a second, and how long; callers of page one; processes of the service."""
VIDEOS, WAITING = 1_500, 1_000
"""Videos in the library that is reviewed, and how many of them wait."""


def delays(_world: World, feeds: int = FEEDS, days: int = DAYS) -> Iterator[Figure]:
    """Replay generated push times through both shipped profiles, and over a fixed timer at the polls they made."""
    trial = Trial.of([*bundled_feeds(feeds).values()], days)
    for name, set_to, most in (("plan", 0.0, 0.75), ("budget", float(POLLS), 0.6)):
        mine = measure((name, set_to), trial, settling=1 if set_to else 0)
        said = f"{mine.polls_per_day:.1f} polls a source and day, {mine.pushes:,} pushes"
        timer = {"against": "a fixed timer", "note": said}
        minutes = mine.mean_minutes, mine.timer_mean_minutes
        yield Figure(f"profile {name}: delay, mean", 60 * minutes[0], "s", None, 60 * minutes[1], **timer)
        late = mine.p95_minutes, mine.timer_p95_minutes
        yield Figure(f"profile {name}: delay, p95", 60 * late[0], "s", None, 60 * late[1], **timer)
        yield Figure(f"profile {name}: mean delay against a timer's", minutes[0] / minutes[1], "", Target(most=most))
        if set_to:
            yield Figure("profile budget: polls made of those set", mine.polls_per_day / set_to, "", Target(least=0.9))


def comments(world: World, seconds: int = SECONDS, rate: int = RATE) -> Iterator[Figure]:
    """Publish comments and read page one over HTTP, with services and a worker as processes, MariaDB and a Redis."""
    server = server_url(MARIADB).render_as_string(hide_password=False)
    with loading.database(server) as url, own_redis(world.scratch) as (redis, _):
        engine = open_engine(url)
        try:
            COMMENTS.upgrade(engine)
            world.say("starting the service and the worker")
            with running(url, redis, world.scratch, processes=PROCESSES) as place:
                world.say(f"{rate} comments a second for {seconds} s")
                published = measure_publishing(place, engine, rate, seconds)
                world.say(f"page one for {seconds} s")
                read = measure_hot(place, seconds, CONNECTIONS)
        finally:
            engine.dispose()
    each = "ms of the services' processor a"
    yield Figure("from publishing to visible, p95", published["visible p95, s"], "s", Target(most=0.5))
    yield Figure("publishing, the services' CPU", published[f"{each} comment"], "ms")
    yield Figure("applying, the worker's CPU", published["ms of the worker's processor a comment"], "ms")
    yield Figure("page one", read["requests a second"], "/s", Target(least=1500))
    yield Figure("page one, p95", read["p95, ms"], "ms", Target(most=20))
    yield Figure("page one, the services' CPU", read[f"{each} request"], "ms")


def review(world: World, videos: int = VIDEOS, waiting: int = WAITING) -> Iterator[Figure]:
    """Open a queue of videos that wait in a browser, and decide about some of them by keys; nothing without one."""
    chromium = browsing.chromium()
    if chromium is None:
        world.say("no Chromium here: the reviewer's queue is not opened")
        return
    # Playwright, which it needs, is a part of the developers' tools.
    from douban_pipeline_tests.harness.reviewing import __main__ as bench
    from douban_pipeline_tests.harness.reviewing.world import ReviewWorld, Size

    size = Size(videos, waiting)
    with (
        bench.browsing(chromium) as browser,
        ReviewWorld(size, world.scratch, dagster=False, say=world.say) as place,
    ):
        found = bench.opening(place, browser, world.say)
    yield from openings(found)


def openings(found: Openings) -> Iterator[Figure]:
    """Return the figures of a queue that was opened some times."""
    note = f"{found.waiting:,} videos wait"
    (middle, _, _), (cpu, _, _) = shares(found.seconds[1:]), shares(found.cpu[1:])
    yield Figure("first card, service just started", found.seconds[0], "s", note=note)
    yield Figure("first card", middle, "s", Target(most=1), note=note)
    yield Figure("opening, the service's CPU", 1000 * cpu, "ms", note=note)
    yield Figure("opening, sent to the browser", shares(found.sent[1:])[0] / 1e6, "MB", note=note)
    yield Figure("keys a video", found.sitting.keys_each, "", Target(most=1.3))
    yield Figure("from a key to the next frame, p95", shares(found.sitting.milliseconds)[1], "ms", Target(most=50))


MEASURES = (
    Measure("feeds-delays", "how late entries are found, against a fixed timer", lambda world: [*delays(world)], ()),
    Measure("comments-served", "comments published and read over HTTP", lambda world: [*comments(world)], ()),
    Measure("review", "a reviewer's queue opened in a browser, and keys", lambda world: [*review(world)], ()),
)
