"""Times as feeds write them: with an offset, the name of a zone, or without any zone. Pure.

A time of no known form, or with a zone of no known meaning, is none: feedparser reads such a zone as UTC, and some
spellings as the first of the month.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

CHINA = timezone(timedelta(hours=8))
_US_CENTRAL = timezone(timedelta(hours=-6))
_AHEAD = 300
"""Seconds that clocks may differ: a time further ahead of the present was read in the wrong zone."""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"),
    "december",
)
_MONTH = rf"(?P<name>{'|'.join(f'{name}|{name[:3]}' for name in _MONTHS)}|sept|1[0-2]月|0?[1-9]月)\.?"
_EARLIER, _LATER = ("上午", "凌晨", "早上", "am", "a.m."), ("下午", "晚上", "pm", "p.m.")
_HALF = "|".join(re.escape(each) for each in (*_EARLIER, *_LATER))
_TIME = (
    rf"(?:(?P<before>{_HALF})\s*)?(?P<hour>\d{{1,2}})[:：时時点](?P<minute>\d{{2}})分?"
    rf"(?:[:：]?(?P<second>\d{{2}})(?:[.,]\d+)?秒?)?(?:\s*(?P<after>{_HALF})(?![a-z]))?"
)
_HAN_WEEKDAY = r"(?:周|週|星期|礼拜)\w"
_WEEKDAY = r"(?:[^\W\d]+\.?(?:[,，]\s*|\s+))?"
_ZONE = r"(?P<zone>\D.*)?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_WEEKDAY}(?P<year>\d{{4}})\s*[-/.年]\s*(?P<month>\d{{1,2}})\s*[-/.月]\s*(?P<day>\d{{1,2}})日?"
        rf"(?:\s*[(（]?{_HAN_WEEKDAY}[)）]?)?(?:[T\s]*{_TIME})?{_ZONE}",
        r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)"
        rf"(?:T?(?P<hour>\d\d)(?P<minute>\d\d)(?:(?P<second>\d\d)(?:[.,]\d+)?)?)?{_ZONE}",
        rf"{_WEEKDAY}(?P<day>\d{{1,2}})[\s-]+{_MONTH}[\s,-]+(?P<year>\d{{4}}|\d{{2}})(?:,?\s+{_TIME})?{_ZONE}",
        rf"{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}})(?:,?\s+{_TIME})?{_ZONE}",
        rf"{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?P<early>(?:\S+\s+)?)(?P<year>\d{{4}}){_ZONE}",
    )
)
_OFFSET = re.compile(
    r"(?:gmt|utc)?\s*(?P<sign>[+-])\s*(?P<hours>1[0-4]|0?\d)(?::?(?P<minutes>[0-5]\d))?(?:\s*[^\d\s:].*)?"
)
_NAMED = re.compile(r"(?P<name>[^()]*?)\s*(?:\((?P<comment>[^()]*)\))?")
_HOURS_OF_NAMES: Mapping[float, str] = {
    0: "z utc gmt ut wet 格林尼治标准时间 协调世界时",
    1: "bst cet met west wat",
    2: "cest mest eet cat sast",
    3: "eest msk eat trt",
    3.5: "irst",
    4: "gst",
    5: "pkt",
    5.5: "ist",
    5.75: "npt",
    7: "ict wib",
    8: "bjt hkt sgt myt pht awst wita china beijing 北京时间 北京時間 中国标准时间 中國標準時間 香港时间 香港時間 "
    "台北时间 台北時間 台北標準時間",
    9: "jst kst wit 东京时间 日本時間 日本标准时间 日本標準時",
    9.5: "acst",
    10: "aest chst",
    10.5: "acdt",
    11: "aedt",
    12: "nzst",
    13: "nzdt",
    -2: "brst",
    -2.5: "ndt",
    -3: "brt art adt clst uyt",
    -3.5: "nst",
    -4: "ast edt clt",
    -5: "est cdt cot pet",
    -6: "mdt",
    -7: "mst pdt",
    -8: "pst akdt",
    -9: "akst",
    -10: "hst",
}
"""Hours ahead of UTC of names that zoneinfo lacks, or has for a place whose offset changes.

Of several meanings it is that of RFC 822 (EST, MST and PST are North American), else that of most people who write it:
IST is India's, BST Britain's, GST the Gulf's. Names without such a one (AMT, ECT, SST, WST) are none; see
`meaning_of_cst` for CST.
"""
_NAMES: Mapping[str, tzinfo] = {
    name: timezone(timedelta(hours=hours)) for hours, names in _HOURS_OF_NAMES.items() for name in names.split()
}
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

    def moment(self, zone: tzinfo, cst: tzinfo | None = None) -> int | None:
        """Return the time in seconds since 1970, with the zones that are meant by none and by CST; None: no such."""
        meant = self.zone or (cst if self.cst else zone)
        if meant is None:
            return None
        try:
            return int(self.clock.replace(tzinfo=meant).timestamp())
        except (OverflowError, OSError, ValueError):
            return None


def written_time(text: object) -> WrittenTime | None:
    """Return the time that a text says; None if it is of no known form, or names an unknown zone."""
    if not isinstance(text, str) or len(text) > 100:
        return None
    text = " ".join(text.split())
    found = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    parts = {name: (value or "").strip().lower() for name, value in found.groupdict().items()}
    try:
        month = _month(parts["name"]) if "name" in parts else int(parts["month"])
        year = int(parts["year"]) + (2000 if len(parts["year"]) == 2 else 0)
        clock = datetime(year, month, int(parts["day"])) + _time_of_day(parts)  # noqa: DTZ001 (its zone is found next)
        return _in_zone(clock, f"{parts.get('early', '')} {parts['zone']}".strip())
    except (ValueError, LookupError, OverflowError):
        return None


def _month(name: str) -> int:
    if name.endswith("月"):
        return int(name[:-1])
    return next(number for number, each in enumerate(_MONTHS, 1) if each.startswith(name[:3]))


def _time_of_day(parts: dict[str, str]) -> timedelta:
    """Return the time since midnight that the parts of a text say.

    Raises:
        ValueError: No clock shows it, or it has two meanings, such as 12:00 in the evening.
    """
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    half = parts.get("before") or parts.get("after")
    if (half in _EARLIER and hour > 12) or (half == "晚上" and hour == 12):
        raise ValueError(half)
    if half and hour <= 12:
        hour = hour % 12 + (12 if half in _LATER else 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and minute + second):
        raise ValueError(hour)
    return timedelta(hours=hour, minutes=minute, seconds=min(second, 59))


def _in_zone(clock: datetime, text: str) -> WrittenTime:
    """Return the reading of a clock with the zone that a text in lower case says.

    Raises:
        ValueError, LookupError: The zone is unknown.
    """
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        ahead = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        return WrittenTime(clock, timezone(-ahead if offset["sign"] == "-" else ahead))
    named = _NAMED.fullmatch(text)
    if named is None:
        raise ValueError(text)
    name = named["name"] or named["comment"] or ""
    if name == "cst":
        return WrittenTime(clock, _NAMES.get(named["comment"] or ""), cst=True)
    return WrittenTime(clock, (_NAMES.get(name) or ZoneInfo(_places()[name])) if name else None)


@cache
def _places() -> dict[str, str]:
    """Return the names of zoneinfo, by themselves in lower case; not that of this machine's own zone."""
    return {name.lower(): name for name in available_timezones() - {"localtime", "Factory"}}


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
