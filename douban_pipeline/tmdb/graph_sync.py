"""Writes from the store to the graph: queued entities, or everything.

The graph is a function of the full answers in the store: every edge of a full title, and those of a full person to
titles that are not full; where answers have one credit at other ends, the newest one counts, and the entities are
written together (`store.claims`), so that the next one counts when that is withdrawn. The queue only names
entities; their data is read when it is written. So processing a row twice, late, or in two workers leads to the same
graph.
"""

from __future__ import annotations

import heapq
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from uuid import uuid4

from neo4j.exceptions import AuthError, DriverError, Neo4jError, ServiceUnavailable, SessionExpired, TransientError

from douban_pipeline.tmdb.graph.batch import ContestedCreditError, GraphBatch, GraphValueError, Written
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.projection import project, stub_properties
from douban_pipeline.tmdb.store import claims, outbox
from douban_pipeline.tmdb.store.outbox import OutboxClaim
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore, ShownEntity
from douban_pipeline.tmdb.types import (
    LABELS,
    TYPES,
    Edge,
    EntityKey,
    EntityType,
    Node,
    NodeKey,
    NodeLabel,
    PayloadError,
    Projection,
    Property,
)

OUTBOX_ATTEMPTS = 8
"""Failures after which a change is put aside: the waits between them grow to an hour."""

GRAPH_BATCH = 50
"""Entities written in one transaction of the graph."""

_logger = logging.getLogger(__name__)
DOWN = (ServiceUnavailable, SessionExpired, AuthError, TransientError)
"""Errors that are not caused by the data to be written, except `_is_too_large`."""


def _is_too_large(error: Exception) -> bool:
    """Return whether the graph lacks the memory for what it was given: fewer entities at once may need less."""
    return isinstance(error, Neo4jError) and str(error.code).endswith("OutOfMemoryError")


class GraphUnavailableError(Exception):
    """The graph database does not answer; the entities are still queued."""


@dataclass(slots=True)
class SyncReport:
    """Result of a drain.

    Attributes:
        changed_meanwhile: Number of those that changed while they were written, and are queued again.
        failed: Entities that could not be written, with the reason; they are retried later.
        dead: Those of them that were put aside for good.
    """

    done: int = 0
    changed_meanwhile: int = 0
    failed: dict[EntityKey, str] = field(default_factory=dict)
    dead: int = 0
    written: Written = field(default_factory=Written)


def build_batch(store: PostgresTmdbStore, keys: Iterable[EntityKey]) -> GraphBatch:
    """Return the required content of the graph for entities, and for those whose credits they contest, from the
    store's current data.

    Raises:
        PayloadError: An answer cannot be projected.
    """
    wanted = set(keys)
    dated, gone = _projections(store, wanted)
    titles = {
        entity: {key.tmdb_id for key in gone if TYPES.get(key.label) is entity}
        for entity in (EntityType.MOVIE, EntityType.TV)
    }
    if any(titles.values()):  # edges from full people count again for a title that is no longer full
        people = [EntityKey(EntityType.PERSON, tmdb_id) for tmdb_id in store.people_crediting(titles)]
        dated |= _projections(store, people)[0]
        wanted.update(people)
    contesting = {claim.entity for claim in store.run(partial(claims.connected, keys=wanted))} - wanted
    dated |= _projections(store, contesting)[0]
    # The oldest answer first: of contradicting ones the last one of a batch counts.
    projections = {key: found for key, (_, found) in sorted(dated.items(), key=lambda each: (each[1][0], each[0]))}
    shown = _shown(store, [*projections.values()], gone)
    owners: dict[NodeKey, Sequence[Edge]] = dict.fromkeys(gone, ())
    others: dict[NodeKey, Node] = {}
    for key, found in projections.items():
        edges = found.edges
        if key.label is NodeLabel.PERSON:
            edges = tuple(edge for edge in edges if not _is_full(shown, edge.key.end))
        owners[key] = edges
        ends = {edge.key.start for edge in edges} | {edge.key.end for edge in edges}
        others |= {other.key: other for other in found.others if other.key in ends}
    names = store.genre_names(key.tmdb_id for key in others if key.label is NodeLabel.GENRE)
    stubs = {
        key: _stub(key, other.properties, shown, names) for key, other in others.items() if not _is_full(shown, key)
    }
    stubs |= {key: _stub(key, others[key].properties if key in others else {}, shown, names) for key in gone}
    return GraphBatch(
        owners,
        {key: found.node.properties for key, found in projections.items()},
        {key: properties for key, properties in stubs.items() if key not in projections},
        frozenset(key for key in others if _is_full(shown, key)),
    )


def _projections(
    store: PostgresTmdbStore, keys: Iterable[EntityKey]
) -> tuple[dict[NodeKey, tuple[datetime, Projection]], list[NodeKey]]:
    wanted = sorted(set(keys))
    found: dict[NodeKey, tuple[datetime, Projection]] = {}
    gone: list[NodeKey] = []
    for entity in EntityType:
        ids = [key.tmdb_id for key in wanted if key.type is entity]
        raws = store.dated_raws(entity, ids) if ids else {}
        for tmdb_id in ids:
            key = NodeKey(LABELS[entity], tmdb_id)
            if tmdb_id in raws:
                fetched_at, raw = raws[tmdb_id]
                found[key] = fetched_at, project(entity, raw)
            else:
                gone.append(key)
    return found, gone


