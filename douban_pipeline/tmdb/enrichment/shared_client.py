"""A client that asks TMDB once for what several questions want at the same time, and not for what the store knows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar, cast

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.core.gate_types import Outlook
from douban_pipeline.tmdb.clients.api import SOURCE, Page
from douban_pipeline.tmdb.enrichment.admission import NEVER
from douban_pipeline.tmdb.enrichment.known_answers import StoredTitles
from douban_pipeline.tmdb.enrichment.tmdb_requests import Client
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityKey

_Result = TypeVar("_Result")


class ThreadFlights:
    """Work under way, by what it is for: whoever wants the same waits for it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Future[Any]] = {}

    def fly(self, key: Hashable, work: Callable[[], _Result]) -> _Result:
        """Return the result of ``work``, or of the same work that is under way; its errors are raised for all."""
        with self._lock:
            flight = self._flights.get(key)
            own = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
        if not own:
            return cast(_Result, flight.result())
        try:
            result = work()
        except BaseException as error:
            self._land(key)
            flight.set_exception(error)
            raise
        self._land(key)
        flight.set_result(result)
        return result

    def _land(self, key: Hashable) -> None:
        with self._lock:
            self._flights.pop(key, None)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether such work is under way."""
        with self._lock:
            return key in self._flights


class SharingClient:
    """The client of one question.

    Args:
        flights: The requests under way for all questions.
        known: What the store knows; None for nothing.
        answers: Answers that were looked up before.
        on_call: Called before each request of this question's own.
    """

    def __init__(
        self,
        client: Client,
        flights: ThreadFlights,
        known: StoredTitles | None = None,
        answers: Mapping[EntityKey, EntityAnswer] | None = None,
        on_call: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._flights = flights
        self._known = known
        self._answers = answers or {}
        self._on_call = on_call
        self.language = client.language

    def search_multi(self, query: str, *, language: str | None = None, follows: bool = False) -> Page:
        """Return the films, series and people with a name."""
        return self._shared(
            search_flight(query, language or self.language),
            lambda: self._client.search_multi(query, language=language, follows=follows),
        )

    def discover_movie(self, *, language: str | None = None, page: int = 1, **filters: str) -> Page:
        """Return films by filters."""
        return self._shared(
            ("discover_movie", language, page, *sorted(filters.items())),
            lambda: self._client.discover_movie(language=language, page=page, **filters),
        )

    def discover_tv(self, *, language: str | None = None, page: int = 1, **filters: str) -> Page:
        """Return series by filters."""
        return self._shared(
            ("discover_tv", language, page, *sorted(filters.items())),
            lambda: self._client.discover_tv(language=language, page=page, **filters),
        )

    def details(self, key: EntityKey, *, language: str | None = None, follows: bool = False) -> EntityAnswer:
        """Return the details of an entity."""
        spoken = language or self.language
        if key in self._answers:
            return self._answers[key]
        known = self._known.answer(key, spoken) if self._known is not None else None
        if known is not None:
            return known
        return self._shared((key, spoken), lambda: self._client.details(key, language=language, follows=follows))

    def outlook(self) -> Outlook:
        """Return what a request that joined the queue now could expect."""
        return self._client.outlook()

    def _shared(self, key: Hashable, ask: Callable[[], _Result]) -> _Result:
        def called() -> _Result:
            self._on_call()
            return ask()

        return self._flights.fly(key, called)


class KeylessClient:
    """Takes the place of TMDB's client where no key is set: it lets no call pass, so that only the store answers."""

    def __init__(self, language: str) -> None:
        self.language = language

    def outlook(self) -> Outlook:
        """Return that no call may ever pass."""
        return Outlook(0, 0, 0, NEVER, "no key of TMDB is set")

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise SourceUnavailable(SOURCE, self.outlook().reason)

    search_multi = discover_movie = discover_tv = details = _refuse


def search_flight(name: str, language: str) -> Hashable:
    """Return the key of a search in `ThreadFlights`."""
    return ("search", name, language)
