"""How long a publisher wants its readers to wait between two polls, by what its feed and its answers say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

LONGEST_OWN_GAP = 86_400
"""Seconds of a publisher's wish that are honoured at most: a feed that asks for a year (``<ttl>525600</ttl>``) or that
was set up wrong is still read once a day."""

_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_PERIODS = {"hourly": 3600, "daily": 86_400, "weekly": 7 * 86_400, "monthly": 30 * 86_400, "yearly": 365 * 86_400}


class OwnGap(NamedTuple):
    """Seconds between two polls, 0 for no wish, and where they are written: ``ttl``, ``sy``, ``max-age``,
    ``expires``."""

    seconds: int = 0
    written: str = ""


def gap_of_feed(channel: Mapping[str, Any]) -> OwnGap:
    """Return the wish in a feed, as feedparser gives its head: ``<ttl>`` (RSS 2.0, minutes), else the syndication
    module's period and frequency (RSS 1.0), of which the frequency alone means per day."""
    ttl = _number(channel.get("ttl"))
    if ttl > 0:
        return OwnGap(min(int(ttl * 60), LONGEST_OWN_GAP), "ttl")
    period, often = channel.get("sy_updateperiod"), channel.get("sy_updatefrequency")
    if period is None and often is None:
        return OwnGap()
    seconds = _PERIODS.get(str(period or "daily").strip().lower(), 0)
    frequency = _number(often) if often is not None else 1.0
    return OwnGap(min(int(seconds / frequency), LONGEST_OWN_GAP), "sy") if seconds and frequency >= 1 else OwnGap()


def gap_of_headers(headers: Mapping[str, str], now: int) -> OwnGap:
    """Return the wish in an answer's headers: ``max-age``, else ``Expires`` (RFC 9111, 4.2.1), unless caching is
    forbidden."""
    said = headers.get("cache-control", "")
    if "no-cache" in said.lower() or "no-store" in said.lower():
        return OwnGap()
    found = _MAX_AGE.search(said)
    if found:
        return OwnGap(min(int(found[1]), LONGEST_OWN_GAP), "max-age" if int(found[1]) else "")
    # By the server's own clock, if it tells it.
    until = _moment(headers.get("expires", ""))
    if until is None:
        return OwnGap()
    seconds = min(until - (_moment(headers.get("date", "")) or now), LONGEST_OWN_GAP)
    return OwnGap(seconds, "expires") if seconds > 0 else OwnGap()


def _number(value: object) -> float:
    try:
        number = float(str(value).strip())
    except ValueError:
        return 0.0
    return number if 0 <= number < 1e9 else 0.0


def _moment(text: str) -> int | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    try:
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (OverflowError, OSError, ValueError):
        return None
