"""The service over HTTP: ``/tmdb/enrich``, ``/tmdb/movies/ID``, deletions, and ``/metrics`` for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from psycopg import Error as PostgresError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from douban_pipeline.core.counters import Counters
from douban_pipeline.core.errors import NotFound, SourceError
from douban_pipeline.core.guesses import household
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTED, LOGO, LOGO_PATH
from douban_pipeline.tmdb.enrichment.admission import AdmissionRefusal
from douban_pipeline.tmdb.enrichment.known_answers import KnownAnswer
from douban_pipeline.tmdb.enrichment.results import refused
from douban_pipeline.tmdb.enrichment.route import LONGEST_QUESTION
from douban_pipeline.tmdb.enrichment.service import TMDBEnrichmentService
from douban_pipeline.tmdb.enrichment.spool import Spool, SpoolError
from douban_pipeline.tmdb.enrichment.transient import TransientGraphBuilder
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of

_logger = logging.getLogger(__name__)

MOST_BYTES = 16_384
"""Maximum size of a request's body."""


class Choice(BaseModel):
    """The user's choice among earlier candidates."""

    model_config = ConfigDict(extra="forbid")
    media_type: EntityType
    tmdb_id: int = Field(ge=1, le=2**31 - 1)


class EnrichmentRequest(BaseModel):
    """The body of ``POST /tmdb/enrich``; see `TMDBEnrichmentService.enrich_query`."""

    model_config = ConfigDict(extra="forbid")
    message: str = Field(min_length=1, max_length=LONGEST_QUESTION)
    kb_prefix: str = Field("", max_length=64)
    user_id: str | None = Field(None, max_length=200)
    session_id: str | None = Field(None, max_length=200)
    incognito: bool = False
    request_id: str | None = Field(None, max_length=200)
    conversation_id: UUID | None = None
    user_message_id: UUID | None = None
    choice: Choice | None = None
    language: str | None = Field(None, pattern=r"^[a-z]{2}(-[A-Z]{2})?$")


def _after(seconds: int) -> dict[str, str]:
    return {"Retry-After": str(seconds)} if seconds else {}


class RateLimit:
    """Rate limit of questions per client address for which TMDB is asked, in all processes together."""

    def __init__(self, per_minute: int, counters: Counters) -> None:
        self._most = per_minute
        self._counters = counters

    async def wait(self, address: str) -> int:
        """Count a question and return 0, or return the seconds until another is allowed."""
        [count] = await self._counters.add({f"tmdb question:{household(address)}": 60})
        return 0 if count.number <= self._most else count.wait(self._counters.clock.now())


def tmdb_router(
    service: TMDBEnrichmentService, store: PostgresTmdbStore | None, spool: Spool | None, limit: RateLimit
) -> APIRouter:
    """Return the router."""
    return _Api(service, store, spool, limit).router()


