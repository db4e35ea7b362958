"""Keeps the store up to date with TMDB: changed and old entities, wanted stubs, translations."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial

from psycopg import DataError

from douban_pipeline.core.database import chunks
from douban_pipeline.core.errors import GateClosed, GateUnreadable, NotFound, SourceError, SourceUnpaid, SourceWall
from douban_pipeline.tmdb.clients.api import TmdbClient
from douban_pipeline.tmdb.clients.errors import KeyRefused
from douban_pipeline.tmdb.services import CONCURRENCY, TmdbServices
from douban_pipeline.tmdb.store import due, expired_facts
from douban_pipeline.tmdb.store.entities import EntityAnswer, EntityWriter, Stored, StoreResult
from douban_pipeline.tmdb.store.expired_facts import ANSWERS, CONFIRMED_EVERY, RAW_DAYS, FactsPlace
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import metadata
from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError

OUTBOX_DAYS = 7
"""Days for which completed outbox rows are kept, to look up what reached the graph."""

REQUEST_DAYS = 30
"""Days for which users' logged questions are kept."""

ARCHIVE_DAYS = 30
"""Days for which archived answers are kept; entities are not affected."""

AT_ONCE = 50
"""Number of entities that are fetched and then stored in one transaction."""
MOST_FAILED = 20
"""Failures in a row after which a run stops fetching, because the source must have failed."""
ENDS = (GateClosed, GateUnreadable, KeyRefused, SourceWall, SourceUnpaid)
"""Errors after which no further request is useful in this run."""
_UNTRANSLATED = {"iso_639_1": "xx", "data": {}}
"""Stored for an entity without translations, in TMDB's code for no language."""


@dataclass(slots=True)
class RefreshReport:
    """Result of a run.

    Attributes:
        failed: Entities that could not be fetched or stored, with the reason; they stay due.
        not_stored: Number of those that were fetched but refused by PostgreSQL.
    """

    changes: Counter[str] = field(default_factory=Counter)
    failed: dict[EntityKey, str] = field(default_factory=dict)
    not_stored: int = 0
    left: int = 0
    ended: str = ""

    def numbers(self) -> dict[str, float]:
        """Return the figures."""
        return {
            "fetched": self.changes.total(),
            "new": self.changes[StoreResult.NEW.value],
            "changed": self.changes[StoreResult.CHANGED.value] + self.changes[StoreResult.GRAPH.value],
            "changed_in_graph": self.changes[StoreResult.GRAPH.value],
            "gone": self.changes[StoreResult.GONE.value],
            "fetch_failed": len(self.failed) - self.not_stored,
            "persist_failed": self.not_stored,
        }


def note_changes(services: TmdbServices, client: TmdbClient, day: date) -> dict[EntityType, tuple[int, int]]:
    """Fetch the list of entities changed on a day, and make stored ones due; return both numbers by type.

    Raises:
        SourceError: TMDB gave no usable answer; nothing of the type was recorded.
    """
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    found = {}
    for entity in EntityType:
        ids = set(client.changed_ids(entity, day, day))
        marked = services.store.run(partial(due.mark_changed, entity=entity, ids=ids, at=end))
        found[entity] = (len(ids), marked)
    return found


def refresh(
    services: TmdbServices, client: TmdbClient, *, most: int, on_batch: Callable[[RefreshReport], None] | None = None
) -> RefreshReport:
    """Fetch due entities, several concurrently, and store them; those TMDB no longer has are marked as gone.

    The most urgent ones are fetched, in random order: in order of urgency, entities whose requests always fail would be
    the first ones of every run, and end it at the same place.
    """
    store = services.store
    before = services.days_ago(due.REFRESH_DAYS)
    keys = store.run(lambda connection: due.due(connection, before, most))
    random.shuffle(keys)
    report = RefreshReport(left=len(keys))
    failures = 0
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        for piece in chunks(keys, AT_ONCE):
            answers = []
            for key, found in zip(piece, pool.map(lambda key: _asked(client, key), piece), strict=True):
                report.left -= 1
                failures = 0 if isinstance(found, EntityAnswer | NotFound) else failures + 1
                if isinstance(found, EntityAnswer):
                    answers.append(found)
                elif isinstance(found, NotFound):
                    store.write(partial(EntityWriter.gone, key=key))
                    report.changes[StoreResult.GONE.value] += 1
                else:
                    report.failed[key] = str(found)
                    if isinstance(found, ENDS) or failures >= MOST_FAILED:
                        report.ended = report.ended or str(found)
            _store(store, answers, report)
            if on_batch is not None:
                on_batch(report)
            if report.ended:
                break
    return report


