"""The matcher's input: a local video and a Douban subject, as plain values.

The caller has already unescaped HTML, split lists and dropped placeholders (未知, 内详, ``0``). An empty field
therefore always means "unknown", never "known to be empty".
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """Kind of a work. Film excludes series and variety; the last three kinds do not imply a format."""

    FILM = "film"
    SERIES = "series"
    VARIETY = "variety"
    ANIMATION = "animation"
    DOCUMENTARY = "documentary"
    SHORT = "short"


@dataclass(frozen=True, slots=True)
class Video:
    """A local video as the matcher sees it.

    Attributes:
        vod_id: The CMS's key.
        title: The name as the site writes it, uncleaned.
        aliases: Other names, already split.
        year: The year the site gives, if any.
        kind: The kind that the site's category implies.
        regions: Region words in any vocabulary.
        languages: Language words in any vocabulary.
        directors: Names, without placeholders.
        actors: Names, without placeholders.
        genres: Genre words, possibly with the category's name among them.
        duration_minutes: Length of the film or of one episode.
        episodes: Episodes of the finished series, never the number reached so far.
        remarks: The badge text (更新至12集, HD).
    """

    vod_id: int
    title: str
    aliases: tuple[str, ...] = ()
    year: int | None = None
    kind: Kind | None = None
    regions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    directors: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    genres: tuple[str, ...] = ()
    duration_minutes: int | None = None
    episodes: int | None = None
    remarks: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A Douban entry as the matcher sees it.

    Attributes:
        douban_id: Douban's key.
        title: Its Chinese title.
        original_title: Its title in the original language, may equal ``title``.
        aliases: 又名, with or without their ``(港)`` and ``(台)`` tails.
        year: Douban's own year field: a season's own year, a film's first release.
        release_years: Years of all release dates, re-releases among them.
        kind: Film, series …
        regions: Region words.
        languages: Language words.
        directors: Names.
        actors: Names, the leading ones first.
        genres: Genre words.
        duration_minutes: Length of the film or of one episode.
        episodes: Number of episodes.
        rating: Douban's score, None while there is none.
        votes: Number of ratings, None when unknown. Used only to order equal scores, not as evidence.
        serial: Whether the source of the entry states that it has episodes; None when unknown.
        fetched: Whether the facts are Douban's own answer. If not, they come from a search hit: a title, perhaps the
            original title, a year, a kind.
    """

    douban_id: int
    title: str
    original_title: str = ""
    aliases: tuple[str, ...] = ()
    year: int | None = None
    release_years: tuple[int, ...] = ()
    kind: Kind | None = None
    regions: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    directors: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    genres: tuple[str, ...] = ()
    duration_minutes: int | None = None
    episodes: int | None = None
    rating: float | None = None
    votes: int | None = None
    serial: bool | None = None
    fetched: bool = True