class _Api:
    def __init__(
        self,
        service: TMDBEnrichmentService,
        store: PostgresTmdbStore | None,
        spool: Spool | None,
        limit: RateLimit,
    ) -> None:
        self._service = service
        self._store = store
        self._spool = spool
        self._limit = limit
        self._builder = TransientGraphBuilder()

    def router(self) -> APIRouter:
        router = APIRouter()
        router.post("/tmdb/enrich")(self.enrich)
        router.get("/tmdb/movies/{tmdb_id}")(self.movie)
        router.delete("/tmdb/users/{user_id}/requests")(self.forget_user)
        router.delete("/tmdb/conversations/{conversation_id}/requests")(self.forget_conversation)
        router.get(LOGO_PATH)(self.logo)
        router.get("/metrics")(self.metrics)
        return router

    async def enrich(self, request: Request) -> Response:
        """Answer a question."""
        question = await _read(request)
        choice = question.choice
        result = await self._service.enrich_query(
            question.message,
            question.kb_prefix,
            question.user_id,
            question.session_id,
            question.incognito,
            question.request_id,
            question.conversation_id,
            question.user_message_id,
            choice=EntityKey(choice.media_type, choice.tmdb_id) if choice else None,
            language=question.language,
            before_tmdb=lambda: self._refuse_too_often(request),
        )
        if result.retry_after is not None:
            return JSONResponse(result.to_json(), 503, _after(result.retry_after))
        return JSONResponse(result.to_json())

    async def logo(self) -> Response:
        """Return TMDB's logo, to be shown beside its data."""
        return Response(LOGO, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})

    async def movie(self, tmdb_id: str, request: Request) -> Response:
        """Return a film from the store, or from TMDB if the store does not have it or does not answer."""
        key = id_of(int(tmdb_id)) if tmdb_id.isascii() and tmdb_id.isdecimal() and len(tmdb_id) < 11 else None
        if key is None:
            raise HTTPException(404, "没有这样的编号")
        try:
            answer = await self._service.details(
                EntityKey(EntityType.MOVIE, key), before_tmdb=lambda: self._refuse_too_often(request)
            )
        except NotFound:
            raise HTTPException(404, "TMDB 没有这部电影") from None
        except (TimeoutError, SourceError) as error:
            _logger.warning("TMDB gave no answer about movie/%d: %s", key, error)
            raise HTTPException(503, "TMDB 暂时无法回答，请稍后再试", {"Retry-After": "5"}) from None
        if isinstance(answer, AdmissionRefusal):
            raise HTTPException(503, refused(answer), _after(answer.seconds))
        graph = self._builder.build_from_tmdb_payloads([{"type": "movie", "data": answer.raw}])
        return JSONResponse(
            {
                "source": "store" if isinstance(answer, KnownAnswer) else "tmdb",
                "as_of": answer.fetched_at.isoformat(),
                "movie": answer.raw,
                "graph": graph.to_json(),
                **ATTRIBUTED,
            }
        )

    async def forget_user(self, user_id: str) -> Response:
        """Delete all questions of a user, in the queue, the spool and PostgreSQL."""
        return await self._forget(
            lambda: self._service.forget_user(user_id),
            lambda: self._store.delete_user(user_id) if self._store is not None else 0,
        )

    async def forget_conversation(self, conversation_id: UUID) -> Response:
        """Delete the questions of a conversation, in the queue, the spool and PostgreSQL."""
        return await self._forget(
            lambda: self._service.forget_conversation(conversation_id),
            lambda: self._store.delete_conversation(conversation_id) if self._store is not None else 0,
        )

    async def _forget(self, in_spool: Callable[[], int], in_store: Callable[[], int]) -> Response:
        try:
            spooled = await asyncio.to_thread(in_spool)
            deleted = await asyncio.to_thread(in_store)
        except (SpoolError, PostgresError) as error:
            _logger.warning("a deletion is not complete: %s", error)
            raise HTTPException(503, "没有全部删除：存储暂不可用，请稍后重试", {"Retry-After": "30"}) from None
        return JSONResponse({"deleted": deleted, "spooled": spooled})

    async def metrics(self) -> Response:
        """Return the metrics in Prometheus's format."""
        return PlainTextResponse(
            await asyncio.to_thread(self._figures), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    def _figures(self) -> str:
        writer = self._service.writer
        gauges = {"queue_size": writer.waiting if writer else 0, "postgres_down": int(writer.is_down) if writer else 0}
        try:
            waiting, rejected = self._spool.counts() if self._spool is not None else (0, 0)
            gauges |= {"spool_size": waiting, "spool_rejected": rejected, "spool_unusable": 0}
        except SpoolError as error:
            _logger.warning("%s", error)
            gauges["spool_unusable"] = 1
        return self._service.metrics.text(**gauges)

    async def _refuse_too_often(self, request: Request) -> None:
        """Count a question for which TMDB is asked; raise 429 if there were too many from that address."""
        wait = await self._limit.wait(request.client.host if request.client is not None else "")
        if wait:
            raise HTTPException(429, "提问过于频繁，请稍后再试", {"Retry-After": str(wait)})


async def _read(request: Request) -> EnrichmentRequest:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BYTES:
            raise HTTPException(413, f"请求正文超过 {MOST_BYTES} 字节")
    try:
        return EnrichmentRequest.model_validate_json(content)
    except ValidationError as error:
        found = "；".join(f"{'.'.join(map(str, each['loc'])) or '正文'}: {each['msg']}" for each in error.errors()[:5])
        raise HTTPException(422, f"请求不合要求：{found}") from None
