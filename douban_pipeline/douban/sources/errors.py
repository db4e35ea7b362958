"""Errors of sources of Douban's entries, and when a source that is down is called again."""

# ruff: noqa: N818 (the names say what happened; all of them are a SourceError)

from __future__ import annotations

from datetime import datetime, timedelta

from douban_pipeline.core.archive import ArchiveError
from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    NotFound,
    SourceError,
    SourceThrottled,
    SourceUnpaid,
    SourceWall,
)

SOURCE_DOWN = (ArchiveError, GateClosed, GateUnreadable, SourceThrottled, SourceUnpaid, SourceWall)
"""Errors that say that a source cannot be used at present, whichever video was asked about."""

RETRY_AFTER = timedelta(minutes=5)
"""When to try again if a source that is down does not say."""


def retry_time(error: SourceError, now: datetime) -> datetime:
    """Return when to call a source again that is down: the time it gave, else `RETRY_AFTER` from ``now``."""
    if isinstance(error, GateClosed):
        return max(error.until, now)
    if isinstance(error, SourceThrottled) and error.retry_after:
        return now + timedelta(seconds=error.retry_after)
    return now + RETRY_AFTER


class SubjectMismatch(SourceError):
    """The answer is about another subject than the one asked."""


class SubjectMissing(NotFound):
    """The source says explicitly that this subject does not exist. The source itself is healthy."""
