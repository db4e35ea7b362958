"""How much Dagster keeps: rows by table, and bytes on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, inspect, text

from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack

_SQLITE = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")


def bytes_of(stack: DagsterStack) -> int:
    """Return the bytes that a stack's history takes: its tables or SQLite files, and what runs printed."""
    folders = [stack.home / "storage"]
    if stack.storage == "sqlite":
        folders += [stack.home / "history", stack.home / "schedules"]
        return sum(_size(folder) for folder in folders)
    with _engine(_postgres(stack)) as engine, engine.connect() as connection:
        # What was deleted is gone once it is vacuumed, as the server does by itself.
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM FULL"))
        tables = connection.execute(
            text(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = :public"
            ).bindparams(public=connection.execute(text("SELECT 'public'::regnamespace::oid")).scalar())
        ).scalar()
    return int(tables or 0) + sum(_size(folder) for folder in folders)


def rows_of(stack: DagsterStack) -> dict[str, int]:
    """Return how many rows each of Dagster's tables has; SQLite's files of single runs are not among them."""
    found: dict[str, int] = {}
    urls = (
        [_postgres(stack)]
        if stack.storage == "postgres"
        else [URL.create("sqlite", database=str(stack.home / path)) for path in _SQLITE]
    )
    for url in urls:
        with _engine(url) as engine, engine.connect() as connection:
            for name in inspect(connection).get_table_names():
                rows = connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar_one()
                found[name] = max(found.get(name, 0), rows)
    return found


def run_files(stack: DagsterStack) -> set[str]:
    """Return the ids of runs that have a SQLite file of their own, or captured output."""
    shards = {path.stem for path in (stack.home / "history" / "runs").glob("*.db")} - {"index"}
    return shards | {path.name for path in (stack.home / "storage").glob("*-*-*-*-*")}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def _engine(url: URL) -> Iterator[Engine]:
    engine = create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _postgres(stack: DagsterStack) -> URL:
    given = stack.environment
    return URL.create(
        "postgresql+psycopg2",
        given["DAGSTER_PG_USERNAME"] or None,
        given["DAGSTER_PG_PASSWORD"] or None,
        given["DAGSTER_PG_HOST"],
        int(given["DAGSTER_PG_PORT"]),
        given["DAGSTER_PG_DB"],
    )
