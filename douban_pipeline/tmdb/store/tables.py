"""The tables of the schema ``tmdb`` in this release, which migrations must produce.

Relations between titles and people have no table: they are in the graph, and can be rebuilt from ``raw``. Only credits
that answers contradict each other about are noted, in ``credit_claim``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from douban_pipeline.core.platform_tables import gate_table, snapshot_table
from douban_pipeline.tmdb.projection import SHOWN
from douban_pipeline.tmdb.types import EntityType

SCHEMA = "tmdb"
metadata = MetaData(schema=SCHEMA)

_NOW = text("now()")
_STATE = (
    "(data_state = 'stub' AND raw IS NULL AND raw_hash IS NULL) OR "
    "(data_state = 'full' AND raw IS NOT NULL AND raw_hash IS NOT NULL)"
)


def _moment(name: str, *, default: bool = True) -> Column[Any]:
    if default:
        return Column(name, DateTime(timezone=True), nullable=False, server_default=_NOW)
    return Column(name, DateTime(timezone=True))


def _text(name: str, default: str | None = None) -> Column[Any]:
    return Column(name, Text) if default is None else Column(name, Text, nullable=False, server_default=default)


def _by_beginning(table: str, name: str) -> Index:
    lowered: Any = literal_column(f"lower({name})").label("lowered")
    return Index(f"idx_tmdb_{table}_{name}", lowered, postgresql_ops={"lowered": "text_pattern_ops"})


def _entity_table(name: str, entity: EntityType, *columns: Column[Any]) -> Table:
    shown = SHOWN[entity]
    listed = [column.name for column in columns if column.name not in shown]
    return Table(
        name,
        metadata,
        Column("tmdb_id", Integer, primary_key=True, autoincrement=False),
        *columns,
        _text("raw_language", "zh-CN"),
        Column("data_state", Text, nullable=False, server_default="full"),
        Column("raw", JSONB),
        _text("raw_hash"),
        _text("graph_hash"),
        _moment("fetched_at"),
        _moment("first_seen_at"),
        _moment("last_seen_at"),
        _moment("gone_at", default=False),
        _moment("changed_at", default=False),
        _moment("listed_at", default=False),
        CheckConstraint("data_state IN ('stub','full')", name=f"{name}_data_state_check"),
        CheckConstraint(_STATE, name=f"ck_tmdb_{name}_state"),
        Index(f"idx_tmdb_{name}_fetched", "fetched_at", postgresql_where=text("data_state = 'full'")),
        Index(
            f"idx_tmdb_{name}_changed",
            "changed_at",
            postgresql_where=text("data_state = 'full' AND changed_at IS NOT NULL"),
        ),
        Index(
            f"idx_tmdb_{name}_stubs", text("popularity DESC NULLS LAST"), postgresql_where=text("data_state = 'stub'")
        ),
        *(_by_beginning(name, each) for each in (shown[0], f"original_{shown[0]}")),
        # What of a stub came from TMDB, by its age: from credits, and from lists.
        Index(f"idx_tmdb_{name}_named", "fetched_at", postgresql_where=text(f"data_state = 'stub' AND {held(shown)}")),
        Index(
            f"idx_tmdb_{name}_listed",
            text("COALESCE(listed_at, fetched_at)"),
            postgresql_where=text(f"data_state = 'stub' AND {held(listed)}"),
        ),
    )


def held(columns: Sequence[str]) -> str:
    """Return the condition that a row holds something in one of the columns, as its index has it."""
    return f"num_nonnulls({', '.join(columns)}) > 0"


def _title_columns(name: str, day: str) -> list[Column[Any]]:
    return [
        _text(name),
        _text(f"original_{name}"),
        _text("original_language"),
        Column(day, Date),
        Column("popularity", Double),
        Column("vote_average", Double),
        Column("vote_count", Integer),
    ]


movies = _entity_table("movies", EntityType.MOVIE, *_title_columns("title", "release_date"))
people = _entity_table(
    "people",
    EntityType.PERSON,
    _text("name"),
    _text("original_name"),
    _text("known_for_department"),
    Column("popularity", Double),
)
CREDITED = "jsonb_path_query_array(raw, '$.*.*[*].id')"
"""Ids of all that an answer lists, the titles of a person and the people of a title among them; as its index has it."""


def _credited(table: Table, **options: Any) -> Index:
    return Index(
        f"idx_tmdb_{table.name}_credited",
        text(CREDITED),
        _table=table,
        postgresql_using="gin",
        postgresql_with=options,
        postgresql_where=text("data_state = 'full'"),
    )


# Films change often and name many: they are sorted in some hundreds at once, which takes half the time.
_credited(movies, gin_pending_list_limit="512")
# Without a list of what is not sorted in yet: that makes reading every person look cheaper than the index.
_credited(people, fastupdate="off")
Index(
    "idx_tmdb_people_known_as",
    text("(raw->'also_known_as')"),
    _table=people,
    postgresql_using="gin",
    postgresql_where=text("data_state = 'full'"),
)
SERIES = "raw#>>'{belongs_to_collection,id}'"
"""The series that a film belongs to; as its index has it."""
Index("idx_tmdb_movies_series", text(f"({SERIES})"), _table=movies, postgresql_where=text(f"{SERIES} IS NOT NULL"))
tv_shows = _entity_table("tv_shows", EntityType.TV, *_title_columns("name", "first_air_date"))
_credited(tv_shows, gin_pending_list_limit="512")


def _translations_table(name: str, owner: str, parent: Table, *columns: str) -> Table:
    return Table(
        name,
        metadata,
        Column(owner, Integer, ForeignKey(parent.c.tmdb_id, ondelete="CASCADE"), nullable=False),
        Column("language", Text, nullable=False),
        *map(_text, columns),
        Column("raw", JSONB),
        _text("raw_hash"),
        _moment("fetched_at"),
        _moment("first_seen_at"),
        _moment("last_seen_at"),
        PrimaryKeyConstraint(owner, "language"),
        Index(f"idx_tmdb_{name}_fetched", "fetched_at"),
        *(_by_beginning(name, each) for each in columns if each in ("title", "name")),
    )


movie_translations = _translations_table("movie_translations", "tmdb_movie_id", movies, "title", "overview")
person_translations = _translations_table("person_translations", "tmdb_person_id", people, "biography")
tv_translations = _translations_table("tv_translations", "tmdb_tv_id", tv_shows, "name", "overview")

genres = Table(
    "genres",
    metadata,
    Column("tmdb_id", Integer, primary_key=True, autoincrement=False),
    _text("name"),
    _text("raw_language", "zh-CN"),
    _moment("last_seen_at"),
)

name_sounds = Table(
    "name_sounds",
    metadata,
    Column("name", Text, primary_key=True),
    Column("initials", Text, nullable=False),
    Column("pinyin", Text, nullable=False),
    _moment("said_at"),
    Index("idx_tmdb_name_sounds_initials", "initials", postgresql_ops={"initials": "text_pattern_ops"}),
    Index("idx_tmdb_name_sounds_pinyin", "pinyin", postgresql_ops={"pinyin": "text_pattern_ops"}),
    Index("idx_tmdb_name_sounds_said", "said_at"),
)


def _id() -> Column[Any]:
    return Column("id", UUID, primary_key=True, server_default=text("gen_random_uuid()"))


_TYPE = "entity_type IN ('movie','person','tv')"

enrichment_requests = Table(
    "enrichment_requests",
    metadata,
    _id(),
    _text("request_id"),
    Column("user_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("conversation_id", UUID),
    Column("user_message_id", UUID),
    Column("query_text", Text, nullable=False),
    _text("tmdb_endpoint", "/search/multi"),
    _text("role_hint"),
    Column("extracted_entities", JSONB),
    Column("selected", JSONB),
    _text("selected_media_type"),
    Column("selected_tmdb_id", Integer),
    Column("selected_score", Double),
    Column("candidates_top3", JSONB),
    Column("multi_results_raw", JSONB),
    Column("discover_results_raw", JSONB),
    _text("tmdb_language"),
    Column("duration_ms", Double),
    _moment("created_at"),
    Index("idx_tmdb_enrich_req_created", text("created_at DESC")),
    Index("idx_tmdb_enrich_req_user", "user_id", text("created_at DESC")),
    Index("idx_tmdb_enrich_req_selected", "selected_media_type", "selected_tmdb_id"),
    Index("idx_tmdb_enrich_req_endpoint", "tmdb_endpoint", text("created_at DESC")),
    Index("idx_tmdb_enrich_req_conversation", "conversation_id"),
)

enrichment_request_entities = Table(
    "enrichment_request_entities",
    metadata,
    Column("enrichment_request_id", UUID, ForeignKey(enrichment_requests.c.id, ondelete="CASCADE"), nullable=False),
    Column("entity_type", Text, nullable=False),
    Column("tmdb_id", Integer, nullable=False),
    Column("selected", Boolean, nullable=False, server_default=text("false")),
    Column("score", Double),
    PrimaryKeyConstraint("enrichment_request_id", "entity_type", "tmdb_id"),
    CheckConstraint(_TYPE, name="enrichment_request_entities_entity_type_check"),
)

neo4j_etl_outbox = Table(
    "neo4j_etl_outbox",
    metadata,
    _id(),
    Column("entity_type", Text, nullable=False),
    Column("tmdb_id", Integer, nullable=False),
    Column("raw_hash", Text, nullable=False),
    Column("graph_hash", Text, nullable=False),
    _text("action", "upsert"),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    _text("request_id"),
    _moment("enqueued_at"),
    _moment("available_at"),
    _moment("locked_at", default=False),
    _text("locked_by"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    _moment("last_attempt_at", default=False),
    _text("last_error"),
    _moment("processed_at", default=False),
    _moment("dead_at", default=False),
    CheckConstraint(_TYPE, name="neo4j_etl_outbox_entity_type_check"),
    CheckConstraint("action IN ('upsert','delete')", name="neo4j_etl_outbox_action_check"),
    Index("ux_tmdb_etl_outbox_dedupe", "entity_type", "tmdb_id", unique=True),
    Index(
        "idx_tmdb_etl_outbox_pending",
        "available_at",
        "enqueued_at",
        postgresql_where=text("processed_at IS NULL AND dead_at IS NULL"),
    ),
    Index("idx_tmdb_etl_outbox_processed", "processed_at", postgresql_where=text("processed_at IS NOT NULL")),
    Index("idx_tmdb_etl_outbox_request", "request_id", postgresql_where=text("request_id IS NOT NULL")),
)

credit_claim = Table(
    "credit_claim",
    metadata,
    Column("credit_id", Text, nullable=False),
    Column("entity_type", Text, nullable=False),
    Column("tmdb_id", Integer, nullable=False),
    PrimaryKeyConstraint("entity_type", "tmdb_id", "credit_id"),
    CheckConstraint(_TYPE, name="credit_claim_entity_type_check"),
    Index("idx_tmdb_credit_claim_credit", "credit_id"),
)

vod_link = Table(
    "vod_link",
    metadata,
    Column("vod_id", BigInteger, primary_key=True, autoincrement=False),
    Column("media_type", Text, nullable=False),
    Column("tmdb_id", Integer, nullable=False),
    Column("score", Double),
    Column("state", Text, nullable=False),
    _moment("decided_at"),
    CheckConstraint("media_type IN ('movie','tv')", name="vod_link_media_type_check"),
    CheckConstraint("state IN ('confirmed','review','rejected')", name="vod_link_state_check"),
    Index("idx_tmdb_vod_link_title", "media_type", "tmdb_id"),
)

vod_match = Table(
    "vod_match",
    metadata,
    Column("vod_id", BigInteger, primary_key=True, autoincrement=False),
    Column("title", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False, server_default=""),
    Column("candidates", JSONB),
    _moment("candidates_at", default=False),
    _moment("looked_at"),
    _text("decided_by"),
    CheckConstraint("state IN ('confirmed','review','none')", name="vod_match_state_check"),
    Index("idx_tmdb_vod_match_state", "state", "looked_at"),
    Index("idx_tmdb_vod_match_candidates", "candidates_at", postgresql_where=text("candidates_at IS NOT NULL")),
)

daily_numbers = Table(
    "daily_numbers",
    metadata,
    Column("day", Date, nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Double, nullable=False),
    PrimaryKeyConstraint("day", "name"),
)

gate = gate_table(metadata, "gate")
snapshot = snapshot_table(metadata, "snapshot")
