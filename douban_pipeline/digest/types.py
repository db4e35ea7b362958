"""What the digest speaks of, as values: articles, how far each is, and how a slot ended."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any


class SlotStatus(enum.StrEnum):
    """How far a slot is."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class BodyState(enum.StrEnum):
    """Whether there is a text of an article."""

    PENDING = "pending"
    """Not there yet: it is asked for again in the next slots."""
    READY = "ready"
    NONE = "none"
    """It never came while the article was in the window."""
    GONE = "gone"
    """Its publisher deleted it."""


class AnalysedStatus(enum.IntEnum):
    """How far the analysis of an article is; the numbers are the column `analyzed_status`."""

    WAITING = 0
    UNDER_WAY = 1
    DONE = 2
    FAILED = 3
    """It failed, and is tried again in the next slots."""
    GIVEN_UP = 4
    NOTHING = 5
    """There is nothing to analyse: neither text nor description, or it was deleted."""
    DOUBLE = 6
    """Its text is that of an article taken in before."""


class ReportState(enum.StrEnum):
    """How a day's report was made."""

    GOOD = "good"
    """Written by the model."""
    PLAIN = "plain"
    """Put together without the model, because that failed."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FoundArticle:
    """An article as a source lists it.

    Attributes:
        external_id: Its key over all sources.
        mp_id: Whose it is, see the table of accounts.
        mp_name: What that is called.
        title: Its title.
        url: Its page; empty for none.
        description: A sentence or two of it.
        published_at: When it was published; None where nobody knows.
        text: Its text, where the list has it.
    """

    external_id: str
    mp_id: str
    mp_name: str
    title: str
    url: str
    description: str
    published_at: datetime | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class WaitingArticle:
    """An article that is to be analysed."""

    content_item_id: int
    mp_name: str
    title: str
    url: str
    description: str
    text: str
    published_at: datetime | None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """An analysis whose score reaches the threshold, as messages name it."""

    analysis_id: int
    content_item_id: int
    score: int
    title: str
    mp_name: str
    summary: str
    published_at: datetime | None
    suspicions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One slot of one day, as it is stored."""

    run_id: int
    run_date: date
    slot: str
    status: SlotStatus
    pushes: bool
    error: str
    scheduled_at: datetime
    started_at: datetime
    finished_at: datetime | None
    counters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DayStats:
    """What a day came to: counts of articles, analyses, findings and failures, and its best score (None for none)."""

    articles: int
    analyses: int
    findings: int
    failures: int
    best_score: int | None
    slots_done: tuple[str, ...]
