"""Times as feeds write them: with an offset, with a name that means several zones, or without any zone. Pure.

feedparser takes a time without a zone as UTC, "CST" as US Central Time, and reads some spellings as the first of the
month. A Chinese feed's times are then 8 or 14 hours ahead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_tz

CHINA = timezone(timedelta(hours=8))
_US_CENTRAL = timezone(timedelta(hours=-6))
_AHEAD = 300
"""Seconds that clocks may differ: a time further ahead of the present was read in the wrong zone."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
_NUMBERS = re.compile(
    rf"(?P<year>\d{{4}})\s*[-/.年]\s*(?P<month>\d{{1,2}})\s*[-/.月]\s*(?P<day>\d{{1,2}})日?"
    rf"(?:[T\s]*{_TIME}\s*(?P<zone>.*))?",
    re.IGNORECASE,
)
_MAIL = re.compile(
    rf"(?:[a-z]+,?\s+)?(?P<day>\d{{1,2}})[\s-]+(?P<name>[a-z]{{3}})[a-z]*[\s-]+(?P<year>\d{{4}}|\d{{2}})"
    rf"(?:\s+{_TIME}\s*(?P<zone>.*))?",
    re.IGNORECASE,
)
_UNIX = re.compile(
    rf"[a-z]{{3,}}\s+(?P<name>[a-z]{{3}})[a-z]*\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?P<zone>\S*?)\s*(?P<year>\d{{4}})",
    re.IGNORECASE,
)
_OFFSET = re.compile(
    r"(?:gmt|utc)?\s*(?P<sign>[+-])\s*(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?(?:\s*\(.*\))?", re.IGNORECASE
)
_UTC_NAMES = frozenset({"z", "utc", "gmt", "ut"})
_CHINA_NAMES = frozenset({"bjt", "asia/shanghai", "prc", "北京时间"})
_HAN, _KANA = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[\u3040-\u30ff]")


@dataclass(frozen=True, slots=True)
class WrittenTime:
    """A time as it is written.

    Attributes:
        clock: The reading of the clock, without a zone.
        zone: Its zone; None if the text names none, or one that means several.
        cst: Whether the text says CST: China Standard Time, or Central Standard Time of the US.
    """

    clock: datetime
    zone: tzinfo | None = None
    cst: bool = False

    def moment(self, zone: tzinfo, cst: tzinfo) -> int | None:
        """Return the time in seconds since 1970, with the zones that are meant by none and by CST; None: no such."""
        meant = self.zone or (cst if self.cst else zone)
        try:
            return int(self.clock.replace(tzinfo=meant).timestamp())
        except (OverflowError, OSError, ValueError):
            return None


def written_time(text: object) -> WrittenTime | None:
    """Return the time that a text says; None if it is of no known form, or names an unknown zone."""
    if not isinstance(text, str) or len(text) > 100:
        return None
    text = " ".join(text.split())
    found = next((match for form in (_NUMBERS, _MAIL, _UNIX) if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    parts = found.groupdict()
    try:
        month = _MONTHS.index(parts["name"].lower()) + 1 if parts.get("name") else int(parts["month"])
        clock = datetime(  # noqa: DTZ001 (its zone is found next)
            *(int(parts["year"]) + (2000 if len(parts["year"]) == 2 else 0), month, int(parts["day"])),
            *(int(parts["hour"] or 0), int(parts["minute"] or 0), min(int(parts["second"] or 0), 59)),
        )
    except ValueError:
        return None
    name = (parts["zone"] or "").strip().lower()
    if name == "cst":
        return WrittenTime(clock, cst=True)
    try:
        return WrittenTime(clock, _zone_of(name))
    except ValueError:
        return None


def _zone_of(name: str) -> tzinfo | None:
    """Return the zone of a name, None for an empty one.

    Raises:
        ValueError: It is unknown.
    """
    if not name:
        return None
    if name in _UTC_NAMES:
        return UTC
    if name in _CHINA_NAMES:
        return CHINA
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        ahead = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        return timezone(-ahead if offset["sign"] == "-" else ahead)
    known = parsedate_tz(f"Mon, 1 Jan 2001 00:00:00 {name}")
    if known is None or not known[9]:  # 0 is what it returns for an unknown name
        raise ValueError(name)
    return timezone(timedelta(seconds=known[9]))


def meaning_of_cst(times: Sequence[WrittenTime], language: str, titles: Sequence[str], now: float) -> tzinfo:
    """Return the zone that CST means in a feed.

    China's if the feed is Chinese: by its language, or, where it says none, by most of its titles; and if a time would
    otherwise lie in the future. Else that of the US.

    Args:
        times: Its times.
        language: Its language, as in ``zh-cn``; empty if it says none.
        titles: Its titles.
        now: The current time.
    """
    if language.lower().startswith("zh"):
        return CHINA
    if not language:
        chinese = sum(bool(_HAN.search(title)) and not _KANA.search(title) for title in titles)
        if chinese and 2 * chinese > len(titles):
            return CHINA
    moments = [each.moment(UTC, _US_CENTRAL) for each in times if each.cst]
    return CHINA if any(moment is not None and moment > now + _AHEAD for moment in moments) else _US_CENTRAL
