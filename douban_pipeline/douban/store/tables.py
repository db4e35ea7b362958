"""Our own tables, beside the CMS's in the same database.

They never add a column to a CMS table: `mac_vod` is MyISAM and utf8mb3, every column of it is published by the
CMS's open API, and its admin form posts stale values back. Times are UTC (`UtcDateTime`); `vod_time` alone
mirrors the CMS's unix seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    false,
    text,
)

from douban_pipeline.core.column_types import ZERO, JsonText, UtcDateTime, big, count, key, link, moment, words
from douban_pipeline.core.platform_tables import counter_table, gate_table, snapshot_table
from douban_pipeline.douban.store.review_tables import TableMaker, review_tables

SHARDS = 64
"""``shard = vod_id % 64``. Partition keys are history: never change this without a migration plan."""


TITLE_LENGTH = 300
"""Characters of a subject's title that are kept."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """Our tables for one prefix; see `own_tables`."""

    metadata: MetaData
    video: Table
    task: Table
    verdict: Table
    candidate: Table
    decision: Table
    log: Table
    snapshot: Table
    gate: Table
    brake: Table
    intro: Table
    intro_mark: Table
    person: Table
    alert: Table
    health: Table
    claim: Table
    outbox: Table
    poster: Table
    subject: Table
    counter: Table


@cache
def own_tables(prefix: str) -> OwnTables:
    """Return our tables as they are called under ``prefix`` (``mac_`` → ``mac_douban_video`` …)."""
    maker = TableMaker(prefix)
    metadata, name, table, index = maker.metadata, maker.name, maker.table, maker.index

    video = table(
        "video",
        Column("vod_id", BigInteger, primary_key=True, autoincrement=False),
        count("type_id"),
        link("vod_time"),
        link("vod_douban_id"),
        Column("shard", SmallInteger, nullable=False),
        words("fingerprint", 32),
        Column("douban_id_locked", Boolean, nullable=False, server_default=false()),
        moment("douban_id_lock_time"),
        words("douban_id_source", 32),
        Column("douban_id_confidence", Double),
        Column("douban_review_status", String(16), nullable=False, server_default=text("'NOT_FOUND'")),
        words("douban_review_reason", 500),
        moment("douban_ignore_until"),
        moment("douban_last_sync_at"),
        moment("douban_next_sync_at"),
        count("douban_sync_fail_count"),
        moment("douban_last_fail_at"),
        words("douban_last_fail_reason", 500),
        Column("intro_locked", Boolean, nullable=False, server_default=false()),
        moment("intro_lock_time"),
        words("intro_ai_source", 64),
        moment("intro_ai_last_at"),
        count("intro_ai_fail_count"),
        moment("intro_ai_last_fail_at"),
        words("intro_ai_last_fail_reason", 500),
        # Also gives what came due lately by shard, from the index alone.
        index("video_coming", "douban_next_sync_at", "type_id", "shard"),
        # The first due of each shard and category is one step each in it, however many videos there are.
        index("video_first", "shard", "type_id", "douban_next_sync_at"),
        index("video_shard", "shard", "douban_next_sync_at"),
        index("video_status", "douban_review_status", "douban_next_sync_at"),
        index("video_subject", "vod_douban_id"),
        index("video_intro", "intro_locked", "intro_ai_last_at"),
        index("video_intro_fails", "intro_ai_fail_count"),
        index("video_time", "vod_time"),
        index("video_synced", "douban_last_sync_at"),
        # A backfill goes round a shard in this order.
        index("video_round", "shard", "douban_last_sync_at"),
        index("video_locked", "douban_id_locked", "douban_id_lock_time"),
    )
    task = table(
        "task",
        key("task_id"),
        big("vod_id"),
        Column("shard", SmallInteger, nullable=False),
        Column("task_type", String(24), nullable=False),
        Column("stage", String(16), nullable=False),
        Column("status", String(16), nullable=False),
        # One open task a video and type: the key is NULL once the task is closed.
        Column("open_key", String(48), unique=True),
        count("priority"),
        moment("run_after", nullable=False),
        count("attempts"),
        Column("lease_owner", String(160)),
        moment("lease_until"),
        words("last_error", 500),
        Column("payload", JsonText),
        words("run_id", 64),
        moment("created_at", nullable=False),
        # When a run last took it on; with finished_at, how long the work took.
        moment("started_at"),
        moment("finished_at"),
        index("task_queue", "status", "run_after", "priority"),
        index("task_video", "vod_id", "task_type", "status"),
        index("task_shard", "shard", "stage", "status"),
        index("task_lease", "lease_owner"),
        index("task_finished", "finished_at"),
        # How many rechecks were queued today.
        index("task_created", "task_type", "created_at"),
    )
    review = review_tables(maker)
    log = table(
        "log",
        key("change_id"),
        big("vod_id"),
        Column("shard", SmallInteger, nullable=False),
        Column("action", String(32), nullable=False),
        Column("old_values", JsonText, nullable=False),
        Column("new_values", JsonText, nullable=False),
        Column("state_old", JsonText, nullable=False),
        Column("state_new", JsonText, nullable=False),
        words("reason", 500),
        Column("score", Double),
        Column("operator", String(64), nullable=False),
        Column("batch_id", String(64), nullable=False),
        Column("run_id", String(64), nullable=False),
        words("owner", 160),
        words("rule_version", 32),
        Column("task_id", BigInteger),
        Column("verdict_id", BigInteger),
        Column("decision_id", BigInteger),
        Column("snapshot_id", BigInteger),
        Column("reverts_change_id", BigInteger),
        Column("state", String(16), nullable=False),
        words("state_reason", 500),
        moment("prepared_at", nullable=False),
        moment("applied_at"),
        index("log_video", "vod_id", "change_id"),
        index("log_batch", "batch_id"),
        index("log_run", "run_id"),
        index("log_state", "state", "prepared_at"),
        index("log_applied", "applied_at"),
        index("log_reverts", "reverts_change_id"),
        index("log_decision", "decision_id"),
        index("log_operator", "operator", "prepared_at"),
        index("log_rules", "rule_version", "prepared_at"),
    )
    snapshot = snapshot_table(metadata, name("snapshot"))
    gate = gate_table(metadata, name("gate"))
    intros = intro_tables(maker)
    alert = table(
        "alert",
        key("alert_id"),
        Column("cause", String(190), nullable=False),
        # One open alert a cause; NULL once the cause is gone.
        Column("open_key", String(190), unique=True),
        Column("kind", String(32), nullable=False),
        Column("title", String(200), nullable=False),
        Column("detail", Text),
        Column("times", Integer, nullable=False, server_default=text("1")),
        moment("first_at", nullable=False),
        moment("last_at", nullable=False),
        moment("sent_at"),
        words("send_error", 500),
        moment("ended_at"),
        index("alert_first", "first_at"),
    )
    health = table(
        "health",
        Column("sampled_at", UtcDateTime, primary_key=True),
        Column("figures", JsonText, nullable=False),
    )
    poster = table(
        "poster",
        Column("owner", String(32), primary_key=True),
        Column("address", String(500), nullable=False),
        Column("hashes", String(255), nullable=False),
        Column("first_hash", String(36), nullable=False),
        moment("fetched_at", nullable=False),
        index("poster_first_hash", "first_hash"),
    )
    subject = table(
        "subject",
        Column("douban_id", BigInteger, primary_key=True, autoincrement=False),
        Column("title", String(TITLE_LENGTH), nullable=False),
        moment("changed_at", nullable=False),
    )
    counter = counter_table(metadata, name("counter"))
    return OwnTables(
        metadata,
        video,
        task,
        review.verdict,
        review.candidate,
        review.decision,
        log,
        snapshot,
        gate,
        review.brake,
        intros.intro,
        intros.intro_mark,
        intros.person,
        alert,
        health,
        review.claim,
        review.outbox,
        poster,
        subject,
        counter,
    )


