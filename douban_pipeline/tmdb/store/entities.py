"""Writes answers into the entity tables, within the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from psycopg import Connection

from douban_pipeline.tmdb.projection import columns_of, is_full, key_of, name_of, project
from douban_pipeline.tmdb.store import genres, pinyin
from douban_pipeline.tmdb.store.statements import TABLES, EntityTable
from douban_pipeline.tmdb.types import TYPES, EntityKey, EntityType, Node, NodeLabel, PayloadError
from douban_pipeline.tmdb.values import canonical, graph_hash, id_of, items_of, text_hash, text_of


class StoreResult(StrEnum):
    """Result of storing an answer."""

    NEW = "new"
    """It did not exist, or only as a stub."""
    UNCHANGED = "unchanged"
    OLDER = "older than what is stored"
    CHANGED = "changed, not in the graph"
    GRAPH = "changed in the graph"
    GONE = "gone"
    """It existed, and TMDB no longer has it."""


@dataclass(frozen=True, slots=True)
class EntityAnswer:
    """TMDB's answer about one entity.

    Attributes:
        fetched_at: When TMDB sent it (aware).
    """

    entity: EntityType
    raw: Mapping[str, Any]
    language: str
    fetched_at: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """What happened to an answer.

    Attributes:
        full: Whether it is now the entity's base row; otherwise it is a translation, or not enough for the graph.
    """

    key: EntityKey
    change: StoreResult
    full: bool


@dataclass(frozen=True, slots=True)
class _Prepared:
    key: EntityKey
    answer: EntityAnswer
    text: str
    raw_hash: str


class _Named(NamedTuple):
    """What an answer calls another entity.

    Attributes:
        queued: Whether the answer is queued for the graph, which then is told of the name.
    """

    properties: Mapping[str, Any]
    said_at: datetime
    queued: bool


_ROWS = 50
"""Answers in one statement: enough that its plan costs little, few enough that both sides work at the same time."""


@dataclass(slots=True)
class EntityWriter:
    """Writes answers in one transaction."""

    connection: Connection
    base: str
    request_id: str | None = None
    _named: dict[tuple[NodeLabel, str], dict[int, _Named]] = field(default_factory=dict)

    def write(self, answers: Sequence[EntityAnswer]) -> list[Stored]:
        """Store answers in order, and return the result of each.

        Raises:
            PayloadError: One of them is not an answer about an entity; nothing was written.
        """
        keys = [entity_key(answer) for answer in answers]
        found: list[Stored | None] = [None] * len(answers)
        waiting: dict[EntityKey, int] = {}
        for place, key in enumerate(keys):
            if key in waiting:  # the same entity again: store the earlier answers first
                self._write_round(answers, waiting, found)
            waiting[key] = place
        self._write_round(answers, waiting, found)
        return [each for each in found if each is not None]

    def knows_newer(self, key: EntityKey, language: str | None, fetched_at: datetime) -> bool:
        """Return whether the stored answer about an entity was given later, in a language or (None) in any."""
        query = TABLES[key.type].newer
        given = {"tmdb_id": key.tmdb_id, "language": language, "fetched_at": fetched_at}
        return self.connection.execute(query, given).fetchone() is not None

    def _write_round(
        self, answers: Sequence[EntityAnswer], waiting: dict[EntityKey, int], found: list[Stored | None]
    ) -> None:
        for entity in EntityType:
            places = {place: answers[place] for key, place in sorted(waiting.items()) if key.type is entity}
            full = {place: answer for place, answer in places.items() if is_full(entity, answer.raw)}
            stored = self._write_full(entity, [*full.values()]) if full else []
            for place, each in zip(full, stored, strict=True):
                found[place] = each
            for place, answer in places.items():
                if place not in full:
                    found[place] = self._translate(prepare(answer))
            self._write_named()
        waiting.clear()

    def _write_full(self, entity: EntityType, answers: Sequence[EntityAnswer]) -> list[Stored]:
        """Store full answers about different entities of one type; return the result of each.

        Those that seem unchanged are only touched. One that changes at that very moment is stored like the others.
        """
        table, held, same = TABLES[entity], dict[int, tuple[str, str]](), list[_Prepared]()
        ids = [answer.raw["id"] for answer in answers]
        for tmdb_id, *hashed in self.connection.execute(table.hashes, {"ids": ids}):
            held[tmdb_id] = (hashed[0], hashed[1])

        def changed() -> Iterator[_Prepared]:
            for answer in answers:
                item = prepare(answer)
                if held.get(item.key.tmdb_id) == (item.raw_hash, answer.language):
                    same.append(item)
                else:
                    yield item

        found, said = self._store(entity, changed()), dict[str | None, datetime]()
        seen = self._touch(table, same) if same else set()
        for item in same:
            if item.key.tmdb_id in seen:
                found[item.key.tmdb_id] = Stored(item.key, StoreResult.UNCHANGED, full=True)
                self._name_others(project(entity, item.answer.raw).others, item.answer, queued=False)
                said[name_of(entity, item.answer.raw)] = item.answer.fetched_at
        if meanwhile := [item for item in same if item.key.tmdb_id not in seen]:
            found |= self._store(entity, meanwhile)
        pinyin.record(self.connection, said)
        return [found[tmdb_id] for tmdb_id in ids]

    def _touch(self, table: EntityTable, rows: Sequence[_Prepared]) -> set[int]:
        parameters = {
            "ids": [item.key.tmdb_id for item in rows],
            "hashes": [item.raw_hash for item in rows],
            "languages": [item.answer.language for item in rows],
            "fetched": [item.answer.fetched_at for item in rows],
        }
        return {tmdb_id for (tmdb_id,) in self.connection.execute(table.touch, parameters)}

    def _store(self, entity: EntityType, items: Iterable[_Prepared]) -> dict[int, Stored]:
        """Store full answers of one type whose text differs from the stored one; return the results by id."""
        table = TABLES[entity]
        others: list[tuple[_Prepared, tuple[Node, ...]]] = []

        def parameters() -> Iterator[dict[str, Any]]:
            """Yield the rows some at a time, so that PostgreSQL stores earlier ones while later ones are computed."""
            coming = iter(items)
            while piece := [*islice(coming, _ROWS)]:
                projections = [project(entity, item.answer.raw) for item in piece]
                others.extend((item, found.others) for item, found in zip(piece, projections, strict=True))
                columns = [columns_of(entity, item.answer.raw) for item in piece]
                yield {
                    **{name: [row[name] for row in columns] for name in table.columns},
                    "ids": [item.key.tmdb_id for item in piece],
                    "languages": [item.answer.language for item in piece],
                    "raws": [item.text for item in piece],
                    "hashes": [item.raw_hash for item in piece],
                    "graph_hashes": [graph_hash(projection) for projection in projections],
                    "times": [item.answer.fetched_at for item in piece],
                    "base": self.base,
                    "request_id": self.request_id,
                }

        with self.connection.cursor() as cursor:
            cursor.executemany(table.upsert, parameters(), returning=True)
            rows = {row[0]: row[1:] for result in cursor.results() for row in result.fetchall()} if others else {}
        found, said = dict[int, Stored](), dict[str | None, datetime]()
        for item, named in others:
            stored, state, before, language, gone_at, queued = rows[item.key.tmdb_id]
            if not stored and language != item.answer.language:
                found[item.key.tmdb_id] = self._translate(item)
                continue
            # What an older answer names may be named by no other.
            self._name_others(named, item.answer, queued=queued)
            said[name_of(entity, item.answer.raw)] = item.answer.fetched_at
            if not stored:
                change = StoreResult.OLDER
            elif state != "full" or gone_at is not None:
                change = StoreResult.NEW
            elif queued:
                change = StoreResult.GRAPH
            else:
                change = StoreResult.UNCHANGED if before == item.raw_hash else StoreResult.CHANGED
            found[item.key.tmdb_id] = Stored(item.key, change, full=True)
        pinyin.record(self.connection, said)
        return found

    @staticmethod
    def _common(item: _Prepared) -> dict[str, Any]:
        return {
            "tmdb_id": item.key.tmdb_id,
            "language": item.answer.language,
            "raw": item.text,
            "raw_hash": item.raw_hash,
            "fetched_at": item.answer.fetched_at,
        }

    def _name_others(self, others: Sequence[Node], answer: EntityAnswer, *, queued: bool) -> None:
        language, said_at = answer.language, answer.fetched_at
        by_label = {label: self._named.setdefault((label, language), {}) for label in {key.label for key, _ in others}}
        for (label, tmdb_id), properties in others:
            named = by_label[label]
            known = named.get(tmdb_id)
            if known is None or known.said_at <= said_at:
                # The graph is told of what the store holds when it is written, so one queued answer is enough.
                named[tmdb_id] = _Named(properties, said_at, queued or (known is not None and known.queued))

    def _write_named(self) -> None:
        """Write the names of the nodes at the other ends of edges; newer ones take precedence."""
        for (label, language), items in sorted(self._named.items()):
            if label is NodeLabel.GENRE:
                said = {tmdb_id: (each.properties["name"], each.said_at) for tmdb_id, each in items.items()}
                genres.name(self.connection, said, language, self.base)
            else:
                self._name_stubs(TYPES[label], items, language)
        self._named.clear()

    def _name_stubs(self, entity: EntityType, items: Mapping[int, _Named], language: str) -> int:
        """Insert or name stubs, and queue those of whose new name no queued answer tells the graph; return how many
        are new."""
        if not items:
            return 0
        table, ids = TABLES[entity], sorted(items)
        untold = [tmdb_id for tmdb_id in ids if not items[tmdb_id].queued]
        before = {}
        if untold:
            for tmdb_id, full, *shown in self.connection.execute(table.rows, {"ids": untold}):
                before[tmdb_id] = None if full else shown
        parameters: dict[str, Any] = {"ids": ids, "language": language, "base": self.base}
        parameters |= {name: [items[tmdb_id].properties.get(name) for tmdb_id in ids] for name in table.columns}
        parameters["times"] = [items[tmdb_id].said_at for tmdb_id in ids]
        rows = self.connection.execute(table.stubs, parameters).fetchall()
        said = {
            name: items[tmdb_id].said_at
            for tmdb_id, _, name, *_ in rows
            if name == items[tmdb_id].properties.get(table.shown[0])
        }
        pinyin.record(self.connection, said)
        renamed = [
            tmdb_id for tmdb_id, _, *shown in rows if before.get(tmdb_id) is not None and before[tmdb_id] != shown
        ]
        if renamed:
            self.connection.execute(table.requeue, {"ids": renamed})
        return sum(is_new for _, is_new, *_ in rows)

    def mention(
        self, entity: EntityType, items: Iterable[Mapping[str, Any]], language: str, fetched_at: datetime
    ) -> int:
        """Insert or name stubs of the entities in a list that TMDB sent at ``fetched_at``; return how many are new."""
        named = {
            tmdb_id: _Named(columns_of(entity, item), fetched_at, queued=False)
            for item in items
            if (tmdb_id := id_of(item.get("id")))
        }
        return self._name_stubs(entity, named, language)

    def _translate(self, item: _Prepared) -> Stored:
        """Store an answer that cannot be the base row: in another language, or without the credits."""
        raw = item.answer.raw
        self.mention(item.key.type, [{**raw, "id": item.key.tmdb_id}], item.answer.language, item.answer.fetched_at)
        return self._write_translation(item.key, raw, self._common(item), is_item=False)

    def _write_translation(
        self, key: EntityKey, texts: Mapping[str, Any], common: Mapping[str, Any], *, is_item: bool
    ) -> Stored:
        table = TABLES[key.type]
        parameters = {**common, **{name: text_of(texts.get(name)) for name in table.translated}, "item": is_item}
        row = self.connection.execute(table.translate, parameters).fetchone()
        assert row is not None
        before, stored = row
        if before is None:
            return Stored(key, StoreResult.NEW, full=False)
        same = not stored or before == common["raw_hash"]
        return Stored(key, StoreResult.UNCHANGED if same else StoreResult.CHANGED, full=False)

    def translations(self, key: EntityKey, body: Mapping[str, Any], fetched_at: datetime) -> list[Stored]:
        """Store the list of an entity's translations; a complete answer in a language takes precedence."""
        self.mention(key.type, [{"id": key.tmdb_id}], self.base, fetched_at)
        found = []
        for item in items_of(body, "translations"):
            language, region, texts = item.get("iso_639_1"), item.get("iso_3166_1"), item.get("data")
            if not isinstance(language, str) or not isinstance(texts, dict):
                continue
            text = canonical(item)
            common = {
                "tmdb_id": key.tmdb_id,
                "language": f"{language}-{region}" if isinstance(region, str) and region else language,
                "raw": text,
                "raw_hash": text_hash(text),
                "fetched_at": fetched_at,
            }
            found.append(self._write_translation(key, texts, common, is_item=True))
        return found

    def gone(self, key: EntityKey, recorded: datetime | None = None) -> bool:
        """Record that TMDB no longer has an entity; return whether it was known and not recorded as gone.

        Of a recorded answer the time is noted even if the entity is unknown: an older answer may follow.
        """
        parameters = {"tmdb_id": key.tmdb_id, "recorded": recorded}
        return bool(self.connection.execute(TABLES[key.type].mark_gone, parameters).fetchone())


def entity_key(answer: EntityAnswer) -> EntityKey:
    """Return the entity that an answer is about.

    Raises:
        PayloadError: It is not an answer about an entity.
    """
    if not isinstance(answer.raw, Mapping):
        raise PayloadError(f"{type(answer.raw).__name__} instead of an answer")
    return key_of(answer.entity, answer.raw)


def prepare(answer: EntityAnswer) -> _Prepared:
    """Return an answer with its key, canonical text and hash.

    Raises:
        PayloadError: It is not an answer about an entity.
    """
    key, text = entity_key(answer), canonical(answer.raw)
    return _Prepared(key, answer, text, text_hash(text))
