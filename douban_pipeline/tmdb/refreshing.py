"""Keeping what is stored as TMDB has it: what changed there, what is old, stubs that are wanted, translations."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from psycopg import DataError

from douban_pipeline.core.database import chunks
from douban_pipeline.core.errors import GateClosed, GateUnreadable, NotFound, SourceError, SourceUnpaid, SourceWall
from douban_pipeline.tmdb.clients.api import TmdbClient
from douban_pipeline.tmdb.clients.errors import KeyRefused
from douban_pipeline.tmdb.running import TmdbServices
from douban_pipeline.tmdb.store import due
from douban_pipeline.tmdb.store.entities import Answer, Change, Stored
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import metadata
from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError

AT_ONCE = 50
"""Entities that are fetched, then stored in one transaction."""
MOST_FAILED = 20
"""Failures in a row after which a run stops asking: it is not the entities' fault."""
ENDS = (GateClosed, GateUnreadable, KeyRefused, SourceWall, SourceUnpaid)
"""Errors after which nothing else is worth asking in this run."""


@dataclass(slots=True)
class RefreshReport:
    """What a run fetched.

    Attributes:
        changes: Entities by what storing them changed.
        failed: Entities that could not be had or stored, with the reason; they stay due.
        not_stored: How many of them came, but PostgreSQL refused them.
        left: Entities that are due and were not asked for.
        ended: Why it stopped before its end; empty if it did not.
    """

    changes: Counter[str] = field(default_factory=Counter)
    failed: dict[EntityKey, str] = field(default_factory=dict)
    not_stored: int = 0
    left: int = 0
    ended: str = ""

    def numbers(self) -> dict[str, float]:
        """Return what the plots show."""
        return {
            "fetched": self.changes.total(),
            "new": self.changes[Change.NEW.value],
            "changed": self.changes[Change.CHANGED.value] + self.changes[Change.GRAPH.value],
            "changed_in_graph": self.changes[Change.GRAPH.value],
            "gone": self.changes[Change.GONE.value],
            "fetch_failed": len(self.failed) - self.not_stored,
            "persist_failed": self.not_stored,
        }


def note_changes(services: TmdbServices, client: TmdbClient, day: date) -> dict[EntityType, tuple[int, int]]:
    """Ask TMDB what changed on a day, and make those of it due that are stored; return both numbers by type.

    Raises:
        SourceError: TMDB does not say; nothing of the type was noted.
    """
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    found = {}
    for entity in EntityType:
        ids = set(client.changed_ids(entity, day, day))
        marked = services.store.run(
            lambda connection, entity=entity, ids=ids: due.mark_changed(connection, entity, ids, end)  # type: ignore[misc]
        )
        found[entity] = (len(ids), marked)
    return found


def refresh(
    services: TmdbServices, client: TmdbClient, *, most: int, on_batch: Callable[[RefreshReport], None] | None = None
) -> RefreshReport:
    """Fetch what is due, some at the same time, and store it; what TMDB does not have any more is marked as gone.

    Args:
        services: Whose store.
        client: Whom to ask.
        most: Entities at most.
        on_batch: Called after each batch with what was done so far.
    """
    settings, store = services.settings, services.store
    before = services.days_ago(settings.refresh_days)
    keys = store.run(lambda connection: due.due(connection, before, most, popular=settings.fill_popular))
    report = RefreshReport(left=len(keys))
    failures = 0
    with ThreadPoolExecutor(settings.concurrency) as pool:
        for piece in chunks(keys, AT_ONCE):
            answers = []
            for key, found in zip(piece, pool.map(lambda key: _asked(client, key), piece), strict=True):
                report.left -= 1
                failures = 0 if isinstance(found, Answer | NotFound) else failures + 1
                if isinstance(found, Answer):
                    answers.append(found)
                elif isinstance(found, NotFound):
                    store.write(lambda writer, key=key: writer.gone(key))  # type: ignore[misc]
                    report.changes[Change.GONE.value] += 1
                else:
                    report.failed[key] = str(found)
                    if isinstance(found, ENDS) or failures >= MOST_FAILED:
                        report.ended = report.ended or str(found)
            _store(store, answers, report)
            if on_batch is not None:
                on_batch(report)
            if report.ended:
                break
    services.store.run(
        lambda connection: due.note_numbers(connection, services.now().date(), report.numbers(), add=True)
    )
    return report


def _asked(client: TmdbClient, key: EntityKey) -> Answer | SourceError:
    try:
        return client.details(key)
    except SourceError as error:
        return error


def _store(store: PostgresTmdbStore, answers: Sequence[Answer], report: RefreshReport) -> None:
    """Store answers in one transaction; if one of them cannot be, each in its own."""
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
    """What became of translations: entities whose answers brought them, entities asked for, failures, why it ended."""

    split: int = 0
    asked: int = 0
    failed: int = 0
    ended: str = ""


def store_translations(services: TmdbServices, client: TmdbClient | None, *, most: int) -> TranslationReport:
    """Put translations into their tables: those that answers brought with them, then those of popular entities.

    Args:
        services: Whose store.
        client: Whom to ask for those that no answer brought; None asks nobody.
        most: Entities at most, of each kind of work.
    """
    store, report = services.store, TranslationReport()
    for entity in EntityType:
        rows = store.run(lambda connection, entity=entity: due.unsplit(connection, entity, most))  # type: ignore[misc]
        for tmdb_id, body, fetched_at in rows:
            key = EntityKey(entity, tmdb_id)
            store.write(lambda writer, key=key, body=body, at=fetched_at: writer.translations(key, body, at))  # type: ignore[misc]
        report.split += len(rows)
    for entity in EntityType if client is not None else ():
        keys = store.run(
            lambda connection, entity=entity: due.untranslated(connection, entity, most - report.asked)  # type: ignore[misc]
        )
        for key in keys:
            assert client is not None
            try:
                body, at = client.translations(key)
            except SourceError as error:
                report.failed += 1
                if isinstance(error, ENDS) or report.failed >= MOST_FAILED:
                    report.ended = str(error)
                    return report
                continue
            store.write(lambda writer, key=key, body=body, at=at: writer.translations(key, body, at))  # type: ignore[misc]
            report.asked += 1
    return report


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted: questions, done rows of the outbox, answers that became stubs, archived answers."""

    requests: int
    outbox: int
    raw: int
    archived: int


def prune(services: TmdbServices, *, dry_run: bool = False) -> Pruned:
    """Delete what is kept no longer; answers a day before TMDB's terms would be broken, for this runs once a day.

    A dry run deletes nothing, and returns how many would go.
    """
    settings, store = services.settings, services.store
    before = [services.days_ago(days) for days in (settings.request_days, settings.outbox_days, settings.raw_days - 1)]
    archived = services.archive.prune(services.days_ago(settings.archive_days), dry_run=dry_run)
    if dry_run:
        return Pruned(*store.run(lambda connection: due.outdated(connection, *before)), archived)
    requests, outbox, raw = before
    return Pruned(store.delete_requests(requests), store.prune_outbox(outbox), store.drop_raw(raw), archived)


def vacuum(services: TmdbServices) -> float:
    """Let PostgreSQL clear away what is dead and count anew; return how many seconds that took."""
    began = time.monotonic()
    with services.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in metadata.sorted_tables:
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {table.fullname}")
    return time.monotonic() - began
