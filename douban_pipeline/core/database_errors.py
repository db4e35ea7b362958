"""Errors of databases, and what they mean to an operator: the setting, its value without the password, the remedy."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text

_ASKED = "douban_pipeline_asked"
"""Attribute of an error: the setting of its database, and the URL."""
_MYSQL_CUT = frozenset({1053, 1077, 1927, 2002, 2003, 2006, 2013, 2014, 2055})
"""Server shutting down, connection killed, cannot connect, gone away, lost during query."""
_LONGEST = 300


def is_cut(error: DBAPIError) -> bool:
    """Return whether a statement failed because the connection was cut or could not be opened."""
    if error.connection_invalidated:
        return True
    original = error.orig
    if isinstance(original, sqlite3.Error) or original is None:
        return False
    if getattr(original, "pgcode", "") is None:  # psycopg2 without an answer from the server
        return isinstance(error, OperationalError | InterfaceError)
    return bool(original.args) and original.args[0] in _MYSQL_CUT


def note_setting(engine: Engine, setting: str) -> Engine:
    """Have each error of an engine name the setting of its URL, for `asked_database`."""
    asked = setting, engine.url.render_as_string(hide_password=True)

    @event.listens_for(engine, "handle_error")
    def note(context: ExceptionContext) -> None:
        vars(context.sqlalchemy_exception or context.original_exception)[_ASKED] = asked

    return engine


def asked_database(error: BaseException) -> tuple[str, str]:
    """Return the setting of the database that an error comes from, and its URL without the password."""
    found: tuple[str, str] = vars(error).get(_ASKED, ("", ""))
    return found


@dataclass(frozen=True, slots=True)
class Meaning:
    """A kind of error: the codes of MariaDB and PostgreSQL, or words of the message; and its texts."""

    codes: Sequence[int | str]
    words: str
    problem: Callable[[], str]
    remedy: Callable[[], str]


_MEANINGS = (
    Meaning(
        (1045, 1698, "28P01", "28000"),
        "authentication failed|no password supplied|Access denied for user '[^']*'@'[^']*' \\(using",
        lambda: terminal_text("the server refuses the account"),
        lambda: terminal_text("correct user and password in {setting}"),
    ),
    Meaning(
        (1049, "3D000"),
        'database "[^"]*" does not exist|unable to open database file|not a database',
        lambda: terminal_text("there is no such database"),
        lambda: terminal_text("create it, or correct its name in {setting}"),
    ),
    Meaning(
        (1044, 1142, 1143, 1227, "42501"),
        "readonly database",
        lambda: terminal_text("the account lacks a right"),
        lambda: terminal_text("run what {command} prints, as the database's owner").format(
            command="`douban-pipeline grants`"
        ),
    ),
    Meaning(
        (1146, 1054, "42P01", "42703"),
        "no such (table|column)",
        lambda: terminal_text("a table or a column is missing"),
        lambda: terminal_text("run `douban-pipeline check`, which says what is missing and what to do"),
    ),
    Meaning(
        (1021, 1114, "53100"),
        "disk is full",
        lambda: terminal_text("the disk is full"),
        lambda: terminal_text("free some space where the database's files are"),
    ),
)


_SILENT = Meaning(
    (),
    "",
    lambda: terminal_text("the server does not answer"),
    lambda: terminal_text("check {setting} and that the server runs"),
)
_OTHER = Meaning(
    (),
    "",
    lambda: terminal_text("the database refuses a statement"),
    lambda: terminal_text("run `douban-pipeline check`, which says what is missing and what to do"),
)


def meanings() -> Sequence[Meaning]:
    """Return every kind of error."""
    return (_SILENT, *_MEANINGS, _OTHER)


def explained(error: DBAPIError) -> DatabaseError:
    """Return an error of a database as a sentence about its setting, with a remedy."""
    setting, url = asked_database(error)
    original = error.orig
    arguments = original.args if original is not None else ()
    code = getattr(original, "pgcode", None) or (arguments[0] if arguments and isinstance(arguments[0], int) else None)
    said = str(arguments[1] if isinstance(code, int) and len(arguments) > 1 else original or error)
    why = " ".join(said.split())[:_LONGEST]
    otherwise = _SILENT if is_cut(error) else _OTHER
    meaning = next((each for each in _MEANINGS if code in each.codes or re.search(each.words, said)), otherwise)
    return DatabaseError(f"{setting} = {url}: {meaning.problem()} ({why})", meaning.remedy().format(setting=setting))
