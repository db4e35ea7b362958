"""An embedded library: the CMS's tables, filled with videos in the CMS's own format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from douban_pipeline.demo.cms_schema import (
    TYPE_COLUMNS,
    VOD_COLUMNS,
    CmsColumn,
    Form,
    checked_prefix,
    mysql_ddl,
    sqlite_ddl,
)

_BATCH = 500
_ENTITIES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#039;"}


class LibraryError(Exception):
    """The database already holds another library; the message gives the remedy."""


def each_by_itself(engine: sa.Engine) -> sa.Engine:
    """Return an engine that commits each statement on MySQL: the CMS's tables have no transactions there, and a server
    with GTIDs, which is the newest one's default, refuses a transaction of several statements that writes into them.
    """
    mysql = engine.dialect.name in ("mysql", "mariadb")
    return engine.execution_options(isolation_level="AUTOCOMMIT") if mysql else engine


def create_library(
    engine: sa.Engine,
    videos: Iterable[Mapping[str, Any]],
    types: Iterable[Mapping[str, Any]],
    prefix: str = "mac_",
    form: Form = "head",
) -> int:
    """Create the CMS's tables in ``engine`` (SQLite, MariaDB or MySQL) and fill them; return the number of new videos.

    Safe to repeat: a library with all of ``videos`` is not changed, even if it was written to since; an incomplete one
    gets the missing rows. Existing rows are never changed.

    Args:
        engine: The database.
        videos: Rows as column → value, including `vod_id`, text **unescaped**. Missing columns get the CMS's defaults.
            Columns that an existing or classic table lacks are dropped.
        types: Rows of `mac_type` in the same form, e.g. `default_types()`.
        prefix: Table prefix.
        form: Which form to create; an existing table keeps its form.

    Raises:
        LibraryError: The tables contain other videos and lack some of ``videos``. The demo must never
            insert its sample into a real site.
        ValueError: A row has no id, has an id twice, or names a column that no release of the CMS has.
    """
    stored_videos = _stored(videos, VOD_COLUMNS)
    stored_types = _stored(types, TYPE_COLUMNS)
    ids = _ids(stored_videos, "vod_id")
    _ids(stored_types, "type_id")
    checked_prefix(prefix)
    with each_by_itself(engine).begin() as connection:
        mysql = engine.dialect.name in ("mysql", "mariadb")
        for statement in mysql_ddl(prefix, form) if mysql else sqlite_ddl(prefix, form):
            connection.exec_driver_sql(statement)
        present = _present(connection, f"{prefix}vod", "vod_id")
        if ids <= present:
            missing: set[int] = set()
        elif present <= ids:
            missing = ids - present
        else:
            raise LibraryError(
                f"{prefix}vod in {engine.url.render_as_string(hide_password=True)} already holds "
                f"{len(present - ids)} other videos: nothing was inserted; choose an empty database"
            )
        if missing or not present:
            # Types come first: if all videos exist, all types exist.
            known_types = _present(connection, f"{prefix}type", "type_id")
            _insert(connection, f"{prefix}type", [row for row in stored_types if row["type_id"] not in known_types])
        _insert(connection, f"{prefix}vod", [row for row in stored_videos if row["vod_id"] in missing])
    return len(missing)


def escape_as_cms(text: str, width: int | None = None) -> str:
    """Return ``text`` as the CMS stores it: PHP's ``htmlspecialchars(ENT_QUOTES)``, truncated to ``width`` characters.

    maccms 10 truncates after escaping, so an entity or a name may be split.
    """
    return text.strip().translate(_ENTITIES)[:width]


def _stored(rows: Iterable[Mapping[str, Any]], columns: Sequence[CmsColumn]) -> list[dict[str, Any]]:
    known = {column.name: column for column in columns}
    defaults = {column.name: column.fallback for column in columns}
    stored = []
    for row in rows:
        unknown = sorted(set(row) - set(known))
        if unknown:
            raise ValueError(f"no release of the CMS has the column(s) {', '.join(unknown)}")
        stored.append(defaults | {name: _value(known[name], value) for name, value in row.items()})
    return stored


def _value(column: CmsColumn, value: Any) -> Any:
    # Only short text is escaped: content, play lists and the JSON of type_extend are stored unescaped.
    return escape_as_cms(value, column.width) if isinstance(value, str) and column.width else value


def _ids(rows: Sequence[Mapping[str, Any]], key: str) -> set[int]:
    ids = {int(row[key]) for row in rows}
    if 0 in ids:
        raise ValueError(f"a row has no {key}: without one a second call could not recognise it")
    if len(ids) < len(rows):
        raise ValueError(f"{len(rows) - len(ids)} row(s) share a {key} with another")
    return ids


def _present(connection: sa.Connection, table: str, key: str) -> set[int]:
    return set(connection.execute(sa.select(sa.column(key)).select_from(sa.table(table))).scalars())


def _insert(connection: sa.Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    names = [column["name"] for column in sa.inspect(connection).get_columns(table)]
    names = [name for name in names if name in rows[0]]
    statement = sa.insert(sa.table(table, *(sa.column(name) for name in names)))
    for start in range(0, len(rows), _BATCH):
        connection.execute(statement, [{name: row[name] for name in names} for row in rows[start : start + _BATCH]])
