"""Types of the digest: articles, their states, and the result of a slot."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any


class SlotStatus(enum.StrEnum):
    """State of a slot."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class BodyState(enum.StrEnum):
    """State of an article's text."""

    PENDING = "pending"
    """Not available yet: requested again in the next slots."""
    READY = "ready"
    NONE = "none"
    """It did not become available while the article was in the window."""
    GONE = "gone"
    """Deleted by its publisher."""


class AnalysedStatus(enum.IntEnum):
    """State of an article's analysis; the numbers are the column `analyzed_status`."""

    WAITING = 0
    UNDER_WAY = 1
    DONE = 2
    FAILED = 3
    """It failed, and is retried in the next slots."""
    GIVEN_UP = 4
    NOTHING = 5
    """There is nothing to analyse: neither text nor description, or it was deleted."""
    DOUBLE = 6
    """Its text duplicates an earlier article's."""


class ReportState(enum.StrEnum):
    """How a day's report was made."""

    GOOD = "good"
    """Written by the model."""
    PLAIN = "plain"
    """Compiled without the model, because the model failed."""
    UNREAD = "unread"
    """No article could be read, or none analysed, so that nothing is known about the day."""
    FAILED = "failed"


class DayOutcome(enum.StrEnum):
    """What a day came to."""

    FOUND = "found"
    NOTHING_FOUND = "nothing_found"
    UNREAD = "unread"
    """No article could be read, or none analysed."""


@dataclass(frozen=True, slots=True)
class FoundArticle:
    """An article as a source lists it.

    Attributes:
        external_id: Its key over all sources.
        mp_id: Its account, see the table of accounts.
        mp_name: Name of the account.
        title: Its title.
        url: Its page; empty for none.
        description: A short description.
        published_at: When it was published; None if unknown.
        text: Its text, if the list contains it.
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
    """An article waiting for analysis."""

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
    """An analysis whose score reaches the threshold, as used in messages."""

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
    """One slot of one day, as stored."""

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
    """Totals of a day.

    Attributes:
        articles: Articles that its slots ingested.
        analyses: Articles that were analysed.
        findings: Those whose score reaches the threshold.
        failures: Articles whose analysis failed.
        best_score: The best score, None for none.
        slots_done: Its slots that succeeded.
        waiting: Articles of the day that still wait for their text or for their analysis.
        doubtful: Findings that are marked because the article's text may have influenced the model.
        withheld: Analyses under the threshold that are marked so, because it is not known by which sentence.
        unread: Its slots that could read no source.
        missed: Its slots that were due and never ran.
    """

    articles: int
    analyses: int
    findings: int
    failures: int
    best_score: int | None
    slots_done: tuple[str, ...]
    waiting: int = 0
    doubtful: int = 0
    unread: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    withheld: int = 0
