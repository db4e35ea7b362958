"""The service over the stand-in of TMDB, with a store that hangs or fails when a test says so, and what it is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

from douban_pipeline.tmdb.enrichment import factory
from douban_pipeline.tmdb.enrichment.factory import open_online_client
from douban_pipeline.tmdb.enrichment.results import EnrichmentResult
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.spool import Job, Spool
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.requests import LoggedRequest
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer

ASKED = "《喜宴》的导演是谁？"
WHO = {"user_id": "u1", "session_id": "s1"}


class FakeStore:
    """A store that keeps what it is given, or fails as it is told to; `gate` holds it up.

    Attributes:
        rows: What it was given, by id.
        error: What it raises in place of keeping it.
    """

    def __init__(self) -> None:
        self.rows: dict[UUID, dict[str, Any]] = {}
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Event()
        self.kept: Callable[[], None] = lambda: None

    def persist_questions(self, asked: Mapping[UUID, LoggedRequest]) -> None:
        self.inside.set()
        self.gate.wait(30)
        if self.error is not None:
            raise self.error
        self.rows |= {logged_id: asdict(request) for logged_id, request in asked.items()}
        self.kept()

    def delete_request(self, logged_id: UUID) -> int:
        if self.error is not None:
            raise self.error
        return int(self.rows.pop(logged_id, None) is not None)


def service_of(
    server: TmdbServer, store: FakeStore, spool: Spool, clock: FakeClock, stack: ExitStack, **options: Any
) -> TMDBEnrichmentService:
    settings = TmdbSettings(api_url=server.api_url, api_key="k")
    stack.enter_context(patch.object(factory, "SERVICE_REQUESTS_PER_SECOND", 1000))
    client = stack.enter_context(open_online_client(settings))
    service = TMDBEnrichmentService(tmdb_client=client, store=store, spool=spool, clock=clock, **options)
    stack.callback(service.close)
    return service


def ask(service: TMDBEnrichmentService, message: str = ASKED, **more: Any) -> EnrichmentResult:
    return asyncio.run(service.enrich_query(message, **{"kb_prefix": "movie", **WHO, **more}))


def job(clock: FakeClock, **more: Any) -> Job:
    named = dict.fromkeys(("tmdb_endpoint", "extracted_entities", "disambiguation", "conversation_id"))
    asked = {**WHO, "query_text": ASKED, **named, **more}
    return Job(uuid4(), clock.now(), asked)
