"""The CMS's own tables `mac_vod` and `mac_type`, accessed by column name.

Releases differ (82 columns until 2025, 87 in 2026) and sites add their own, so nothing relies on a column's
position, and optional columns are checked for. Text in these tables is HTML-escaped; `values` holds the
conventions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    cast,
    column,
    exists,
    false,
    inspect,
    literal,
    select,
    text,
    true,
)
from sqlalchemy.exc import NoSuchTableError, OperationalError
from sqlalchemy.types import BINARY

from douban_pipeline.core.column_types import OneDecimal
from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text

_INTEGERS = (
    "type_id",
    "type_id_1",
    "vod_status",
    "vod_total",
    "vod_isend",
    "vod_lock",
    "vod_level",
    "vod_hits",
    "vod_score_num",
    "vod_score_all",
    "vod_time",
    "vod_time_add",
    "vod_douban_id",
)
_TEXTS = (
    "vod_name",
    "vod_sub",
    "vod_class",
    "vod_tag",
    "vod_pic",
    "vod_actor",
    "vod_director",
    "vod_writer",
    "vod_blurb",
    "vod_remarks",
    "vod_pubdate",
    "vod_serial",
    "vod_area",
    "vod_lang",
    "vod_year",
    "vod_version",
    "vod_state",
    "vod_duration",
    "vod_author",
    "vod_reurl",
    "vod_content",
)
DECIMAL_COLUMNS = ("vod_score", "vod_douban_score")
OPTIONAL_COLUMNS = ("vod_recycle_time",)

READ_COLUMNS = ("vod_id", *_INTEGERS, *_TEXTS, *DECIMAL_COLUMNS)
"""Columns that every release has and the pipeline reads."""

WRITABLE_COLUMNS = frozenset(
    {"vod_total", "vod_douban_id", "vod_score_num", "vod_score_all", *DECIMAL_COLUMNS, *_TEXTS}
    - {"vod_serial", "vod_remarks"}
)
"""The only columns the pipeline may write; all others belong to the CMS."""

MATCH_COLUMNS = ("vod_name", "vod_sub", "vod_year", "vod_area", "vod_director", "vod_actor", "type_id")
"""Columns on which a verdict is based: if one of these changes, the video is judged again."""


@dataclass(frozen=True, slots=True)
class Category:
    """A row of `mac_type`, and what the settings say that it holds; empty where its name says it."""

    type_id: int
    parent_id: int
    name: str
    extend: str
    kind: str = ""


SCREENSHOTS = "vod_pic_screenshot"
_TABLE_DENIED = 1142
"""MySQL's error of an account that may not use a table, whether the table exists or not."""


@dataclass(frozen=True, slots=True)
class Cms:
    """The CMS's tables as found on this site; see `inspect_cms`.

    Attributes:
        vod: `mac_vod` with the columns we use.
        type: `mac_type` with the columns we use.
        widths: Maximum length of each text column of `mac_vod` in characters (absent if large enough to be irrelevant).
        utf8mb3: Text columns of `mac_vod` that cannot hold 4-byte characters.
        screenshots: The column of `mac_vod` with screenshots, never written; None in older releases.
    """

    vod: Table
    type: Table
    widths: dict[str, int]
    utf8mb3: frozenset[str]
    screenshots: ColumnElement[str] | None = None

    @property
    def has_recycle_bin(self) -> bool:
        """Whether this release can put videos into a recycle bin."""
        return "vod_recycle_time" in self.vod.c

    def rows(self, connection: Connection, vod_ids: Sequence[int]) -> dict[int, RowMapping]:
        """Return the rows of ``vod_ids`` that exist, by id."""
        found = connection.execute(select(self.vod).where(self.vod.c.vod_id.in_(vod_ids))).mappings()
        return {row["vod_id"]: row for row in found}

    def stream(
        self, engine: Engine, columns: Iterable[str], *, first: int = 0, last: int | None = None, size: int = 2000
    ) -> Iterator[list[RowMapping]]:
        """Yield ``columns`` of the videos ``first`` < `vod_id` ≤ ``last``, ``size`` at a time, in key order."""
        vod = self.vod
        wanted = [vod.c[name] for name in ("vod_id", *columns)]
        while True:
            query = select(*wanted).where(vod.c.vod_id > first).order_by(vod.c.vod_id).limit(size)
            if last is not None:
                query = query.where(vod.c.vod_id <= last)
            with reading(engine) as connection:
                batch = list(connection.execute(query).mappings())
            if not batch:
                return
            yield batch
            first = batch[-1]["vod_id"]

    def categories(self, connection: Connection, kinds: Mapping[int, str]) -> dict[int, Category]:
        """Return the video categories by id; ``kinds`` is what the settings say that some of them hold."""
        kind = self.type
        rows = connection.execute(select(kind).where(kind.c.type_mid == 1))
        return {
            row.type_id: Category(
                row.type_id, row.type_pid, row.type_name, row.type_extend or "", kinds.get(row.type_id, "")
            )
            for row in rows
        }

    def equals(self, column: str, value: Any, dialect: str) -> ColumnElement[bool]:
        """Return the condition that ``column`` holds exactly ``value``, which may be a bound parameter.

        The CMS's collation treats `Léon` and `leon ` as equal; a conditional write must not.
        """
        stored = self.vod.c[column]
        if value is None:
            return stored.is_(None)
        if isinstance(stored.type, String) and dialect in ("mysql", "mariadb"):
            return cast(stored, BINARY) == cast(
                value if isinstance(value, BindParameter) else literal(value, String()), BINARY
            )
        return stored == value


