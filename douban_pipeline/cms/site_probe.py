"""What a database says of itself before anything is set up: server, account, and the CMS's tables in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.server_version import server_name

_ACCESS_DENIED, _DATABASE_DENIED, _NO_DATABASE = 1045, 1044, 1049
_UNREACHABLE = (2002, 2003, 2005, 2013)


class NoRightsError(DatabaseError):
    """The account may not use the database at all."""


@dataclass(frozen=True, slots=True)
class CmsTables:
    """The tables of one CMS.

    Attributes:
        prefix: The tables' prefix.
        videos: Rows of its table of videos, as the server estimates them.
        engine, collation: Of that table.
    """

    prefix: str
    videos: int
    engine: str
    collation: str


@dataclass(frozen=True, slots=True)
class SiteProbe:
    """A database.

    Attributes:
        server: Name and version.
        account: The account as the server knows it, ``user@host``.
        sites: The CMSs whose tables the account sees, by prefix.
        has_innodb: Whether our own tables can be there.
    """

    server: str
    account: str
    sites: Sequence[CmsTables]
    has_innodb: bool


def probe_site(engine: Engine) -> SiteProbe:
    """Ask the database; nothing is changed.

    Raises:
        DatabaseError: It cannot be used; the message says why, and what to do.
    """
    shown = engine.url.render_as_string(hide_password=True)
    try:
        with reading(engine) as connection:
            return _probe(connection)
    except OperationalError as error:
        number = error.orig.args[0] if error.orig is not None and error.orig.args else 0
        kind = NoRightsError if number == _DATABASE_DENIED else DatabaseError
        raise kind(*_explained(number, shown, str(engine.url.database or ""), str(error.orig))) from error


def _explained(number: object, shown: str, database: str, why: str) -> tuple[str, str]:
    """Return what is wrong and what to do."""
    if number == _ACCESS_DENIED:
        return (
            terminal_text("{shown}: the server refuses this user or password").format(shown=shown),
            terminal_text("check both; the account has to be made first: CREATE USER … IDENTIFIED BY …"),
        )
    if number == _DATABASE_DENIED:
        return (
            terminal_text("{shown}: the account has no rights in the database {database}").format(
                shown=shown, database=database
            ),
            terminal_text("run the statements above as the database's administrator"),
        )
    if number == _NO_DATABASE:
        return (
            terminal_text("{shown}: there is no database {database}").format(shown=shown, database=database),
            terminal_text("the CMS's file application/database.php names it"),
        )
    if number in _UNREACHABLE:
        return (
            terminal_text("{shown} cannot be reached ({why})").format(shown=shown, why=why),
            terminal_text("check host and port, and that the server runs"),
        )
    return terminal_text("{shown} cannot be read ({why})").format(shown=shown, why=why), ""


def _probe(connection: Connection) -> SiteProbe:
    server = server_name(connection)
    if connection.dialect.name == "sqlite":
        return SiteProbe(server, "", (), True)
    account = connection.exec_driver_sql("SELECT CURRENT_USER()").scalar_one()
    tables = text(
        "SELECT t.table_name AS name, t.table_rows AS videos, t.engine AS engine, t.table_collation AS collation_name "
        "FROM information_schema.tables t JOIN information_schema.columns c "
        "ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_name = 'vod_play_url' "
        "WHERE t.table_schema = DATABASE() AND t.table_name LIKE '%vod' ORDER BY t.table_name"
    )
    sites = [
        CmsTables(row.name.removesuffix("vod"), row.videos or 0, row.engine or "", row.collation_name or "")
        for row in connection.execute(tables)
    ]
    innodb = text("SELECT COUNT(*) FROM information_schema.engines WHERE engine = 'InnoDB' AND support <> 'NO'")
    return SiteProbe(server, account, sites, bool(connection.execute(innodb).scalar_one()))
