"""How fast a large section is scored and published.

The section is scored in a process of its own, whose memory is measured: the first time, when every score is new, and a
quarter of an hour later.
"""

from __future__ import annotations

import multiprocessing
import resource
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from redis import Redis
from sqlalchemy import URL, Engine, text

from douban_pipeline.comments.heat.ranking import Policy
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, rule_set
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.scoring.sections import score_section
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.core.database import open_engine
from douban_pipeline.demo.comment_sample import GeneratedComments, generate
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.comments.loading import SCORED, plant
from douban_pipeline_tests.harness.rig.databases import scratch_database

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
RULES = [
    Rule("disliked", "dislikes > likes * 2 and dislikes >= 3", RuleDecision.SINK, 1.0),
    Rule("reported", "reports >= 3", RuleDecision.SINK, 5.0),
    Rule("owner", "owner_touched and length >= 15", RuleDecision.BOOST, 0.3),
    Rule("trusted", "level in [5, 6] and reports < 5", RuleDecision.EXEMPT, exempts=("disliked",)),
]
_SEEN = 50_000


def plant_seen(engine: Engine, comments: GeneratedComments) -> int:
    """Write a section as before its first scoring, and impressions of some of its roots; return its id."""
    section_id = plant(engine, comments, SCORED, NOW, heat=False)
    seen = text(
        "INSERT INTO cmt_impression (comment_id, hour, section_id, shown, liked)"
        " SELECT comment_id, :hour, :section, 20 + like_count * 9, like_count DIV 8 FROM cmt_comment"
        " WHERE section_id = :section AND root_id = 0 AND comment_id % :every = 0"
    )
    with engine.begin() as connection:
        for hours in (2, 50):
            hour = (NOW - timedelta(hours=hours)).replace(tzinfo=None)
            every = max(len(comments.likes) // _SEEN, 1)
            connection.execute(seen, {"hour": hour, "every": every, "section": section_id})
        connection.execute(text("ANALYZE TABLE cmt_impression"))
    return section_id


def scored(url: str, redis: str, prefix: str, section_id: int, minutes: int) -> list[Figure]:
    """Score and publish the section ``minutes`` later; return seconds, counts and the memory of this process."""
    engine = open_engine(url)
    lists = HeatLists(Redis.from_url(redis), prefix)
    done = score_section(engine, lists, section_id, Policy(rules=rule_set(RULES)), NOW + timedelta(minutes=minutes))
    engine.dispose()
    both = sum(value for name, value in done.seconds.items() if name != "store")
    parts = ", ".join(f"{name} {value:.1f} s" for name, value in done.seconds.items())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    note = f"{done.comments:,} comments, {done.written:,} scores written: {parts}"
    return [
        Figure("scored and published", both, "s", Target(most=20), note=note),
        Figure("with its scores stored", sum(done.seconds.values()), "s", Target(most=20)),
        Figure("most memory", memory, "MB", Target(most=1000)),
    ]


def measure(server: URL, redis: str, count: int) -> Iterator[Figure]:
    """Measure both times, in a section of ``count`` generated comments on a database of its own."""
    prefix = f"bench-{uuid.uuid4().hex[:8]}:"
    with scratch_database(server, "scoring") as address:
        url = address.render_as_string(hide_password=False)
        engine = open_engine(url)
        TREE.upgrade(engine)
        section_id = plant_seen(engine, generate(count))
        engine.dispose()
        for when, minutes in (("first", 0), ("a quarter of an hour later", 15)):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                for figure in pool.apply(scored, (url, redis, prefix, section_id, minutes)):
                    yield replace(figure, name=f"{when}: {figure.name}")
