"""The route of a question: how it is handled, what it names and what it asks about that. Values alone."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from douban_pipeline.tmdb.types import EntityType

LONGEST_QUESTION = 500
_LONGEST_NAME = 80


class Intent(StrEnum):
    """How a question is handled."""

    ENTITY = "entity"
    """It names a title or a person, which is searched."""
    MOVIES = "recommend_movies"
    SERIES = "recommend_tv"
    NONE = "none"
    """Not a question for TMDB."""


class Role(StrEnum):
    """Which of a person's work is requested."""

    DIRECTOR = "director"
    ACTOR = "actor"
    WRITER = "writer"


class Asked(StrEnum):
    """Which fact about what it names a question asks for."""

    ABOUT = "about"
    """Nothing in particular."""
    RATING = "rating"
    YEAR = "year"
    RUNTIME = "runtime"
    CAST = "cast"
    DIRECTOR = "director"
    WRITER = "writer"
    PLOT = "plot"
    GENRES = "genres"
    EPISODES = "episodes"
    """Seasons and episodes."""
    COUNTRY = "country"
    LANGUAGE = "language"
    WORKS = "works"
    """Titles of a person."""
    TOGETHER = "together"
    """Titles that two people have in common."""
    LIKE = "like"
    """Titles of the same genres."""


Years = tuple[int | None, int | None]
"""First and last year; None for no bound."""


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a question.

    Attributes:
        selected_agent: The responsible agent: ``tmdb``, or ``none``.
        query_intent: How it is handled.
        extracted_entities: Names in it, in order.
        titles: Those of them that are marked as titles (《喜宴》).
        role_hint: Whose work is requested.
        year: The year in the question.
        media: Whether it is about films or series, if stated.
        filters: For recommendations: TMDB's filters of discovery.
        asked: The fact that it asks for.
        years: Bounds of the years of a person's work.
        english: Whether it is in English, and so its answer.
        season: Of which season it asks for the episodes.
    """

    selected_agent: str
    query_intent: Intent
    extracted_entities: Sequence[str] = ()
    titles: frozenset[str] = frozenset()
    role_hint: Role | None = None
    year: int | None = None
    media: EntityType | None = None
    filters: Mapping[str, str] = field(default_factory=dict)
    asked: Asked = Asked.ABOUT
    years: Years | None = None
    english: bool = False
    season: int | None = None

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """What two questions have in common whose requests to TMDB are the same."""
        filters = tuple(sorted(self.filters.items()))
        names = (tuple(self.extracted_entities), self.titles)
        return (self.query_intent, *names, self.role_hint, self.year, self.media, filters, self.asked is Asked.LIKE)


@dataclass(frozen=True, slots=True)
class Phrased:
    """What the words of a question say.

    Attributes:
        names: Names in it, in order.
        asked: The fact that it asks for; None if nothing asks.
        around: Its words without the names.
    """

    names: tuple[str, ...]
    asked: Asked | None
    around: str


def tidied(name: str) -> str:
    """Return a name without what surrounds it."""
    return re.sub(r"\s+", " ", name).strip(" \t　,，。.？?！!：:；;《》〈〉\"'“”‘’「」『』")[:_LONGEST_NAME].strip()


class EntityExtractor(Protocol):
    """Finds the names of films, series and people in a question."""

    def extract(self, query_text: str) -> list[str]:
        """Return the names, in order."""
        ...


class Router(Protocol):
    """Determines the route of a question."""

    def route(self, message: str, kb_prefix: str = "") -> Route:
        """Return the route; ``kb_prefix`` is the knowledge base of the question (``movie``, ``tv``, …)."""
        ...
