"""The matcher's input: a local video and a Douban subject, as plain values.

Whoever builds these has already unescaped HTML, split lists and dropped placeholders (未知, 内详, ``0``), so an
empty field always means "unknown", never "known to be empty".
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """What a work is. The first three exclude film against the others; the last three say nothing of the format."""

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
        title: The name as the site writes it, with all its dirt.
        aliases: Other names, already split.
        year: The year the site gives, if any.
        kind: What the site's category says.
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
        votes: How many people rated it, None where nobody says. It orders equals and proves nothing.
        serial: Whether the source of the entry says that it has episodes; None where it says nothing.
        fetched: Whether the facts are Douban's own answer. If not they are what a search said of a hit: a title,
            perhaps the original title, a year, a kind.
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
