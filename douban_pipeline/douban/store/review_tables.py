"""Tables of linking and review: verdicts with their candidates, people's decisions, suspended confirming."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy.schema import SchemaItem

from douban_pipeline.core.column_types import JsonText, big, count, key, link, moment, words
from douban_pipeline.core.platform_tables import MYSQL_OPTIONS


@dataclass(frozen=True, slots=True)
class TableMaker:
    """Makes tables under one prefix: with ``mac_``, ``video`` becomes ``mac_douban_video``."""

    prefix: str
    metadata: MetaData = field(default_factory=MetaData)

    def name(self, suffix: str) -> str:
        """Return the full name of a table, an index or a constraint."""
        return f"{self.prefix}douban_{suffix}"

    def table(self, suffix: str, *items: SchemaItem) -> Table:
        """Return a new table with these columns, indexes and constraints."""
        return Table(self.name(suffix), self.metadata, *items, **MYSQL_OPTIONS)

    def index(self, suffix: str, *columns: str) -> Index:
        """Return an index; ``suffix`` begins with the table's, because SQLite names indexes per database."""
        return Index(f"ix_{self.name(suffix)}", *columns)


@dataclass(frozen=True, slots=True)
class ReviewTables:
    """Tables of linking and review."""

    verdict: Table
    candidate: Table
    decision: Table
    claim: Table
    outbox: Table
    brake: Table


def review_tables(maker: TableMaker) -> ReviewTables:
    """Return these tables as ``maker`` names them."""
    name, table, index = maker.name, maker.table, maker.index

    verdict = table(
        "verdict",
        key("verdict_id"),
        big("vod_id"),
        Column("shard", SmallInteger, nullable=False),
        big("task_id"),
        Column("verdict", String(16), nullable=False),
        link("douban_id"),
        Column("score", Double),
        Column("lead", Double),
        Column("complete", Boolean, nullable=False),
        Column("source_healthy", Boolean, nullable=False),
        Column("rejects", JsonText),
        Column("reasons", JsonText),
        words("explanation", 500),
        Column("facts", JsonText),
        Column("snapshots", JsonText),
        # Of the row it was reached for, see `store.videos.fingerprint`; empty for verdicts of releases before it.
        words("fingerprint", 32),
        Column("profile", String(16), nullable=False, server_default=text("'plan'")),
        # Groups whose precision is measured apart; NULL for verdicts of releases that knew none.
        Column("strata", JsonText),
        # There may be more works of the name than were found; a replay needs to know.
        Column("crowded", Boolean, nullable=False, server_default=false()),
        Column("rule_version", String(32), nullable=False),
        Column("state", String(16), nullable=False),
        words("state_reason", 500),
        Column("run_id", String(64), nullable=False),
        moment("created_at", nullable=False),
        index("verdict_video", "vod_id", "verdict_id"),
        index("verdict_pending", "state", "verdict"),
        index("verdict_mix", "created_at", "verdict"),
    )
    candidate = table(
        "review_candidate",
        key("candidate_id"),
        big("verdict_id"),
        big("vod_id"),
        Column("rank", SmallInteger, nullable=False, quote=True),
        big("douban_id"),
        words("title", 255),
        Column("year", Integer),
        Column("score", Double, nullable=False),
        Column("points", JsonText),
        Column("rejects", JsonText),
        Column("conflicts", JsonText),
        Column("facts", JsonText),
        # False: known from a search hit only, so that there is no answer about it in the archive.
        Column("fetched", Boolean, nullable=False, server_default=true()),
        Column("snapshot_id", BigInteger),
        moment("created_at", nullable=False),
        UniqueConstraint("verdict_id", "rank", name=f"uq_{name('candidate_rank')}"),
        index("candidate_video", "vod_id", "verdict_id"),
    )
    decision = table(
        "decision",
        key("decision_id"),
        big("vod_id"),
        Column("shard", SmallInteger, nullable=False),
        Column("action", String(32), nullable=False),
        link("douban_id"),
        Column("lock", Boolean, nullable=False, server_default=false(), quote=True),
        # Days that it is ignored; 0 for ever.
        count("days"),
        Column("accept_conflicts", Boolean, nullable=False, server_default=false()),
        # It came in a spreadsheet.
        Column("imported", Boolean, nullable=False, server_default=false()),
        # Whether it is meant although the site locked the row.
        Column("override_cms_lock", Boolean, nullable=False, server_default=false()),
        # What the reviewer looked at: the newest verdict then, and the row as it was recorded.
        Column("verdict_id", BigInteger),
        words("fingerprint", 32),
        # When the subject was asked for and compared; NULL where that is still to be done.
        moment("checked_at"),
        Column("reviewer", String(64), nullable=False),
        words("note", 500),
        Column("state", String(16), nullable=False),
        words("state_reason", 500),
        # The same pending decision cannot be recorded twice; NULL once it is settled.
        Column("pending_key", String(96), unique=True),
        Column("run_id", String(64), nullable=False),
        # All that was recorded at once; reverted at once too.
        words("batch_id", 64),
        # The task that applies it, whose fate it shares.
        Column("task_id", BigInteger),
        # Not before this; NULL at once. Set when a source could not be asked.
        moment("run_after"),
        moment("created_at", nullable=False),
        moment("settled_at"),
        # The run that applies it, or did last; others leave it alone until then.
        Column("lease_owner", String(160)),
        moment("lease_until"),
        index("decision_lease", "lease_owner"),
        index("decision_pending", "state", "shard"),
        index("decision_video", "vod_id", "decision_id"),
        index("decision_batch", "batch_id"),
        index("decision_task", "task_id"),
        index("decision_subject", "douban_id", "state"),
    )
    claim = table(
        "claim",
        Column("vod_id", BigInteger, primary_key=True, autoincrement=False),
        # The page of a browser, by the token that it drew.
        Column("holder", String(64), nullable=False),
        words("reviewer", 64),
        moment("until", nullable=False),
        # The reviewer who asked for it and was not answered yet, empty if nobody did.
        words("asked_by", 64),
        index("claim_holder", "holder"),
        index("claim_until", "until"),
    )
    # Batches of the served sheet that are not applied or not reported to Dagster yet.
    outbox = table(
        "batch_outbox",
        Column("batch_id", String(64), primary_key=True),
        Column("reviewer", String(64), nullable=False),
        moment("created_at", nullable=False),
    )
    brake = table(
        "brake",
        Column("stratum", String(32), primary_key=True),
        words("reason", 500),
        Column("lower_bound", Double, nullable=False),
        Column("target", Double, nullable=False),
        Column("labels", Integer, nullable=False),
        moment("pulled_at", nullable=False),
        # On while this is NULL.
        moment("lifted_at"),
        words("lifted_by", 64),
        words("lift_note", 500),
    )
    return ReviewTables(verdict, candidate, decision, claim, outbox, brake)
