"""Databases of other systems, read by table: a setting names where that system keeps its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, TableClause, inspect

from douban_pipeline.core.database import open_engine, parse_url, reading
from douban_pipeline.douban.services import Services


@contextmanager
def database_with(services: Services, table: TableClause, url: str, *, setting: str) -> Iterator[Engine | None]:
    """Give the database that holds a table of another system; None where the table does not exist.

    A file that does not exist is not created.

    Args:
        services: The library's; its engine is given where ``url`` is the library's own.
        table: The other system's table.
        url: Where that system's tables are.
        setting: The variable that names the database, for messages.

    Raises:
        DatabaseError: The URL cannot be used.
        SQLAlchemyError: The database does not answer.
    """
    if url == services.settings.library_url:
        yield services.engine if _has(services.engine, table) else None
        return
    place = parse_url(url, setting=setting)
    if place.get_backend_name() == "sqlite" and not Path(place.database or "").is_file():
        yield None
        return
    engine = open_engine(url, setting=setting)
    try:
        yield engine if _has(engine, table) else None
    finally:
        engine.dispose()


def _has(engine: Engine, table: TableClause) -> bool:
    with reading(engine) as connection:
        return inspect(connection).has_table(table.name)
