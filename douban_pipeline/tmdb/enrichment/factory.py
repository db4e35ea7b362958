"""Creates the service from the settings, and finds what keeps it from answering.

Neither its start nor its answers need PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.gate_memory import MemoryGate
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.language import terminal_text
from douban_pipeline.tmdb.clients.api import SOURCE, TmdbClient
from douban_pipeline.tmdb.clients.errors import RULES
from douban_pipeline.tmdb.enrichment.choice import WantedEntity, rank
from douban_pipeline.tmdb.enrichment.known_answers import StoredTitles
from douban_pipeline.tmdb.enrichment.metrics import Metrics
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.shared_client import KeylessClient
from douban_pipeline.tmdb.enrichment.spool import Spool, SpoolError
from douban_pipeline.tmdb.enrichment.tmdb_requests import Client
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline.tmdb.services import REQUEST_TIMEOUT_SECONDS, api_access
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.expired_facts import RAW_DAYS
from douban_pipeline.tmdb.store.postgres import LOOKUPS, POOL_MAX, PostgresTmdbStore

ANSWER_DEADLINE_SECONDS = 3.0
"""Seconds that an answer waits for TMDB: a person is waiting for it."""

CALLS = 64
"""Concurrent questions, and requests to TMDB."""
SERVICE_REQUESTS_PER_SECOND = 15.0
"""Of one service, beside those of runs: TMDB allows about 40."""
STORE_WAIT_SECONDS = 2.0
"""How long the writer waits for a connection before it considers PostgreSQL down."""


def open_spool(settings: TmdbSettings, clock: Clock | None = None) -> Spool:
    """Return the spool of this machine; its file is created at the first write."""
    return Spool(settings.home.absolute() / "tmdb" / "spool.sqlite", clock or SystemClock())


def service_store(settings: TmdbSettings) -> PostgresTmdbStore | None:
    """Return the store for a service, with short timeouts for an unavailable PostgreSQL; None if none is configured."""
    url = settings.database_url.get_secret_value()
    if not url:
        return None
    most = POOL_MAX - LOOKUPS
    return PostgresTmdbStore(url, most, most, settings.language, wait_seconds=STORE_WAIT_SECONDS)


@contextmanager
def open_online_client(settings: TmdbSettings, clock: Clock | None = None) -> Iterator[TmdbClient]:
    """Yield the client of one process that answers people: its gate is in memory, and nothing is archived.

    Raises:
        ProblemsError: No key is set.
    """
    headers, key = api_access(settings)
    clock = clock or SystemClock()
    seconds = REQUEST_TIMEOUT_SECONDS
    # TMDB allows dozens of calls per second, and people wait: no call may wait for ten others.
    gate = MemoryGate(clock, hold=timedelta(seconds=seconds + 30), at_risk=CALLS)
    gate.configure(SOURCE, 60 * SERVICE_REQUESTS_PER_SECOND, CALLS)
    with Fetcher(
        SOURCE,
        gate,
        None,
        clock,
        timeout=seconds,
        deadline=seconds,
        attempts=2,
        total_time=ANSWER_DEADLINE_SECONDS,
        rules=RULES,
        headers=headers,
        keep_alive=CALLS,
    ) as fetcher:
        yield TmdbClient(
            fetcher,
            None,
            api_url=settings.api_url,
            api_key=key,
            language=settings.language,
            urgent=True,
            archived=False,
        )


def _known(settings: TmdbSettings, store: PostgresTmdbStore, clock: Clock | None) -> StoredTitles:
    return StoredTitles(store, clock or SystemClock(), timedelta(days=RAW_DAYS))


@contextmanager
def open_service(
    settings: TmdbSettings, store: PostgresTmdbStore | None, clock: Clock | None = None
) -> Iterator[TMDBEnrichmentService]:
    """Yield the service; questions are answered from ``store`` and written to it, if given; the queue is drained at the
    end of the block. Without a key only the store answers.

    Raises:
        ProblemsError: There is neither a key nor a store.
    """
    with ExitStack() as stack:
        client: Client
        if store is not None and not settings.has_key:
            client = KeylessClient(settings.language)
        else:
            client = stack.enter_context(open_online_client(settings, clock))
        metrics = Metrics()
        writer, spool = None, None
        if store is not None:
            stack.callback(store.close)
            spool = open_spool(settings, clock)
            writer = Writer(
                store,
                spool,
                metrics,
                size=settings.enrichment_write_queue_size,
                backlog=lambda: store.run(outbox.counts).waiting,
            )
        service = TMDBEnrichmentService(
            tmdb_client=client,
            spool=spool,
            metrics=metrics,
            clock=clock,
            deadline=ANSWER_DEADLINE_SECONDS,
            asynchronous=settings.enrichment_async_write_enable,
            threads=CALLS,
            writer=writer,
            known=None if store is None else _known(settings, store, clock),
        )
        stack.callback(service.close)
        # Word lists and character tables are loaded at first use: load them now, not during the first question.
        rank(
            WantedEntity("喜宴", 1993),
            [{"id": 1, "media_type": "movie", "title": "囍宴", "release_date": "1993-08-04"}],
        )
        if writer is not None:
            writer.start()
        yield service


def check_service(settings: TmdbSettings, spool: Spool) -> Iterator[CheckResult]:
    """Check the switch for writing, and this machine's spool."""
    behind = settings.enrichment_async_write_enable
    when = terminal_text("behind the answers") if behind else terminal_text("before the answers, which wait for it")
    who = terminal_text("of who is incognito, and without user_id or session_id, nothing is written")
    yield CheckResult("questions", "ok", terminal_text("written {when}; {who}").format(when=when, who=who))
    try:
        waiting, rejected = spool.counts()
    except SpoolError as error:
        remedy = terminal_text("free some space, or move the file away: what waits in it is in that file")
        yield CheckResult("spool", "fail", str(error), remedy)
        return
    shown = terminal_text(
        "{waiting} questions wait for PostgreSQL, {rejected} were refused by it and put aside"
    ).format(waiting=waiting, rejected=rejected)
    if waiting:
        remedy = terminal_text("start the service, which writes them")
        yield CheckResult("spool", "warn", shown, remedy)
    else:
        yield CheckResult("spool", "warn" if rejected else "ok", shown)