@dataclass(frozen=True, slots=True)
class IntroTables:
    """Tables of synopses by the language model."""

    intro: Table
    intro_mark: Table
    person: Table


def intro_tables(maker: TableMaker) -> IntroTables:
    """Return these tables as ``maker`` names them."""
    table, index = maker.table, maker.index

    intro = table(
        "intro",
        key("intro_id"),
        big("vod_id"),
        Column("shard", SmallInteger, nullable=False),
        link("douban_id"),
        Column("task_id", BigInteger),
        Column("run_id", String(64), nullable=False),
        Column("state", String(16), nullable=False),
        words("reason", 500),
        Column("violations", JsonText),
        Column("intro_text", Text),
        words("model", 128),
        words("provider", 64),
        Column("prompt_version", String(32), nullable=False),
        Column("fact_sheet", JsonText),
        Column("fact_sheet_hash", String(64), nullable=False),
        Column("cost_usd", Double, nullable=False, server_default=ZERO),
        count("prompt_tokens"),
        count("completion_tokens"),
        Column("snapshot_id", BigInteger),
        # What the second reading found each statement to rest on, by which reader, and the answer that says so.
        Column("reading", JsonText),
        Column("reader", String(160)),
        Column("reading_snapshot_id", BigInteger),
        Column("change_id", BigInteger),
        moment("created_at", nullable=False),
        index("intro_video", "vod_id", "intro_id"),
        index("intro_created", "created_at", "state"),
        index("intro_change", "change_id"),
        index("intro_origin", "state", "model", "prompt_version", "reader"),
    )
    intro_mark = table(
        "intro_mark",
        # The smallest hashes of an intro's pieces: texts that share some are compared in full.
        Column("mark", BigInteger, primary_key=True, autoincrement=False),
        Column("intro_id", BigInteger, primary_key=True, autoincrement=False),
        index("intro_mark_intro", "intro_id"),
    )
    person = table(
        "person",
        Column("name", String(64), primary_key=True),
        moment("seen_at", nullable=False),
    )
    return IntroTables(intro, intro_mark, person)
