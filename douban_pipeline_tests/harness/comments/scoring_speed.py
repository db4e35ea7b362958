"""How fast a large section is scored and published.

The section is scored in a process of its own, whose memory is measured: the first time, when every score is new, and a
quarter of an hour later.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
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
from douban_pipeline_tests.harness.comments.loading import drop_keys
from douban_pipeline_tests.harness.rig.databases import scratch_database

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
FIRST_ID = 381_000_000_000_000_000
RULES = [
    Rule("disliked", "dislikes > likes * 2 and dislikes >= 3", RuleDecision.SINK, 1.0),
    Rule("reported", "reports >= 3", RuleDecision.SINK, 5.0),
    Rule("owner", "owner_touched and length >= 15", RuleDecision.BOOST, 0.3),
    Rule("trusted", "level in [5, 6] and reports < 5", RuleDecision.EXEMPT, exempts=("disliked",)),
]
_BATCH = 20_000
_SEEN = 50_000


def plant(engine: Engine, comments: GeneratedComments) -> None:
    """Write a section with comments, empty scores, and impressions of some of them; numbers go as JSON, in batches."""
    count = len(comments.likes)
    ids = FIRST_ID + np.arange(count, dtype=np.int64)
    created = (NOW.timestamp() - 3600 * comments.age_hours).astype(np.int64)
    columns = [ids, comments.likes, comments.dislikes, comments.reports, comments.replies, comments.length]
    table = np.column_stack([*columns, comments.level, comments.owner_liked, created, np.arange(1, count + 1)])
    names = ("id", "likes", "dislikes", "reports", "replies", "length", "level", "attributes", "created", "floor")
    places = ", ".join(f"{name} BIGINT PATH '$[{place}]'" for place, name in enumerate(names))
    source = f"JSON_TABLE(:rows, '$[*]' COLUMNS ({places})) AS j"
    when = "'1970-01-01' + INTERVAL j.created SECOND"
    comment = text(
        "INSERT INTO cmt_comment (comment_id, section_id, publisher_id, like_count, dislike_count, report_count,"
        " child_visible, child_total, length, level, attributes, floor, created_at, updated_at, meta)"
        " SELECT j.id, 1, 1 + j.id % 9999, j.likes, j.dislikes, j.reports, j.replies, j.replies, j.length, j.level,"
        f" j.attributes, j.floor, {when}, {when}, '{{}}' FROM {source}"
    )
    score = text(
        f"INSERT INTO cmt_score (comment_id, section_id, parts, decisions) SELECT j.id, 1, '{{}}', '[]' FROM {source}"
    )
    for start in range(0, count, _BATCH):
        rows = json.dumps(table[start : start + _BATCH].tolist())
        with engine.begin() as connection:
            connection.execute(comment, {"rows": rows})
            connection.execute(score, {"rows": rows})
    seen = text(
        "INSERT INTO cmt_impression (comment_id, hour, section_id, shown, liked)"
        " SELECT comment_id, :hour, 1, 20 + like_count * 9, like_count DIV 8 FROM cmt_comment"
        " WHERE comment_id % :every = 0"
    )
    with engine.begin() as connection:
        made = {"type": 1, "active": NOW.replace(tzinfo=None)}
        connection.execute(
            text(
                "INSERT INTO cmt_section (section_id, type, object_id, settings, pinned, created_at, active_at)"
                " VALUES (1, :type, 1, '{}', '[]', :active, :active)"
            ),
            made,
        )
        for hours in (2, 50):
            hour = (NOW - timedelta(hours=hours)).replace(tzinfo=None)
            connection.execute(seen, {"hour": hour, "every": max(count // _SEEN, 1)})
        connection.execute(text("ANALYZE TABLE cmt_comment, cmt_score, cmt_impression"))


def scored(url: str, redis: str, prefix: str, minutes: int) -> list[Figure]:
    """Score and publish the section ``minutes`` later; return seconds, counts and the memory of this process."""
    engine = open_engine(url)
    lists = HeatLists(Redis.from_url(redis), prefix)
    done = score_section(engine, lists, 1, Policy(rules=rule_set(RULES)), NOW + timedelta(minutes=minutes))
    engine.dispose()
    both = sum(value for name, value in done.seconds.items() if name != "store")
    parts = ", ".join(f"{name} {value:.1f} s" for name, value in done.seconds.items())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    note = f"{done.comments:,} comments, {done.written:,} scores written: {parts}"
    return [
        Figure("scored and published", both, "s", Target(most=20), note=note),
        Figure("most memory", memory, "MB", Target(most=1000)),
    ]


def measure(server: URL, redis: str, count: int) -> Iterator[Figure]:
    """Measure both times, in a section of ``count`` generated comments on a database of its own."""
    prefix = f"bench-{uuid.uuid4().hex[:8]}:"
    with scratch_database(server, "scoring") as address:
        url = address.render_as_string(hide_password=False)
        engine = open_engine(url)
        TREE.upgrade(engine)
        plant(engine, generate(count))
        engine.dispose()
        for when, minutes in (("first", 0), ("a quarter of an hour later", 15)):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                for figure in pool.apply(scored, (url, redis, prefix, minutes)):
                    yield replace(figure, name=f"{when}: {figure.name}")
    drop_keys(redis, prefix)
