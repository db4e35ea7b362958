"""Content of the pages as values: callers read the database, the pages do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class OpportunityView:
    """One opportunity named in an article."""

    type: str = ""
    title: str = ""
    targets: Sequence[str] = ()
    reason: str = ""
    risk: str = ""
    horizon: str = ""


@dataclass(frozen=True, slots=True)
class AnalysisView:
    """The analysis of an article.

    Attributes:
        analysis_id: Its id, part of its address.
        title: The article's title.
        mp_name: Name of the account.
        url: The article's page; only http and https become a link.
        published_at: When it was published; None if unknown.
        report_date: The day it belongs to.
        slot: The slot that analysed it.
        score: 0 to 100.
        is_finding: Whether the score reaches the threshold.
        summary: Summary of the article.
        opportunities: Opportunities named in it.
        suspicions: Reasons why a person should check it, such as sentences in its text that changed its score.
        truncated: Whether the model was given only a part of the text.
        model: Model that analysed it.
    """

    analysis_id: int
    title: str
    mp_name: str
    url: str
    published_at: datetime | None
    report_date: date
    slot: str
    score: int
    is_finding: bool
    summary: str
    opportunities: Sequence[OpportunityView] = ()
    suspicions: Sequence[str] = ()
    truncated: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class FailureView:
    """An article that could not be analysed, and why."""

    title: str
    mp_name: str
    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class TopView:
    """One of the day's best opportunities as named in the report; ``analysis_id`` is None if it refers to no
    analysis."""

    title: str
    score: int
    reason: str
    analysis_id: int | None = None
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of the day: its result in Chinese, and ``good``, ``bad`` or empty."""

    slot: str
    state: str
    tone: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class DayView:
    """A day's report.

    Attributes:
        report_date: The day.
        made_at: When the view was created.
        failed: Whether the report could not be made; then `causes` says why, and the other data is shown nevertheless.
        unread: Whether nothing could be read or analysed; then `causes` says why.
        headline: What the day came to, in a few words.
        coverage: How much of the day was read and analysed.
        causes: Reasons, one sentence each.
        note: A sentence on how the report was made, for example that the model was not available.
        digest_md: The report as Markdown; links, pictures and HTML in it are shown as text.
        top: The day's best opportunities according to the report.
        watchlist: What to watch.
        analyses: All analyses of the day.
        failures: Articles that could not be analysed.
        slots: The day's slots, in order.
    """

    report_date: date
    made_at: datetime
    failed: bool = False
    unread: bool = False
    headline: str = ""
    coverage: str = ""
    causes: Sequence[str] = ()
    note: str = ""
    digest_md: str = ""
    top: Sequence[TopView] = ()
    watchlist: Sequence[str] = ()
    analyses: Sequence[AnalysisView] = ()
    failures: Sequence[FailureView] = ()
    slots: Sequence[SlotView] = ()


@dataclass(frozen=True, slots=True)
class DayEntry:
    """One day in the index.

    Attributes:
        report_date: The day.
        analyses: Number of analysed articles.
        findings: Titles of the findings by id, best first.
        best_score: The best score of the day; None for none.
        problem: Why there is no report that says something of the day; empty if there is one.
        counted: Whether articles were read and counted, so that none found is a statement.
    """

    report_date: date
    analyses: int
    findings: Mapping[int, str] = field(default_factory=dict)
    best_score: int | None = None
    problem: str = ""
    counted: bool = True
