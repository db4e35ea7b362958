"""The service that answers questions: from the store what that knows, else from TMDB, once for equal questions.

It waits for TMDB up to a deadline, for a look-up in the store half a second, and to write nothing down. What is stored
is answered first, and fetched again behind the answer (`refreshing`). A question that cannot be
answered within its deadline is refused at once; of one that is known in part, that part is answered.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.errors import NotFound, SourceError
from douban_pipeline.tmdb.answers import language_of
from douban_pipeline.tmdb.enrichment.admission import Admission, AdmissionRefusal
from douban_pipeline.tmdb.enrichment.known_answers import Known, StoredTitles
from douban_pipeline.tmdb.enrichment.metrics import Metrics
from douban_pipeline.tmdb.enrichment.refreshing import Refresher
from douban_pipeline.tmdb.enrichment.results import (
    EnrichmentResult,
    State,
    answer_of,
    logged_of,
    refused,
    source_of,
)
from douban_pipeline.tmdb.enrichment.route import Asked, Intent, Route, Router
from douban_pipeline.tmdb.enrichment.router import RuleRouter
from douban_pipeline.tmdb.enrichment.shared_client import SharingClient, ThreadFlights, search_flight
from douban_pipeline.tmdb.enrichment.spool import Job, Spool, SpoolError, conversation_hash, user_hash
from douban_pipeline.tmdb.enrichment.tmdb_requests import (
    MOST_ALIKE,
    MOST_DETAILS,
    Asking,
    Client,
    SearchResults,
    wanted_by,
)
from douban_pipeline.tmdb.enrichment.transient import EMPTY, TransientGraph, TransientGraphBuilder
from douban_pipeline.tmdb.enrichment.writer import Store, Writer
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityKey, PayloadError

_logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 3.0
_LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True)
class _Flight:
    """The requests for one question or several equal ones; without a future they are done.

    Attributes:
        refusal: Why TMDB was not asked for the part of the question that is not stored.
    """

    asking: Asking
    found: Future[SearchResults] | None
    refusal: AdmissionRefusal | None = None


class TMDBEnrichmentService:
    """Answers questions, and logs them with their results after answering.

    Args:
        store: Where questions are logged; None logs none.
        spool: Where they are kept while PostgreSQL does not answer; required with a store.
        router: Determines the route of a question; rule-based by default.
        deadline: Maximum seconds that an answer waits for TMDB.
        asynchronous: Whether questions are logged after the answer (``ENRICHMENT_ASYNC_WRITE_ENABLE``).
        queue_size: Capacity of the queue in memory (``ENRICHMENT_WRITE_QUEUE_SIZE``).
        threads: Maximum number of concurrent questions to TMDB.
        writer: Replaces the writer made of store and spool.
        known: What the store knows: TMDB is not asked for it. None for nothing.
    """

    def __init__(
        self,
        *,
        tmdb_client: Client,
        graph_builder: TransientGraphBuilder | None = None,
        store: Store | None = None,
        spool: Spool | None = None,
        router: Router | None = None,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        deadline: float = DEADLINE_SECONDS,
        asynchronous: bool = True,
        queue_size: int = 100,
        threads: int = 64,
        writer: Writer | None = None,
        known: StoredTitles | None = None,
    ) -> None:
        self._client = tmdb_client
        self._builder = graph_builder or TransientGraphBuilder()
        self._router = router or RuleRouter()
        self._clock = clock or SystemClock()
        self._deadline = deadline
        self._asynchronous = asynchronous
        self._spool = spool
        self.metrics = metrics or Metrics()
        if writer is None and store is not None and spool is not None:
            writer = Writer(store, spool, self.metrics, size=queue_size)
        self.writer = writer
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="tmdb-ask")
        self._known = known
        self._admission = Admission(tmdb_client.outlook, self._clock)
        self._requests = ThreadFlights()
        self._asked: dict[Hashable, _Flight] = {}
        self._refresher = None
        if known is not None:
            self._refresher = Refresher(tmdb_client, self._requests, known, self._admission, self._threads, self._clock)
        self._lock = threading.Lock()

    async def enrich_query(
        self,
        message: str,
        kb_prefix: str = "",
        user_id: str | None = None,
        session_id: str | None = None,
        incognito: bool = False,
        request_id: str | None = None,
        conversation_id: UUID | None = None,
        user_message_id: UUID | None = None,
        *,
        choice: EntityKey | None = None,
        language: str | None = None,
        deadline: float | None = None,
        before_tmdb: Callable[[], Awaitable[None]] | None = None,
    ) -> EnrichmentResult:
        """Answer a question from the store or TMDB, or refuse it because TMDB cannot be asked in time.

        Args:
            message: The question, outside text; cut to its first 500 characters.
            kb_prefix: The knowledge base: ``movie``, ``tv`` or none.
            user_id: The user; without it nothing is logged.
            session_id: The session; without it nothing is logged.
            incognito: Log nothing at all, not even TMDB's public answers.
            request_id: The caller's id of the request, to find it in the log.
            choice: The user's choice among earlier candidates.
            language: Language of the answers; by default the client's.
            deadline: Seconds to wait for TMDB; by default the service's.
            before_tmdb: Called before TMDB is asked for this question; what it raises is raised, and nothing is asked.
        """
        started = time.monotonic()
        message = message[:_LONGEST_TEXT]
        route = self._router.route(message, kb_prefix)
        if choice is not None:
            route = replace(route, selected_agent="tmdb", query_intent=Intent.ENTITY, filters={})
        spoken = language_of(language) or self._client.language
        if route.query_intent is Intent.NONE:
            return self._finished(State.SKIPPED, route, SearchResults(endpoint=""), EMPTY, "", started, request_id)
        wait = self._deadline if deadline is None else deadline
        flight = await self._flight(route, choice, spoken, wait, started, before_tmdb)
        if isinstance(flight, AdmissionRefusal):
            return self._finished(
                State.REFUSED, route, SearchResults(endpoint=""), EMPTY, "", started, request_id, flight
            )
        state, problem = await self._landed(flight, started + wait)
        # Copied, because results of a late thread must not change an answer that was already given.
        found = flight.asking.found.copied()
        state, graph, problem = self._graph_of(state, found, problem)
        if flight.refusal is not None:
            problem = problem or flight.refusal.reason
        refreshing = self._refresher is not None and not incognito and self._refresher.refresh_all(found)
        result = self._finished(state, route, found, graph, problem, started, request_id, refreshing=refreshing)
        persistence = await self._maybe_persist(
            result,
            found,
            message=message,
            user_id=user_id,
            session_id=session_id,
            incognito=incognito,
            conversation_id=conversation_id,
            user_message_id=user_message_id,
            language=spoken,
        )
        return replace(result, persistence=persistence)

    async def details(
        self, key: EntityKey, before_tmdb: Callable[[], Awaitable[None]] | None = None
    ) -> EntityAnswer | AdmissionRefusal:
        """Return the answer about an entity: a `KnownAnswer` from the store, else TMDB's, or a refusal.

        ``before_tmdb`` is called before TMDB is asked, as in `enrich_query`.

        Raises:
            NotFound: TMDB does not have it.
            SourceError: TMDB gave no usable answer.
            TimeoutError: TMDB did not answer in time.
        """
        known = await self._known.film(key, self._client.language) if self._known is not None else None
        if known is not None:
            if self._refresher is not None:
                self._refresher.refresh_known(key, known)
            return known
        if before_tmdb is not None:
            await before_tmdb()
        ticket = self._admission.enter(1, self._deadline)
        if isinstance(ticket, AdmissionRefusal):
            return ticket
        client = SharingClient(self._client, self._requests, on_call=ticket.called)
        asking = self._threads.submit(client.details, key)
        asking.add_done_callback(lambda _: ticket.close())
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(asking)), self._deadline)

    async def _flight(
        self,
        route: Route,
        choice: EntityKey | None,
        spoken: str,
        wait: float,
        started: float,
        before_tmdb: Callable[[], Awaitable[None]] | None,
    ) -> _Flight | AdmissionRefusal:
        """Return the requests for a question: those under way for an equal one, or its own; or why none are made."""
        key = (*route.requests, choice, spoken)
        with self._lock:
            if (flight := self._asked.get(key)) is not None:
                return flight
        wanted = [] if route.query_intent is not Intent.ENTITY else route.extracted_entities
        known: Mapping[str, Known] = {}
        answers: dict[EntityKey, EntityAnswer] = {}
        if self._known is not None and choice is not None:
            if (answer := await self._known.film(choice, spoken)) is not None:
                answers[choice] = answer
        elif self._known is not None and wanted:
            known = await self._known.named([wanted_by(route, name) for name in wanted], spoken)
        searched = [name for name in wanted if name not in known and search_flight(name, spoken) not in self._requests]
        calls = 2 * len(searched) if wanted else 1 + MOST_DETAILS
        if choice is not None:
            calls = 0 if answers else 1
        if route.asked is Asked.LIKE and wanted:
            calls += 1
        if calls and before_tmdb is not None:
            await before_tmdb()
        ticket = self._admission.enter(calls, wait - (time.monotonic() - started)) if calls else None
        if isinstance(ticket, AdmissionRefusal):
            if self._known is not None and wanted and len(known) < len(set(wanted)):
                known = await self._known.named_by_titles([wanted_by(route, name) for name in wanted], spoken)
            if not known:
                return ticket
            asking = Asking(self._client, spoken, started + wait, known, only_known=True)
            asking.run(route)
            if self._known is not None and route.asked is Asked.LIKE:
                asking.found.alike = await self._known.like(next(iter(known.values())), MOST_ALIKE) or None
                asking.found.alike_stored = True
            return _Flight(asking, None, ticket)
        on_call = ticket.called if ticket is not None else lambda: None
        client = SharingClient(self._client, self._requests, self._known, answers, on_call)
        asking = Asking(client, spoken, started + wait, known)
        stored = answers or (wanted and len(known) == len(set(wanted)))
        if stored and route.asked is not Asked.LIKE:
            asking.run(route, choice)  # nothing is requested
            return _Flight(asking, None)
        with self._lock:
            if (flight := self._asked.get(key)) is not None:  # an equal one began during the look-up
                if ticket is not None:
                    ticket.close()
                return flight
            flight = self._asked[key] = _Flight(asking, self._threads.submit(asking.run, route, choice))

        def land(_: object) -> None:
            if ticket is not None:
                ticket.close()
            with self._lock:
                self._asked.pop(key, None)

        assert flight.found is not None
        flight.found.add_done_callback(land)
        return flight

    async def _landed(self, flight: _Flight, until: float) -> tuple[State, str]:
        """Wait for a question's requests until a time (`time.monotonic`); return the outcome."""
        found = flight.asking.found
        if flight.found is not None:
            future = asyncio.wrap_future(flight.found)
            try:
                await asyncio.wait_for(asyncio.shield(future), max(until - time.monotonic(), 0.001))
            except TimeoutError:
                future.add_done_callback(_note_late_failure)
                return State.LATE, "TMDB did not answer in time"
            except NotFound as error:
                return State.NOTHING, str(error)
            except SourceError as error:
                _logger.warning("TMDB gave no answer to a question: %s", error)
                return (State.ANSWERED if found.payloads else State.FAILED), str(error)
        if not found.complete:
            return State.LATE, "TMDB did not answer all in time"
        return (State.ANSWERED if found.payloads else State.NOTHING), ""

    def _graph_of(self, state: State, found: SearchResults, problem: str) -> tuple[State, TransientGraph, str]:
        try:
            return state, self._builder.build_from_tmdb_payloads(found.payloads), problem
        except PayloadError as error:
            return State.FAILED, EMPTY, f"an answer of TMDB cannot be read: {error}"

    def _finished(
        self,
        state: State,
        route: Route,
        found: SearchResults,
        graph: TransientGraph,
        problem: str,
        started: float,
        request_id: str | None,
        refusal: AdmissionRefusal | None = None,
        *,
        refreshing: bool = False,
    ) -> EnrichmentResult:
        seconds = time.monotonic() - started
        self.metrics.count("enrichments_total", state.value)
        self.metrics.observe(seconds)
        return EnrichmentResult(
            state=state,
            route=route,
            endpoint=found.endpoint,
            candidates=found.ranked,
            selected=found.selected,
            uncertain=found.uncertain,
            payloads=found.payloads,
            graph=graph,
            answer=refused(refusal, "en" if route.english else "zh")
            if refusal
            else answer_of(state, route, found, graph),
            problem=refusal.reason if refusal else problem,
            retry_after=refusal.seconds if refusal else None,
            source=source_of(found),
            as_of=min((each["fetched_at"] for each in found.payloads), default=None),
            refreshing=refreshing,
            request_id=request_id,
            duration_ms=1000 * seconds,
            tmdb_ms=1000 * found.seconds,
        )

    async def _maybe_persist(
        self,
        result: EnrichmentResult,
        found: SearchResults,
        *,
        message: str,
        user_id: str | None,
        session_id: str | None,
        incognito: bool,
        conversation_id: UUID | None,
        user_message_id: UUID | None,
        language: str,
    ) -> str:
        """Pass a question with its results to the writer; return its state. Errors do not affect the answer."""
        if incognito or not user_id or not session_id or self.writer is None:
            return "skipped"
        arguments = logged_of(
            result,
            found,
            user_id=user_id,
            session_id=session_id,
            query_text=message,
            conversation_id=conversation_id,
            user_message_id=user_message_id,
            tmdb_language=language,
        )
        # Not `uuid4`, which asks the system for random bits each time; nothing secret rests on the id of a question.
        job = Job(UUID(int=random.getrandbits(128), version=4), self._clock.now(), arguments)
        if self._asynchronous:
            if self.writer.has_room:
                return self.writer.submit(job)
            # The queue is full: write to the disk, but not in the event loop that serves other answers.
            return await asyncio.get_running_loop().run_in_executor(self._threads, self.writer.submit, job)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.writer.write, job)

    def forget_user(self, user_id: str) -> int:
        """Drop a user's questions from the queue and the spool; return how many were in the spool.

        `PostgresTmdbStore.delete_user` deletes those in PostgreSQL.

        Raises:
            SpoolError: The spool cannot be written.
        """
        return self._spool.forget(user_hash(user_id)) if self._spool is not None else 0

    def forget_conversation(self, conversation_id: UUID) -> int:
        """Drop a conversation's questions; see `forget_user`."""
        return self._spool.forget(conversation_hash(conversation_id)) if self._spool is not None else 0

    @property
    def client(self) -> Client:
        """The client of TMDB."""
        return self._client

    @property
    def spool(self) -> Spool | None:
        """The spool for questions while PostgreSQL does not answer."""
        return self._spool

    def problem(self) -> str | None:
        """Return a problem for a health check: an unusable spool, because an outage would then lose questions.

        An outage of PostgreSQL or TMDB is not a problem: the service continues.
        """
        if self._spool is None:
            return None
        try:
            self._spool.counts()
        except SpoolError as error:
            return str(error)
        return None

    def close(self) -> None:
        """Finish questions in progress, write or spool the queue; safe to repeat."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._known is not None:
            self._known.close()
        if self.writer is not None:
            self.writer.close()


def _note_late_failure(future: asyncio.Future[Any]) -> None:
    """Log the late error of a question that was answered without it."""
    if not future.cancelled() and (error := future.exception()) is not None:
        _logger.warning("TMDB gave no answer to a question, late: %s", error)
