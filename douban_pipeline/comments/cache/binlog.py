"""Updates lists from the database's binary log instead of the workers' events, so that any writer's change is seen.

One of several workers reads the log, under a lease in Redis; its log position is stored there too, so that another
worker can continue. The log only tells which comments changed; lists are updated from the current rows of the database.
If the log no longer contains the stored position, all lists are dropped once.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Iterator
from threading import Event
from typing import Any

import pymysql
from pymysql.err import MySQLError
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from sqlalchemy import Engine, make_url, select, text
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.comments.cache.list_updates import ListFollower
from douban_pipeline.comments.cache.lists import RedisLists
from douban_pipeline.comments.store import tables
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.errors import ProblemsError

_LOG = logging.getLogger(__name__)
_LEASE_SECONDS = 30
_AT_ONCE = 2000
"""Maximum number of comments that are processed at once; a longer transaction is processed in parts."""
_PLACE, _HOLDER = "binlog", "binlog-holder"
_PLACE_GONE = 1236
_COLUMNS = ("comment_id", "UNKNOWN_COL0")
"""Name of the first column, with and without column names in the log."""


class BinlogReader:
    """Reads the binary log of the server that has the comments' tables.

    Args:
        engine: The database; MariaDB or MySQL with ``binlog_format=ROW``.
        lists: The lists; their Redis also stores the log position.

    Raises:
        ProblemsError: The server has no such log; the message says which settings it needs.
    """

    def __init__(self, engine: Engine, lists: RedisLists, follower: ListFollower, owner: str) -> None:
        self._engine, self._lists, self._follower, self._owner = engine, lists, follower, owner
        self._again: set[int] = set()
        _refuse_unusable(engine)

    def run(self, stopped: Event, pause: float) -> None:
        """Read until ``stopped`` is set; wait ``pause`` seconds after a turn without changes."""
        while not stopped.is_set():
            try:
                seen = self.turn()
            except (MySQLError, SQLAlchemyError) as error:
                _LOG.warning("the binary log cannot be read, lists wait for it: %s", error)
                seen = 0
            if not seen:
                stopped.wait(pause)

    def turn(self) -> int:
        """Read what was written since the last turn; return the number of changed comments.

        Reads nothing without the lease, or while Redis is unavailable.
        """
        if not self._lists.hold(_HOLDER, self._owner, _LEASE_SECONDS):
            return 0
        # The log reports a commit shortly before readers see it: the last changes are processed once more.
        self._follow(self._again)
        self._again = set()
        place = self._place()
        if place is None:
            return 0
        try:
            return self._read(place)
        except MySQLError as error:
            if not error.args or error.args[0] != _PLACE_GONE:
                raise
            _LOG.warning("the binary log no longer goes back to %s: all lists are made anew", place)
            if self._lists.drop_all() is not None:
                self._keep(self._end())
            return 0

    def _read(self, place: tuple[str, int]) -> int:
        seen, touched = 0, set[int]()
        stream = self._stream(place)
        try:
            for found in stream:
                if not isinstance(found, XidEvent):
                    ids = set(_ids(found))
                    touched |= ids
                    seen += len(ids)
                if len(touched) >= _AT_ONCE or isinstance(found, XidEvent):
                    self._follow(touched)
                    self._again |= touched
                    touched = set()
                # A position within a transaction cannot be resumed from.
                if isinstance(found, XidEvent):
                    self._keep((stream.log_file, stream.log_pos))
                    self._lists.hold(_HOLDER, self._owner, _LEASE_SECONDS)
        finally:
            stream.close()
        return seen

    def _stream(self, place: tuple[str, int]) -> Any:
        url = self._engine.url
        given: dict[str, Any] = {"host": url.host or "127.0.0.1", "port": url.port or 3306, "user": url.username or ""}
        given |= {"password": url.password or "", "charset": "utf8mb4"}
        if socket := url.query.get("unix_socket"):
            given["unix_socket"] = socket
        return BinLogStreamReader(
            connection_settings=given,
            # Id of a replica, which must be unique among the replicas.
            server_id=2**30 + secrets.randbelow(2**30),
            blocking=False,
            resume_stream=True,
            log_file=place[0],
            log_pos=place[1],
            only_schemas=[url.database],
            only_tables=[tables.comment.name],
            only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, XidEvent],
            enable_logging=False,
            pymysql_wrapper=_connect,
        )

    def _place(self) -> tuple[str, int] | None:
        """Return the position to resume from: the end of the log at first; None where Redis is unavailable."""
        kept = self._lists.kept(_PLACE)
        if self._lists.away:
            return None
        if kept is None:
            place = self._end()
            # Earlier changes may be missing in existing lists, so these are dropped; new lists contain them.
            if self._lists.drop_all() is None:
                return None
            self._keep(place)
            return place
        found = json.loads(kept)
        return str(found[0]), int(found[1])

    def _keep(self, place: tuple[str, int]) -> None:
        self._lists.keep(_PLACE, json.dumps(place))

    def _end(self) -> tuple[str, int]:
        with reading(self._engine) as connection:
            version = connection.execute(text("SELECT VERSION()")).scalar_one()
            row = connection.execute(text(f"SHOW {status_name(version)} STATUS")).one()
        return str(row[0]), int(row[1])

    def _follow(self, touched: set[int]) -> None:
        if not touched:
            return
        sections: dict[int, set[int]] = {}
        c = tables.comment.c
        with reading(self._engine) as connection:
            for part in chunks(sorted(touched)):
                for row in connection.execute(select(c.comment_id, c.section_id).where(c.comment_id.in_(part))):
                    sections.setdefault(row.section_id, set()).add(row.comment_id)
        for section_id, ids in sections.items():
            self._follower.follow_section(section_id, sorted(ids))


def _connect(**given: Any) -> Any:
    """Connect with the library's arguments, renaming ``db`` to the driver's current name ``database``."""
    if "db" in given:
        given["database"] = given.pop("db")
    return pymysql.connect(**given)


def status_name(version: str) -> str:
    """Return the word of the SHOW … STATUS statement for the log's end in a version: MySQL has a new one since 8.2."""
    numbers = re.findall(r"\d+", version)[:2]
    is_new = "mariadb" not in version.lower() and [int(number) for number in numbers] >= [8, 2]
    return "BINARY LOG" if is_new else "MASTER"


def _ids(found: Any) -> Iterator[int]:
    for row in found.rows:
        values = row.get("before_values") or row["values"]
        yield int(next(values[name] for name in _COLUMNS if name in values))


def _refuse_unusable(engine: Engine) -> None:
    if make_url(engine.url).get_backend_name() not in ("mysql", "mariadb"):
        raise ProblemsError(["DOUBAN_PIPELINE_COMMENTS_FOLLOW=binlog needs MariaDB or MySQL"])
    with reading(engine) as connection:
        query = text("SELECT @@GLOBAL.log_bin, @@GLOBAL.binlog_format")
        kept, kind = connection.execute(query).one()
    if not int(kept) or str(kind).upper() != "ROW":
        raise ProblemsError(
            [
                f"DOUBAN_PIPELINE_COMMENTS_FOLLOW=binlog needs log_bin and binlog_format=ROW, the server has "
                f"log_bin={int(kept)} and {kind}: set them in its configuration, or FOLLOW=events"
            ]
        )
