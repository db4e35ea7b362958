"""What of TMDB's facts is too old to be kept, in every column that holds some, and its removal.

TMDB's terms allow a cache of six months. Ids, scores, times, links and people's decisions are ours and stay. `PLACES`
is the one list of where its facts are: retention empties what the checks count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg import Connection, sql

from douban_pipeline.tmdb.store.statements import ENQUEUE, TABLES, EntityTable
from douban_pipeline.tmdb.store.tables import held

RAW_DAYS = 180
"""Days after which facts must be fetched again or dropped."""
CONFIRMED_EVERY = timedelta(days=1)
"""How old the time of a stub's name may be beside the newest answer that names it: names are confirmed once a day.

Names expire that much later than answers, so that none expires that a kept answer still says."""
ANSWERS = "answers"
"""Of `FactsPlace.what`: answers with all that was derived from them."""
EXPIRED = "TMDB 的资料已到期删除；候选只剩编号和得分，下次查找时重新取得。"
"""Reason of a run's result whose candidates expired: the former one names TMDB's title."""
_PIECE = 500


@dataclass(frozen=True, slots=True, eq=False)
class FactsPlace:
    """Where facts of TMDB are kept.

    Attributes:
        key: The column that names a row for people.
        age: When TMDB said it, as an indexed expression.
        holds: The condition that a row holds such facts.
        change: ``SET …`` that removes them, or empty to delete the row.
        entity: The table of entities that it is, if the graph shows what expires.
        later: How much later than answers it expires.
    """

    table: str
    what: str
    named_zh: str
    key: str
    age: str
    holds: str
    change: str = ""
    entity: EntityTable | None = None
    later: timedelta = timedelta()

    def expire(self, connection: Connection, before: datetime) -> int:
        """Remove some facts that are older than ``before``, and queue their entities for the graph; return of how many
        rows."""
        given = {"before": before - self.later, "most": _PIECE}
        return connection.execute(self._expiry, given).rowcount

    @property
    def _expiry(self) -> sql.Composed:
        named = "ctid, tmdb_id, raw_hash, graph_hash" if self.entity else "ctid"
        rows = "FROM {table} WHERE {holds} AND {age} < %(before)s ORDER BY {age} LIMIT %(most)s FOR UPDATE"
        update, delete = "UPDATE {table} AS kept SET {change} FROM old", "DELETE FROM {table} AS kept USING old"
        old, verb = f"SELECT {named} {rows}", update if self.change else delete
        text = f"WITH old AS MATERIALIZED ({old}), emptied AS ({verb} WHERE kept.ctid = old.ctid RETURNING 1)"
        text += ", queued AS ({enqueue}) SELECT FROM emptied" if self.entity else " SELECT FROM emptied"
        return sql.SQL(text).format(**self._parts, enqueue=self._enqueue())

    def _enqueue(self) -> sql.Composable:
        if self.entity is None:
            return sql.SQL("")
        source = sql.SQL(
            "SELECT {}, tmdb_id, COALESCE(raw_hash, ''), COALESCE(graph_hash, ''), 'delete', NULL FROM old"
        ).format(sql.Literal(self.entity.entity.value))
        return sql.SQL(ENQUEUE).format(source=source)

    @property
    def _parts(self) -> dict[str, sql.Composable]:
        return {
            "table": sql.Identifier("tmdb", self.table),
            "holds": sql.SQL(self.holds),
            "age": sql.SQL(self.age),
            "change": sql.SQL(self.change),
            "key": sql.SQL(self.key),
        }

    def count(self, connection: Connection, before: datetime) -> int:
        """Return how many rows hold facts older than ``before``."""
        query = sql.SQL("SELECT count(*) FROM {table} WHERE {holds} AND {age} < %s").format(**self._parts)
        row = connection.execute(query, (before,)).fetchone()
        assert row is not None
        return int(row[0])

    def oldest(self, connection: Connection, before: datetime, most: int) -> list[tuple[str, datetime]]:
        """Return names and times of the oldest rows with facts older than ``before``."""
        query = sql.SQL(
            "SELECT {key}::text, {age} FROM {table} WHERE {holds} AND {age} < %s ORDER BY {age} LIMIT %s"
        ).format(**self._parts)
        return connection.execute(query, (before, most)).fetchall()


def _emptied(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} = NULL" for name in columns)


def _of_entities(table: EntityTable) -> Iterator[FactsPlace]:
    every, listed = tuple(table.columns), table.listed
    raw = ("raw", "raw_hash", "graph_hash", "listed_at")
    change = f"data_state = 'stub', {_emptied((*raw, *every))}"
    yield FactsPlace(table.name, ANSWERS, "答案", "tmdb_id", "fetched_at", "data_state = 'full'", change, table)
    yield FactsPlace(
        table.name,
        "names from credits",
        "演职员里的名称",
        "tmdb_id",
        "fetched_at",
        f"data_state = 'stub' AND {held(table.shown)}",
        _emptied(table.shown),
        table,
        CONFIRMED_EVERY,
    )
    yield FactsPlace(
        table.name,
        "facts from lists",
        "列表里的资料",
        "tmdb_id",
        "COALESCE(listed_at, fetched_at)",
        f"data_state = 'stub' AND {held(listed)}",
        _emptied((*listed, "listed_at")),
    )
    yield FactsPlace(table.translations, "translations", "译文", table.owner, "fetched_at", "true")


_LOGGED = ("selected", "candidates_top3", "multi_results_raw", "discover_results_raw")

_STRIPPED = (
    "candidates_at = NULL, candidates = (SELECT jsonb_agg(each - 'title' - 'year' - 'conflicts') "
    "FROM jsonb_array_elements(kept.candidates) AS each)"
)
PLACES: Sequence[FactsPlace] = (
    *(place for table in TABLES.values() for place in _of_entities(table)),
    FactsPlace("genres", "names of genres", "类型名称", "tmdb_id", "last_seen_at", "true", later=CONFIRMED_EVERY),
    FactsPlace("name_sounds", "pinyin of names", "名称的拼音", "name", "said_at", "true", later=CONFIRMED_EVERY),
    FactsPlace(
        "enrichment_requests",
        "answers in questions",
        "提问里的答案",
        "id",
        "created_at",
        held(_LOGGED),
        _emptied(_LOGGED),
    ),
    FactsPlace(
        "vod_match",
        "titles of candidates",
        "候选的片名",
        "vod_id",
        "candidates_at",
        "candidates_at IS NOT NULL",
        f"{_STRIPPED}, reason = CASE WHEN kept.decided_by IS NULL THEN '{EXPIRED}' ELSE kept.reason END",
    ),
    FactsPlace("snapshot", "archived answers", "存档的答案", "snapshot_id", "seen_at", "true"),
)
"""Every place; `later` of one is within what `expire` leaves before the end of TMDB's term."""


def counts(connection: Connection, before: datetime) -> dict[FactsPlace, int]:
    """Return how many rows of each place hold facts older than ``before``; places without are left out."""
    found = {place: place.count(connection, before) for place in PLACES}
    return {place: count for place, count in found.items() if count}
