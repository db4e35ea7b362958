"""Predicates for the checks of the TMDB system; each queries the store or the graph and returns what it found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from neo4j.exceptions import DriverError, Neo4jError
from sqlalchemy import Connection, text

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.tmdb.graph_sync import build_batch
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.store import expired_facts, outbox
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.store.tables import metadata
from douban_pipeline.tmdb.types import EntityKey, EntityType

LONGEST_WAIT = timedelta(hours=1)
"""Maximum time a change may wait for the graph."""
SAMPLE = 20
"""Number of entities of each type that are compared with the graph."""
_LATELY = timedelta(days=3)
_MOST = 200
_CREDITS = {
    EntityType.MOVIE: "raw @? '$.credits.cast' AND raw @? '$.credits.crew'",
    EntityType.TV: "(raw @? '$.credits.cast' AND raw @? '$.credits.crew') OR raw @? '$.aggregate_credits.cast'",
    EntityType.PERSON: "raw @? '$.combined_credits.cast' "
    "OR (raw @? '$.movie_credits.cast' AND raw @? '$.tv_credits.cast')",
}


@dataclass(frozen=True, slots=True)
class TmdbBreach:
    """A violation of a rule: entity, table or row, and the problem."""

    what: str
    problem: str


def incomplete_answers(services: TmdbServices, connection: Connection) -> Iterator[TmdbBreach]:
    """Yield recently fetched full entities whose answers lack the credits, so that the graph cannot be built from
    them."""
    since = services.now() - _LATELY
    for entity, complete in _CREDITS.items():
        rows = connection.execute(
            text(
                f"SELECT tmdb_id FROM tmdb.{TABLES[entity].name} WHERE data_state = 'full' "  # noqa: S608
                f"AND fetched_at >= :since AND NOT ({complete}) ORDER BY tmdb_id LIMIT {_MOST}"
            ),
            {"since": since},
        )
        for (tmdb_id,) in rows:
            yield TmdbBreach(f"{entity.value}/{tmdb_id}", "原始答案里没有演职员，无法据此重建图")


def outdated_facts(services: TmdbServices, _connection: Connection) -> Iterator[TmdbBreach]:
    """Yield rows with a column whose facts are older than TMDB's terms allow, whether or not their answer is kept."""
    days = expired_facts.RAW_DAYS
    before = services.days_ago(days)
    for place in expired_facts.PLACES:
        for name, at in services.store.run(partial(place.oldest, before=before, most=_MOST)):
            problem = f"{place.named_zh}是 {at:%F} 取得的，已超过 {days} 天：重新取得，或运行 tmdb_retention"
            yield TmdbBreach(f"{place.table}/{name}", problem)


def other_versions(_services: TmdbServices, connection: Connection) -> Iterator[TmdbBreach]:
    """Yield the schema if it is not at the version of this release."""
    found = connection.execute(text(f"SELECT version_num FROM tmdb.{TREE.version_table}")).scalar()  # noqa: S608
    if found != TREE.head:
        yield TmdbBreach(
            "tmdb", f"版本是 {found}，本发行版需要 {TREE.head}：运行 douban-pipeline upgrade --system tmdb"
        )


def strange_tables(_services: TmdbServices, connection: Connection) -> Iterator[TmdbBreach]:
    """Yield foreign tables in the schema: relations belong in the graph."""
    own = {table.name for table in metadata.sorted_tables} | {TREE.version_table}
    rows = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'tmdb' ORDER BY 1"))
    for (name,) in rows:
        if name not in own:
            yield TmdbBreach(f"tmdb.{name}", "不是本系统的表：关系只属于图，请移到别处")


def waiting_changes(services: TmdbServices, _connection: Connection) -> Iterator[TmdbBreach]:
    """Yield the outbox if it falls behind, and rows that were put aside."""
    counts = services.store.run(outbox.counts)
    if counts.oldest is not None and services.now() - counts.oldest > LONGEST_WAIT:
        yield TmdbBreach("neo4j_etl_outbox", f"{counts.waiting} 行在等，最早的自 {counts.oldest:%F %H:%M} UTC 起")
    for row in services.store.run(outbox.dead):
        yield TmdbBreach(
            f"{row['entity_type']}/{row['tmdb_id']}", f"已搁置：{row['last_error']}（requeue_outbox 重排）"
        )


def differing_entities(services: TmdbServices, connection: Connection) -> Iterator[TmdbBreach]:
    """Yield entities of a random sample that differ between graph and store, without those with pending changes."""
    keys = [key for entity in EntityType for key in _sample(connection, entity)]
    if not keys:
        return
    try:
        with services.graph() as target:
            found = target.differences(build_batch(services.store, keys))
    except (DatabaseError, DriverError, Neo4jError) as error:
        yield TmdbBreach("graph", f"图数据库没有回答：{error}"[:300])
        return
    for each in found[:_MOST]:
        yield TmdbBreach(each.split(" ")[0].strip("("), f"图与存储不符：{each}")


def _sample(connection: Connection, entity: EntityType) -> list[EntityKey]:
    table = f"tmdb.{TABLES[entity].name}"
    highest = connection.execute(text(f"SELECT max(tmdb_id) FROM {table}")).scalar() or 0  # noqa: S608
    start, found = random.randint(0, highest), list[EntityKey]()
    for condition in ("tmdb_id >= :start", "tmdb_id < :start"):
        rows = connection.execute(
            text(
                f"SELECT tmdb_id FROM {table} AS kept WHERE data_state = 'full' AND gone_at IS NULL "  # noqa: S608
                f"AND {condition} AND NOT EXISTS (SELECT FROM tmdb.neo4j_etl_outbox AS o WHERE "
                "o.entity_type = :entity AND o.tmdb_id = kept.tmdb_id AND o.processed_at IS NULL) "
                # While a contested credit is pending, which claim the graph has is open.
                "AND NOT (EXISTS (SELECT FROM tmdb.credit_claim AS claim WHERE claim.entity_type = :entity "
                "AND claim.tmdb_id = kept.tmdb_id) AND EXISTS (SELECT FROM tmdb.neo4j_etl_outbox AS o "
                "JOIN tmdb.credit_claim AS claim USING (entity_type, tmdb_id) WHERE o.processed_at IS NULL)) "
                "ORDER BY tmdb_id LIMIT :most"
            ),
            {"start": start, "entity": entity.value, "most": SAMPLE - len(found)},
        )
        found += [EntityKey(entity, tmdb_id) for (tmdb_id,) in rows]
    return found
