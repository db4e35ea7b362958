"""Reads TMDB's titles of the library's videos from the tables of the TMDB system; writes nothing there.

The tables are the interface: the schema ``tmdb`` as that system's migrations create it. Only confirmed links are used,
whether its gate or a person confirmed them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Engine, Select, Text, and_, cast, column, func, literal, select, table
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.cms.numbers import year_of
from douban_pipeline.core.database import chunks, open_engine, reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.douban.evidence.added_facts import MOST_ACTORS, TitleFacts

_CHINESE = ("CN", "SG", "TW", "HK")
"""Regions whose alternative titles come first, in this order."""
_SPOKEN = ("zh", "en")
"""Languages of the translations that are read: Douban has few others."""
_MOST_DIRECTORS = 5


class _Tables(NamedTuple):
    media_type: str
    title: str
    name: str
    day: str
    translations: str
    owner: str


_TABLES = (
    _Tables("movie", "movies", "title", "release_date", "movie_translations", "tmdb_movie_id"),
    _Tables("tv", "tv_shows", "name", "first_air_date", "tv_translations", "tmdb_tv_id"),
)


class TmdbUnreachableError(Exception):
    """TMDB's database cannot be read; the message says why, without its password.

    Attributes:
        again: Whether an earlier attempt had failed, so that no new one was made.
    """

    def __init__(self, why: str, *, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


class TmdbTitles:
    """TMDB's titles of the library's videos.

    After a failure the database is not queried again: the runs of a shard are short, and every attempt may take as long
    as the connection timeout.

    Args:
        url: The PostgreSQL that holds the schema ``tmdb``.
        setting: Name of the environment variable that holds ``url``, for messages.
    """

    def __init__(self, url: str, *, setting: str) -> None:
        self._url = url
        self._setting = setting
        self._engine: Engine | None = None
        self.problem = ""

    def of(self, vod_ids: Sequence[int]) -> dict[int, TitleFacts]:
        """Return the TMDB titles of ``vod_ids``, by video; videos without a link are left out.

        Raises:
            TmdbUnreachableError: The database cannot be read, or could not be read earlier.
        """
        if self.problem:
            raise TmdbUnreachableError(self.problem, again=True)
        try:
            if self._engine is None:
                self._engine = open_engine(self._url, setting=self._setting)
            found: dict[int, TitleFacts] = {}
            with reading(self._engine) as connection:
                for tables in _TABLES:
                    for some in chunks(list(vod_ids)):
                        for row in connection.execute(_query(tables, some)).mappings():
                            found[row["vod_id"]] = title_facts(tables.media_type, row)
        except (SQLAlchemyError, DatabaseError) as error:
            cause = getattr(error, "orig", None) or error
            self.problem = f"{self._setting}: {str(cause).strip()[:300]}"
            raise TmdbUnreachableError(self.problem) from error
        return found

    def close(self) -> None:
        """Close the connections."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None


def _query(tables: _Tables, vod_ids: Sequence[int]) -> Select[Any]:
    link = table(
        "vod_link", *map(column, ("media_type", "state", "tmdb_id")), column("vod_id", BigInteger), schema="tmdb"
    )
    names = ("tmdb_id", tables.name, f"original_{tables.name}", tables.day, "data_state", "gone_at", "fetched_at")
    title = table(tables.title, *map(column, names), column("raw", JSONB), schema="tmdb")
    spoken = table(
        tables.translations,
        *(column(tables.owner), column("language", Text), column(tables.name), column("fetched_at")),
        schema="tmdb",
    )
    raw = title.c.raw
    of_title = (
        spoken.c[tables.owner] == title.c.tmdb_id,
        spoken.c[tables.name].is_not(None),
        func.split_part(spoken.c.language, "-", 1).in_(_SPOKEN),
    )
    translated = (
        select(spoken.c[tables.name])
        .where(*of_title)
        .order_by(spoken.c.language.desc())
        .correlate(title)
        .scalar_subquery()
    )
    oldest = select(func.min(spoken.c.fetched_at)).where(*of_title).correlate(title).scalar_subquery()

    def part(path: str) -> Any:
        return func.jsonb_path_query_array(raw, cast(literal(path), JSONPATH), type_=JSONB)

    most = MOST_ACTORS - 1
    return (
        select(
            link.c.vod_id,
            title.c.tmdb_id,
            title.c[tables.name].label("name"),
            title.c[f"original_{tables.name}"].label("original_name"),
            title.c[tables.day].label("day"),
            func.array(translated).label("translated"),
            part("$.alternative_titles.*[*]").label("alternative"),
            part("$.translations.translations[*]").label("translations"),
            func.coalesce(raw["imdb_id"].astext, raw["external_ids"]["imdb_id"].astext).label("imdb_id"),
            part('$.credits.crew[*] ? (@.job == "Director")').label("directors"),
            part(f"$.credits.cast[0 to {most}]").label("cast"),
            part(f"$.aggregate_credits.cast[0 to {most}]").label("regulars"),
            raw["seasons"].label("seasons"),
            func.least(title.c.fetched_at, oldest).label("said_at"),
        )
        .join_from(link, title, and_(title.c.tmdb_id == link.c.tmdb_id, link.c.media_type == tables.media_type))
        .where(link.c.state == "confirmed", link.c.vod_id.in_(vod_ids))
        .where(title.c.data_state == "full", title.c.gone_at.is_(None))
    )


def title_facts(media_type: str, row: Mapping[Any, Any]) -> TitleFacts:
    """Return the facts of a row of the query; missing or malformed values are unknown."""
    serial = media_type == "tv"
    seasons = {
        item["season_number"]: _year(item.get("air_date"))
        for item in _items(row["seasons"])
        if serial and isinstance(item.get("season_number"), int) and item["season_number"] > 0
    }
    return TitleFacts(
        key=f"{media_type}/{row['tmdb_id']}",
        names=tuple(dict.fromkeys(_names(row, "name" if serial else "title"))),
        year=_year(row["day"]),
        directors=() if serial else tuple(_people(row["directors"]))[:_MOST_DIRECTORS],
        actors=tuple(_people(row["cast"]) or _people(row["regulars"])),
        imdb_id=row["imdb_id"] or "",
        seasons=seasons,
        said_at=row["said_at"],
    )


def _names(row: Mapping[Any, Any], name: str) -> Iterator[str]:
    """Yield the names of a title: in the base language, other Chinese names, the original, then English."""
    alternative = _items(row["alternative"])
    regions = [item.get("iso_3166_1") for item in alternative]
    titles = [item.get("title") for item in alternative]
    chinese = [text for place in _CHINESE for text, region in zip(titles, regions, strict=True) if region == place]
    said = [item for item in _items(row["translations"]) if item.get("iso_639_1") in _SPOKEN]
    data = [(item["iso_639_1"], item["data"].get(name)) for item in said if isinstance(item.get("data"), Mapping)]
    for text in (
        row["name"],
        *chinese,
        *(text for language, text in data if language == "zh"),
        *(row["translated"] or ()),
        row["original_name"],
        *(text for language, text in data if language == "en"),
        *titles,
    ):
        if isinstance(text, str) and text.strip():
            yield text.strip()


def _people(items: object) -> list[str]:
    """Return the names of people in credits, with their names in their own language."""
    names = [item.get(key) for item in _items(items) for key in ("name", "original_name")]
    return list(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))


def _items(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _year(value: object) -> int | None:
    if isinstance(value, date):
        return value.year
    return year_of(value[:10]) if isinstance(value, str) else None
