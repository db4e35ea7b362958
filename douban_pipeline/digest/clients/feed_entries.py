"""Entries of the feeds system as articles, read from its tables: the systems share data, not code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Engine, column, select, table

from douban_pipeline.core.database import reading
from douban_pipeline.core.other_databases import OtherDatabases
from douban_pipeline.digest.types import FoundArticle

EVERY = "*"
"""Placeholder for all sources."""
FEEDS_SETTING = "DOUBAN_PIPELINE_FEEDS_DATABASE_URL"
"""The variable that names the database."""
_MOST = 2000
_SHORT = 200
"""Characters below which summaries of different entries may be equal, such as 阅读全文."""

_source = table("feed_source", column("source_id"), column("title"), column("url"), column("state"))
_entry = table(
    "feed_entry",
    *(column(name) for name in ("source_id", "guid_hash", "link", "title", "summary", "published_at", "dated")),
)


class NoFeeds(Exception):  # noqa: N818 (the name states the problem)
    """The tables of feeds do not exist in the configured database."""


def database(others: OtherDatabases, url: str) -> Engine:
    """Return the engine for the feeds system's tables.

    Raises:
        NoFeeds: There are no such tables.
        DatabaseError: The URL cannot be used.
        SQLAlchemyError: The database does not answer.
    """
    engine = others.engine_with(_source, url, setting=FEEDS_SETTING)
    if engine is None:
        raise NoFeeds(f"没有 feeds 的表：检查 {FEEDS_SETTING}，或先 feeds setup")
    return engine


def sources(engine: Engine, wanted: Sequence[str]) -> dict[str, str]:
    """Return the existing ones of the wanted sources, by id, with their names."""
    query = select(_source.c.source_id, _source.c.title, _source.c.url)
    if EVERY not in wanted:
        query = query.where(_source.c.source_id.in_(wanted))
    with reading(engine) as connection:
        return {row.source_id: row.title or row.url for row in connection.execute(query)}


def entries(
    engine: Engine, source_id: str, name: str, since: datetime, until: datetime | None = None
) -> list[FoundArticle]:
    """Return a source's entries published since a moment, and until another if one is given, newest first.

    Their summaries are the articles' texts, with the title before a short one.
    """
    within = [_entry.c.source_id == source_id, _entry.c.published_at >= int(since.timestamp())]
    within += [_entry.c.published_at <= int(until.timestamp())] if until is not None else []
    query = select(_entry).where(*within).order_by(_entry.c.published_at.desc()).limit(_MOST)
    with reading(engine) as connection:
        rows = connection.execute(query).all()
    return [
        FoundArticle(
            external_id=f"feed:{source_id}:{row.guid_hash[:32]}",
            mp_id=f"feed:{source_id}",
            mp_name=name,
            title=row.title,
            url=row.link,
            description=row.summary,
            published_at=datetime.fromtimestamp(row.published_at, UTC),
            text=row.summary if len(row.summary) >= _SHORT else f"{row.title}\n{row.summary}".strip(),
        )
        for row in rows
    ]