def _asked(client: TmdbClient, key: EntityKey) -> EntityAnswer | SourceError:
    try:
        return client.details(key)
    except SourceError as error:
        return error


def _store(store: PostgresTmdbStore, answers: Sequence[EntityAnswer], report: RefreshReport) -> None:
    """Store answers in one transaction; if one of them cannot be stored, use one transaction each."""
    if not answers:
        return
    try:
        stored: list[Stored] = store.persist_payloads(answers)
    except (PayloadError, DataError) as error:
        if len(answers) > 1:
            for answer in answers:
                _store(store, [answer], report)
            return
        [answer] = answers
        report.failed[EntityKey(answer.entity, int(answer.raw["id"]))] = f"not stored: {error}"
        report.not_stored += 1
        return
    report.changes.update(each.change.value for each in stored)


@dataclass(slots=True)
class TranslationReport:
    """Result for translations: entities whose answers contained them, entities fetched, failures, reason of the end."""

    split: int = 0
    asked: int = 0
    failed: int = 0
    ended: str = ""


def store_translations(services: TmdbServices, client: TmdbClient | None, *, most: int) -> TranslationReport:
    """Store translations: first those contained in stored answers, then those of popular entities.

    Args:
        client: Client for entities whose answers contain none; None fetches none.
        most: Maximum number of entities for each of the two steps.
    """
    store, report, failures = services.store, TranslationReport(), 0
    for entity in EntityType:
        rows = store.run(partial(due.unsplit, entity=entity, most=most))
        for tmdb_id, body, fetched_at in rows:
            key = EntityKey(entity, tmdb_id)
            store.write(partial(EntityWriter.translations, key=key, body=body, fetched_at=fetched_at))
        report.split += len(rows)
    for entity in EntityType if client is not None else ():
        keys = store.run(partial(due.untranslated, entity=entity, most=most - report.asked))
        random.shuffle(keys)  # see `refresh`
        for key in keys:
            assert client is not None
            try:
                body, at = client.translations(key)
            except NotFound:
                store.write(partial(EntityWriter.gone, key=key))
                continue
            except SourceError as error:
                report.failed, failures = report.failed + 1, failures + 1
                if isinstance(error, ENDS) or failures >= MOST_FAILED:
                    report.ended = str(error)
                    return report
                continue
            failures = 0
            store.write(partial(_store_translations, key=key, body=body, at=at))
            report.asked += 1
    return report


def _store_translations(writer: EntityWriter, key: EntityKey, body: Mapping[str, object], at: datetime) -> None:
    """Store an entity's list of translations, and that it has none: otherwise it would be the next to be asked for."""
    if not writer.translations(key, body, at):
        writer.translations(key, {"translations": [_UNTRANSLATED]}, at)


@dataclass(frozen=True, slots=True)
class PrunedRows:
    """Number of deleted questions, completed outbox rows, answers that became stubs, other rows that lost facts of
    TMDB, and archived answers."""

    requests: int
    outbox: int
    raw: int
    facts: int
    archived: int


def prune(services: TmdbServices, *, dry_run: bool = False) -> PrunedRows:
    """Delete expired data; TMDB's facts before its terms require it (`expiry`), because this runs once a day.

    A dry run deletes nothing, and returns how many would be deleted.
    """
    store = services.store
    requests, outbox = services.days_ago(REQUEST_DAYS), services.days_ago(OUTBOX_DAYS)
    before = expiry(services.now())
    archived = services.archive.prune(services.days_ago(ARCHIVE_DAYS), dry_run=dry_run)
    if dry_run:
        found = store.run(partial(expired_facts.counts, before=before))
        return _pruned(store.run(lambda connection: due.outdated(connection, requests, outbox)), found, archived)
    done = (store.delete_requests(requests), store.prune_outbox(outbox))
    return _pruned(done, store.expire(before), archived)


def expiry(now: datetime) -> datetime:
    """Return the time before which TMDB's answers expire, so that nothing is older than `RAW_DAYS` a day later.

    One day is for the next run, the other for names, which expire later than answers (`expired_facts.CONFIRMED_EVERY`).
    """
    return now - (timedelta(days=RAW_DAYS - 1) - CONFIRMED_EVERY)


def _pruned(done: tuple[int, int], facts: Mapping[FactsPlace, int], archived: int) -> PrunedRows:
    answers = sum(count for place, count in facts.items() if place.what == ANSWERS)
    return PrunedRows(*done, answers, sum(facts.values()) - answers, archived)


def vacuum(services: TmdbServices) -> float:
    """Run VACUUM (ANALYZE) on all tables; return its duration in seconds."""
    began = time.monotonic()
    with services.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in metadata.sorted_tables:
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {table.fullname}")
    return time.monotonic() - began
