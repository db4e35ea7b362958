"""Payloads of the enrichment service as answers, and the filter for those older than the stored answers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection

from douban_pipeline.tmdb.answers import TmdbRequest, language_of, payload_of, read_answer
from douban_pipeline.tmdb.projection import key_of
from douban_pipeline.tmdb.store.entities import EntityAnswer, EntityWriter, prepare
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityType, PayloadError
from douban_pipeline.tmdb.values import moment_of

_logger = logging.getLogger(__name__)


def answers_of(payloads: Iterable[Mapping[str, Any]], language: str) -> Iterator[EntityAnswer]:
    """Yield payloads as answers, in ``language`` if they name none; invalid ones are left out with a warning."""
    now = datetime.now(UTC)
    for payload in payloads:
        try:
            entity, data, own = payload_of(payload)
            fetched_at = min(now, moment_of(payload.get("fetched_at")) or now)
            answer = EntityAnswer(entity, data, own or language_of(language) or language, fetched_at)
            prepare(answer)
        except PayloadError as error:
            _logger.warning("a payload of TMDB is left out: %s", error)
            continue
        yield answer


def named_in(writer: EntityWriter, path: str, bodies: Iterable[Any], beside: EntityAnswer) -> None:
    """Insert stubs of the entities in the answers of a search or discovery, given at the time of another answer."""
    pages = [page for body in bodies for page in (body if isinstance(body, list) else [body])]
    for page in pages:
        items: dict[EntityType, list[Mapping[str, Any]]] = {}
        for mention in read_answer(TmdbRequest(path, {}), 200, page).mentions:
            items.setdefault(mention.type, []).append(mention.item)
        for entity, some in sorted(items.items()):
            writer.mention(entity, some, beside.language, beside.fetched_at)


def without_outdated(connection: Connection, answers: Sequence[EntityAnswer]) -> list[EntityAnswer]:
    """Return the answers without those for which the store has newer ones in the same language."""
    outdated: set[int] = set()
    for entity in EntityType:
        own = {key_of(entity, each.raw).tmdb_id: each for each in answers if each.entity is entity}
        if not own:
            continue
        for tmdb_id, language, fetched_at in connection.execute(TABLES[entity].fetched, {"ids": sorted(own)}):
            if own[tmdb_id].language == language and own[tmdb_id].fetched_at < fetched_at:
                outdated.add(id(own[tmdb_id]))
    return [each for each in answers if id(each) not in outdated]
