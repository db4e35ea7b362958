"""Fetches stored answers again behind the answers that were given from them, if they are old. Nobody waits for it."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import NotFound, SourceError
from douban_pipeline.tmdb.enrichment.admission import Admission
from douban_pipeline.tmdb.enrichment.known_answers import KnownAnswer, StoredTitles
from douban_pipeline.tmdb.enrichment.shared_client import SharingClient, ThreadFlights
from douban_pipeline.tmdb.enrichment.tmdb_requests import Client, SearchResults
from douban_pipeline.tmdb.types import EntityKey, EntityType, PayloadError

_logger = logging.getLogger(__name__)

REFRESH_AFTER = timedelta(days=1)
"""Age from which a stored answer is fetched again behind the answer: TMDB's votes and credits change daily."""
_AT_ONCE = 8
"""Answers that are fetched again at the same time: the other threads are for those who wait."""


@dataclass(slots=True)
class Refresher:
    """Fetches what is old, while TMDB has nothing else to do. Thread-safe.

    Args:
        requests: The requests under way for all questions.
        known: Where answers are stored.
        admission: What else waits for TMDB.
        threads: Where answers are fetched.
    """

    client: Client
    requests: ThreadFlights
    known: StoredTitles
    admission: Admission
    threads: Executor
    clock: Clock
    _under_way: set[tuple[EntityKey, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh_all(self, found: SearchResults) -> bool:
        """Fetch again what an answer took from the store, where that is old; return whether any of it is fetched."""
        started = [
            self.refresh(EntityKey(EntityType(each["type"]), each["data"]["id"]), each["language"], each["fetched_at"])
            for each in found.payloads
            if each["known"]
        ]
        return any(started)

    def refresh_known(self, key: EntityKey, known: KnownAnswer) -> bool:
        """Fetch a stored answer again if it is old; return whether it is fetched."""
        return self.refresh(key, known.language, known.fetched_at.isoformat())

    def refresh(self, key: EntityKey, language: str, fetched_at: str) -> bool:
        """Fetch an answer again that is stored since ``fetched_at`` (ISO), if that is long ago and no question waits;
        return whether it is fetched."""
        if self.clock.now() - datetime.fromisoformat(fetched_at) < REFRESH_AFTER:
            return False
        wanted = (key, language)
        with self._lock:
            if wanted in self._under_way:
                return True
            ticket = self.admission.enter_if_idle() if len(self._under_way) < _AT_ONCE else None
            if ticket is None:
                return False
            self._under_way.add(wanted)

        def done(_: object) -> None:
            ticket.close()
            with self._lock:
                self._under_way.discard(wanted)

        client = SharingClient(self.client, self.requests, on_call=ticket.called)
        self.threads.submit(self._fetch, client, key, language).add_done_callback(done)
        return True

    def _fetch(self, client: SharingClient, key: EntityKey, language: str) -> None:
        try:
            self.known.keep(client.details(key, language=language))
        except NotFound:
            self.known.lose(key)
        except (SourceError, PayloadError) as error:
            _logger.info("%s could not be fetched again: %s", key, error)
