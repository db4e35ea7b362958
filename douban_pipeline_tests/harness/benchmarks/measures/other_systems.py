"""The systems beside Douban's in the table of all: what their own benchmarks measure, at sizes of some minutes each.

`make bench-feeds`, `bench-tmdb` and `bench-comments` measure the same at any size, and more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from douban_pipeline.comments.store.migrations import TREE as COMMENTS
from douban_pipeline.comments.store.reading import Order
from douban_pipeline.core.database import open_engine
from douban_pipeline.feeds.store.migrations import TREE as FEEDS
from douban_pipeline_tests.digest.stage import stage
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.comments import loading as comments_bench
from douban_pipeline_tests.harness.comments.publishing import measure_batches
from douban_pipeline_tests.harness.digest import speed as digest_speed
from douban_pipeline_tests.harness.feeds import speed as feeds_speed
from douban_pipeline_tests.harness.rig.databases import MARIADB, server_url
from douban_pipeline_tests.harness.tmdb import __main__ as tmdb_bench

_MOVIES, _ROUNDS = 2_000, 4
_EVENTS, _COMMENTS, _PAGE, _TIMES = 5_000, 200_000, 20, 100


def feeds(world: World) -> list[Figure]:
    """Choose what is due, and book polls, on a SQLite file of its own."""
    engine = open_engine(f"sqlite:///{world.scratch / 'feeds.sqlite'}")
    FEEDS.upgrade(engine)
    world.say(f"the due among {feeds_speed.MANY:,} sources")
    choosing = feeds_speed.measure_choosing(engine)
    world.say("the bookkeeping of polls")
    booking = feeds_speed.measure_booking(engine)
    engine.dispose()
    return [
        Figure(f"choosing the due among {feeds_speed.MANY:,}, p95", choosing.p95, "ms", Target(most=20)),
        Figure("bookkeeping of one poll, p50", booking.p50, "ms", Target(most=20)),
        Figure("bookkeeping of one poll, CPU", booking.cpu, "ms"),
    ]


def digest(world: World) -> list[Figure]:
    """Run a slot over stand-ins that answer at once, and list ten years of slots."""
    with stage(world.scratch, at="22:00") as at:
        world.say(f"a slot of {digest_speed.ARTICLES} articles")
        took, busy = digest_speed.measure_slot(at)
        world.say("ten years of slots")
        found, listing = digest_speed.measure_list(at)
    return [
        Figure(f"a slot of {digest_speed.ARTICLES} articles", took, "s", Target(most=15), note="stand-ins counted"),
        Figure(f"a slot of {digest_speed.ARTICLES} articles, CPU", busy, "s"),
        Figure(f"listing {found:,} slots", listing, "s", Target(most=2)),
    ]


def tmdb(world: World) -> list[Figure]:
    """Measure store, outbox, graph and answers on servers from wheels."""
    return list(_of_tmdb(world))


def _of_tmdb(world: World) -> Iterator[Figure]:
    with tmdb_bench.servers("") as (store, target):
        found = chain(
            tmdb_bench.measure(store, target, _MOVIES), tmdb_bench.measure_answers(store, world.scratch, _ROUNDS)
        )
        for name, value in found:
            world.say(f"{name}: {value:,.0f}")
            least, most = tmdb_bench.TARGETS.get(name), tmdb_bench.AT_MOST.get(name)
            target_of = Target(least=least, most=most) if least or most else None
            if name.startswith("ms "):
                yield Figure(name.removeprefix("ms "), value, "ms", target_of)
            else:
                yield Figure(name.replace(" a second", ""), value, "/s", target_of)


def comments(world: World) -> list[Figure]:
    """Apply events in batches and one by one, and read pages far down a large section, on MariaDB."""
    with comments_bench.database(server_url(MARIADB).render_as_string(hide_password=False)) as url:
        engine = open_engine(url)
        try:
            COMMENTS.upgrade(engine)
            world.say(f"{_EVENTS:,} events in batches, and some alone")
            applied = measure_batches(engine, _EVENTS)
            world.say(f"a section of {_COMMENTS:,} comments")
            section = comments_bench.fill(engine, _COMMENTS)
            depth = comments_bench.measure_listing(engine, section, _COMMENTS, _PAGE, _TIMES)
        finally:
            engine.dispose()
    far = max(value for name, value in depth.items() if name.endswith("far p95"))
    against = max(depth[f"{order} far p50"] / depth[f"{order} top p50"] for order in Order)
    batch, single = (applied[f"{name}, events a second"] for name in ("batch", "single"))
    return [
        Figure("events applied", batch, "/s", None, single, "one by one"),
        Figure("events in a batch against one by one", batch / single, "", Target(least=10)),
        Figure("a page far down, p95", far, "ms", Target(most=30)),
        Figure("a page far down against page one", against, "", Target(most=2)),
    ]


MEASURES = (
    Measure("feeds", "what followed sources cost: choosing and booking", feeds, ()),
    Measure("digest", "what a slot of the digest costs", digest, ()),
    Measure("tmdb", "store, outbox, graph and answers of TMDB", tmdb, ()),
    Measure("comments", "events of comments applied, and pages far down", comments, ()),
)