def _shown(
    store: PostgresTmdbStore, projections: Iterable[Projection], gone: Iterable[NodeKey]
) -> dict[NodeKey, ShownEntity]:
    ids: dict[EntityType, set[int]] = {entity: set() for entity in EntityType}
    for key in (*gone, *(other.key for found in projections for other in found.others)):
        if key.label is not NodeLabel.GENRE:
            ids[TYPES[key.label]].add(key.tmdb_id)
    return {
        NodeKey(LABELS[entity], tmdb_id): found
        for entity, wanted in ids.items()
        if wanted
        for tmdb_id, found in store.shown(entity, wanted).items()
    }


def _is_full(shown: dict[NodeKey, ShownEntity], key: NodeKey) -> bool:
    return key in shown and shown[key].full


def _stub(
    key: NodeKey, said: Mapping[str, Property], shown: dict[NodeKey, ShownEntity], names: dict[int, str | None]
) -> dict[str, Property]:
    """Return the properties of a node that is not full: from the store, else from the credit."""
    if key.label is NodeLabel.GENRE:
        return {"name": names[key.tmdb_id]} if key.tmdb_id in names else dict(said)
    if key in shown:
        held = stub_properties(TYPES[key.label], shown[key].columns)
        # The names of a stub may have expired, while a newer answer names it.
        return {**said, **{name: value for name, value in held.items() if value is not None or name not in said}}
    return dict(said)


def drain(
    store: PostgresTmdbStore,
    target: GraphTarget,
    *,
    batch: int = GRAPH_BATCH,
    lease_seconds: float = 300,
    attempts: int = OUTBOX_ATTEMPTS,
    seconds: float | None = None,
    on_batch: Callable[[SyncReport], None] | None = None,
) -> SyncReport:
    """Write queued entities to the graph until none is due, or the time is up.

    Raises:
        GraphUnavailableError: The graph database does not answer; claimed rows are released.
    """
    worker = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
    report = SyncReport()
    until = None if seconds is None else time.monotonic() + seconds
    while until is None or time.monotonic() < until:
        for key in store.run(lambda connection: outbox.put_aside_abandoned(connection, attempts)):
            _logger.warning("%s is put aside: its workers ended without a result", key)
            report.dead += 1
        claims = store.run(lambda connection: outbox.claim(connection, worker, batch, lease_seconds))
        if not claims:
            break
        try:
            _sync(store, target, worker, claims, attempts, report)
        except DOWN as error:
            store.run(partial(outbox.release, worker=worker, claims=claims))
            raise GraphUnavailableError(f"the graph at {target.uri} does not answer: {error}") from error
        except KeyboardInterrupt:
            store.run(partial(outbox.release, worker=worker, claims=claims))
            raise
        if on_batch is not None:
            on_batch(report)
    return report


def _sync(
    store: PostgresTmdbStore,
    target: GraphTarget,
    worker: str,
    claims: Sequence[OutboxClaim],
    attempts: int,
    report: SyncReport,
) -> None:
    """Write claimed rows in one transaction of the graph; if that fails, use one transaction each."""
    try:
        report.written += apply_entities(store, target, [each.key for each in claims])
    except (PayloadError, GraphValueError, Neo4jError, DriverError) as error:
        if isinstance(error, DOWN) and not _is_too_large(error):
            raise
        if len(claims) > 1:
            for each in claims:
                _sync(store, target, worker, [each], attempts, report)
            return
        [failed] = claims
        reason = f"{type(error).__name__}: {error}"
        _logger.warning("%s cannot be written to the graph: %s", failed.key, reason[:300])
        dead = store.run(lambda connection: outbox.fail(connection, worker, failed, reason, attempts))
        report.failed[failed.key] = reason
        report.dead += dead
        return
    done = store.run(lambda connection: outbox.acknowledge(connection, worker, claims))
    report.done += len(claims)
    report.changed_meanwhile += len(claims) - done


def apply_entities(store: PostgresTmdbStore, target: GraphTarget, keys: Sequence[EntityKey]) -> Written:
    """Write some entities from the store to the graph, under the graph's lock."""
    with store.graph_lock():
        try:
            return _apply(store, target, keys, replace=False)
        except ContestedCreditError as contested:
            store.run(partial(claims.record, claims=contested.claims))
            return _apply(store, target, keys, replace=True)


def _apply(store: PostgresTmdbStore, target: GraphTarget, keys: Sequence[EntityKey], *, replace: bool) -> Written:
    """Write entities, and keep account of contested credits: new ones before the graph changes, settled ones after."""
    batch = build_batch(store, keys)
    if contested := batch.contested():
        store.run(partial(claims.record, claims=contested))
    written = target.apply(batch, replace=replace)
    entities = [EntityKey(TYPES[node.label], node.tmdb_id) for node in batch.owners]
    known = {claim.credit_id for claim in store.run(partial(claims.connected, keys=entities))}
    if settled := known - {claim.credit_id for claim in contested}:
        store.run(partial(claims.forget, credit_ids=settled))
    return written


def rebuild_graph(
    store: PostgresTmdbStore,
    target: GraphTarget,
    *,
    batch: int = GRAPH_BATCH,
    on_batch: Callable[[int], None] | None = None,
) -> int:
    """Empty the graph and rebuild it from the store's answers alone; return the number of entities.

    Queued entities stay queued: writing them again changes nothing.
    """
    target.set_up()
    target.clear()
    done = 0
    # The oldest answer first, as they came: a credit that moved since ends up where it is now.
    dated = heapq.merge(*(_dated_keys(store, entity) for entity in EntityType))
    while piece := [key for _, key in islice(dated, batch)]:
        apply_entities(store, target, piece)
        done += len(piece)
        if on_batch is not None:
            on_batch(done)
    return done


def _dated_keys(store: PostgresTmdbStore, entity: EntityType) -> Iterator[tuple[datetime, EntityKey]]:
    for fetched_at, tmdb_id in store.full_ids(entity):
        yield fetched_at, EntityKey(entity, tmdb_id)
