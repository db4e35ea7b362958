"""Addresses of databases as settings hold them: which are accepted, and the error that explains those that are not."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from douban_pipeline.core.language import terminal_text

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

SCHEMES = {
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "postgresql": "postgresql+psycopg2",
    "sqlite": "sqlite",
}
"""URL prefixes of the backends that `core.database.open_engine` can open."""


class DatabaseError(Exception):
    """The database cannot be used as configured; the message names the setting and the remedy.

    Attributes:
        problem: What is wrong.
        remedy: How to fix it; empty where ``problem`` already says so.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}: {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


def parse_url(url: str, *, setting: str, backends: Collection[str] = tuple(SCHEMES)) -> URL:
    """Return ``url`` as an SQLAlchemy URL.

    Args:
        url: The value of ``setting``.
        setting: The setting's name, for the message.
        backends: Databases that are accepted, of those that `core.database.open_engine` can open.

    Raises:
        DatabaseError: It is not a URL, or names another database.
    """
    # Imported here: most commands that check a setting never connect, and SQLAlchemy is slow to load.
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    *others, last = (SCHEMES[backend] for backend in SCHEMES if backend in backends)
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise DatabaseError(
            terminal_text("{setting} is not an SQLAlchemy URL; expected e.g. {others}://user:password@host/db").format(
                setting=setting, others=(others or [last])[0]
            )
        ) from error
    if parsed.get_backend_name() not in backends:
        expected = f"{', '.join(others)}{terminal_text(' or ')}{last}" if others else last
        named = repr(parsed.get_backend_name())
        raise DatabaseError(
            terminal_text("{setting} names {named}; expected {expected}").format(
                setting=setting, named=named, expected=expected
            )
        )
    # A database alone means the driver that is installed with this package, not SQLAlchemy's own choice.
    return parsed.set(drivername=SCHEMES[parsed.drivername]) if parsed.drivername in SCHEMES else parsed


def refuse_unusable_url(url: str, *, setting: str, backends: Collection[str] = tuple(SCHEMES)) -> None:
    """Raise a ValueError, as settings validators must, if `parse_url` refuses ``url``; an empty ``url`` is accepted."""
    if url:
        try:
            parse_url(url, setting=setting, backends=backends)
        except DatabaseError as error:
            raise ValueError(str(error)) from None
