"""The least privileges that the pipeline's database account needs, and a check for missing ones."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Engine, Table, delete, insert, select, update
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.sql.dml import UpdateBase

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.core.database import reading
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

_DENIED = (1044, 1142, 1143)
_INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's SQLSTATE; its errors have no numbers."""


def written_columns(settings: Settings) -> list[str]:
    """Return the columns of `mac_vod` that may be written under ``settings``, in a stable order."""
    policies = settings.policies
    intros = SYNOPSIS_COLUMNS if settings.ai_intros else ()
    return ["vod_douban_id", *(name for name in policies if policies[name] != "never" or name in intros)]


def grant_statements(settings: Settings, tables: OwnTables, *, database: str, user: str, host: str) -> list[str]:
    """Return the statements that create an account with exactly the privileges that the pipeline needs.

    Args:
        settings: Their field policies determine which columns may be written.
        tables: Our tables, whose privileges include creating and altering them.
        database: The CMS's database.
        user, host: The account, as MySQL names it; the person who runs the statements must set its password.
    """
    prefix, account = settings.table_prefix, f"{_text(user)}@{_text(host)}"
    columns = ", ".join(_name(column) for column in written_columns(settings))
    own = sorted(table.name for table in tables.metadata.sorted_tables)
    return [
        # A comment, so that running this unchanged does not create an account with a known password.
        f"-- CREATE USER {account} IDENTIFIED BY '<password>';",
        f"GRANT SELECT ON {_name(database)}.{_name(f'{prefix}type')} TO {account};",
        f"GRANT SELECT, UPDATE ({columns}) ON {_name(database)}.{_name(f'{prefix}vod')} TO {account};",
        *table_grants((*own, migrations.version_table(prefix)), database=database, user=user, host=host),
    ]


def table_grants(tables: Iterable[str], *, database: str, user: str, host: str) -> list[str]:
    """Return the statements that allow an account to create, alter, read and write ``tables``."""
    return [grant("ALL", database, table, user=user, host=host) for table in tables]


def grant(rights: str, database: str, table: str, *, user: str, host: str) -> str:
    """Return the statement that grants ``rights``, such as ``SELECT, UPDATE (comment_up)``, on one table."""
    return f"GRANT {rights} ON {_name(database)}.{_name(table)} TO {_text(user)}@{_text(host)};"


def server_grant(rights: str, *, user: str, host: str) -> str:
    """Return the statement that grants ``rights`` that exist only for the whole server."""
    return f"GRANT {rights} ON *.* TO {_text(user)}@{_text(host)};"


def missing_grants(engine: Engine, settings: Settings, tables: OwnTables, cms: Cms) -> list[str]:
    """Return the privileges this account lacks, each as ``UPDATE (vod_year) ON mac_vod``; empty when none.

    The server explains statements, which requires the same privileges as executing them; nothing is executed.
    """
    if engine.dialect.name == "sqlite":
        return []
    wanted: list[tuple[str, UpdateBase]] = [
        (f"UPDATE ({column}) ON {cms.vod.name}", update(cms.vod).values({column: cms.vod.c[column]}))
        for column in written_columns(settings)
    ]
    missing = [right for right, statement in wanted if not _allowed(engine, statement)]
    return [*missing, *missing_table_grants(engine, tables.metadata.sorted_tables)]


def missing_table_grants(engine: Engine, tables: Iterable[Table]) -> list[str]:
    """Return the write privileges on ``tables`` that this account lacks, each as ``INSERT ON feed_entry``."""
    wanted = [(f"{verb} ON {table.name}", statement) for table in tables for verb, statement in _writes(table)]
    return [right for right, statement in wanted if not _allowed(engine, statement)]


def _writes(table: Table) -> list[tuple[str, UpdateBase]]:
    first = next(iter(table.c))
    columns = [column.name for column in table.c]
    return [
        ("INSERT", insert(table).from_select(columns, select(table), include_defaults=False)),
        ("UPDATE", update(table).values({first: first})),
        ("DELETE", delete(table)),
    ]


def _allowed(engine: Engine, statement: UpdateBase) -> bool:
    compiled = statement.compile(dialect=engine.dialect)
    try:
        with reading(engine) as connection:
            connection.exec_driver_sql(f"EXPLAIN {compiled}")
    except (OperationalError, ProgrammingError) as error:
        arguments = error.orig.args if error.orig is not None else ()
        if (arguments and arguments[0] in _DENIED) or getattr(error.orig, "pgcode", "") == _INSUFFICIENT_PRIVILEGE:
            return False
        raise
    return True


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