def _denied_remedy(engine: Engine) -> str:
    """Return what to do where the account may not read the table: the prefixes of those that it sees are named."""
    prefixes = _prefixes(engine)
    if prefixes:
        shown = ", ".join(map(repr, prefixes))
        return terminal_text(
            "the account sees the prefix {shown}: set DOUBAN_PIPELINE_TABLE_PREFIX, or grant the "
            "account what `douban-pipeline grants` prints"
        ).format(shown=shown)
    return terminal_text(
        "check DOUBAN_PIPELINE_TABLE_PREFIX; if it is right, grant the account what `douban-pipeline grants` prints"
    )


def _prefixes(engine: Engine) -> list[str]:
    """Return the prefixes of the tables that may be a CMS's, of those that the account sees."""
    names = inspect(engine).get_table_names()
    return [name.removesuffix("vod") for name in names if name.endswith("_vod") or name == "vod"]


def _prefix_remedy(engine: Engine) -> str:
    """Return the remedy if the CMS's tables are missing, listing the prefixes that exist."""
    prefixes = _prefixes(engine)
    if prefixes:
        shown = ", ".join(map(repr, prefixes))
        return terminal_text("set DOUBAN_PIPELINE_TABLE_PREFIX to the CMS's prefix; there is {shown}").format(
            shown=shown
        )
    return terminal_text(
        "point DOUBAN_PIPELINE_DATABASE_URL at the CMS's database and set "
        "DOUBAN_PIPELINE_TABLE_PREFIX to its prefix, or create the demo library with `make demo`"
    )


def inspect_cms(engine: Engine, prefix: str) -> Cms:
    """Read the definition of the CMS's tables under ``prefix``.

    Raises:
        DatabaseError: The database cannot be reached, or does not belong to a maccms10.
    """
    found: dict[str, dict[str, Any]] = {}
    shown = engine.url.render_as_string(hide_password=True)
    for name in (f"{prefix}vod", f"{prefix}type"):
        try:
            found[name] = {column["name"]: column for column in inspect(engine).get_columns(name)}
        except NoSuchTableError as error:
            raise DatabaseError(
                terminal_text(
                    "there is no table {name} in {shown}, where DOUBAN_PIPELINE_TABLE_PREFIX = "
                    "{prefix!r} was searched for"
                ).format(name=name, shown=shown, prefix=prefix),
                _prefix_remedy(engine),
            ) from error
        except OperationalError as error:
            if error.orig is not None and error.orig.args[:1] == (_TABLE_DENIED,):
                raise DatabaseError(
                    terminal_text(
                        "the account may not read the table {name} in {shown}, where "
                        "DOUBAN_PIPELINE_TABLE_PREFIX = {prefix!r} was searched for"
                    ).format(name=name, shown=shown, prefix=prefix),
                    _denied_remedy(engine),
                ) from error
            raise DatabaseError(
                terminal_text("the CMS's database {shown} cannot be reached ({orig})").format(
                    shown=shown, orig=error.orig
                ),
                terminal_text("check DOUBAN_PIPELINE_DATABASE_URL and that the server runs"),
            ) from error
    columns = found[f"{prefix}vod"]
    missing = [name for name in READ_COLUMNS if name not in columns]
    if missing:
        lacking = ", ".join(missing)
        raise DatabaseError(
            terminal_text("{prefix}vod lacks {lacking}: it is not the table of a maccms10").format(
                prefix=prefix, lacking=lacking
            )
        )
    metadata = MetaData()
    vod = Table(
        f"{prefix}vod",
        metadata,
        Column("vod_id", Integer, primary_key=True),
        *(Column(name, Integer) for name in _INTEGERS),
        *(Column(name, Text if name == "vod_content" else String) for name in _TEXTS),
        *(Column(name, OneDecimal) for name in DECIMAL_COLUMNS),
        *(Column(name, Integer) for name in OPTIONAL_COLUMNS if name in columns),
    )
    kinds = Table(
        f"{prefix}type",
        metadata,
        Column("type_id", Integer, primary_key=True),
        Column("type_pid", Integer),
        Column("type_mid", Integer),
        Column("type_name", String),
        Column("type_extend", Text),
    )
    widths = {name: columns[name]["type"].length for name in _TEXTS if getattr(columns[name]["type"], "length", None)}
    screenshots = column(SCREENSHOTS, Text) if SCREENSHOTS in columns else None
    return Cms(vod, kinds, widths, _narrow_columns(engine, vod.name), screenshots)


def _narrow_columns(engine: Engine, table: str) -> frozenset[str]:
    if engine.dialect.name not in ("mysql", "mariadb"):
        return frozenset()
    query = text(
        "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() "
        "AND table_name = :table AND character_set_name IN ('utf8', 'utf8mb3')"
    )
    with reading(engine) as connection:
        return frozenset(connection.execute(query, {"table": table}).scalars()) & frozenset(_TEXTS)


def in_recycle_bin(row: Mapping[Any, Any]) -> bool:
    """Return whether a row of the CMS is in the recycle bin; a row read without that column is not."""
    return bool(row.get("vod_recycle_time"))


def recycled_condition(cms: Cms, vod_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that the video with this id is in the recycle bin, found by its key."""
    if not cms.has_recycle_bin:
        return false()
    vod = cms.vod.alias("recycled")
    return exists().where(vod.c.vod_id == vod_id, vod.c.vod_recycle_time != 0)


def live_condition(cms: Cms) -> ColumnElement[bool]:
    """Return the condition that a video is not in the recycle bin."""
    return cms.vod.c.vod_recycle_time == 0 if cms.has_recycle_bin else true()
