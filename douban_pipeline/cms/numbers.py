"""Parses years, running times, episode counts and ratings in the forms of maccms 10 and Douban, for our columns."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

from douban_pipeline.cms.values import readable

MEDIUMINT_MAX = 16_777_215
"""The largest value of an unsigned MEDIUMINT such as ``vod_total``, the CMS's vote counts and rating sums."""

_YEARS = range(1880, 2101)
_FOUR_DIGITS = re.compile(r"(?<!\d)(\d{4})(?:\d{4})?(?!\d)")


@lru_cache(maxsize=4096)
def year_of(value: str | int | None) -> int | None:
    """Return the first year from 1880 to 2100 in ``2018``, ``2019-2020``, ``2018-05-11(中国大陆)``; else None."""
    text = unicodedata.normalize("NFKC", str(value or ""))
    years = (int(match[1]) for match in _FOUR_DIGITS.finditer(text))
    return next((year for year in years if year in _YEARS), None)


_CLOCK = re.compile(r"(?<!\d)(\d{1,2}):(\d{2})(?::(\d{2}))?(?!\d)")
_ISO = re.compile(r"PT(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,6})S)?", re.IGNORECASE)
_HOUR = r"(?:小时|小時|时|h(?:ours?|rs?)?)"
_SPELT = re.compile(
    rf"(?:(?<!\d)(\d{{1,2}})\s*{_HOUR}\s*)?(?<!\d)(\d{{1,4}})\s*(?:分|min|m\b|['’′])(?:钟|鐘)?(?:\s*(\d{{1,2}})\s*秒)?",
    re.IGNORECASE,
)
_HOURS = re.compile(rf"(?<!\d)(\d{{1,2}}(?:\.\d)?)\s*{_HOUR}(?![a-z])", re.IGNORECASE)
_LONGEST = 24 * 60


def minutes_of(value: str | int | None) -> int | None:
    """Return a running time in minutes: ``142``, ``142分钟``, ``1小时35分``, ``01:35:00``, ``PT2H22M``.

    Of several (``120分钟/118分钟``) the first is used. ``24:10`` is minutes and seconds; ``01:35`` and ``04:51`` are
    ambiguous (hours and minutes, or minutes and seconds), so they are unknown.
    """
    text = unicodedata.normalize("NFKC", str(value or "")).strip()
    seconds = 0.0
    if match := _CLOCK.search(text):
        first, second, third = (int(part) if part else 0 for part in match.groups())
        if match[3]:
            seconds = first * 3600 + second * 60 + third
        elif first >= 5:
            seconds = first * 60 + second
    elif (match := _ISO.search(text)) and any(match.groups()):
        hours, minutes, rest = (int(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    elif match := _SPELT.search(text):
        seconds = int(match[1] or 0) * 3600 + int(match[2]) * 60 + int(match[3] or 0)
    elif match := _HOURS.search(text):
        seconds = float(match[1]) * 3600
    elif match := re.match(r"\d{1,4}(?=(?:\.0+)?$|\s*[/,;|])", text):
        seconds = int(match[0]) * 60
    minutes = int(seconds / 60 + 0.5)
    return minutes if 0 < minutes <= _LONGEST else None


_N = r"(\d{1,5}|[一二两三四五六七八九十百千零〇]{1,7})"
_UNIT = r"[集话話回期]"
_WHOLE = (
    re.compile(rf"[全共]\s*(?:\d+\s*[-~至到]\s*)?{_N}\s*{_UNIT}"),
    re.compile(
        rf"(?:^|[^\d一-鿿]|第|[-~至到])\s*{_N}\s*{_UNIT}\s*\)?\s*(?:全(?![一-鿿])|已?完结|已?完結|大结局|完(?!整))"
    ),
    re.compile(rf"(?:完结|完結)\D{{0,3}}?{_N}\s*{_UNIT}"),
)
_DIGITS = {digit: at for at, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}


def episodes_of(total: str | int | None, remarks: str | None = "") -> int | None:
    """Return the total number of episodes; None if unknown.

    Args:
        total: ``vod_total``, 0 in nearly every live row.
        remarks: ``vod_remarks``: ``全76集``, ``共24集完结``, ``24集全`` count; ``更新至41集`` does not.
    """
    if (match := re.match(r"\s*(\d{1,9})(?!\d)", str(total or ""))) and 0 < int(match[1]) <= MEDIUMINT_MAX:
        return int(match[1])
    text = re.sub("[【】\\[\\]《》]", "", unicodedata.normalize("NFKC", readable(remarks)))
    found = next((match for pattern in _WHOLE if (match := pattern.search(text))), None)
    return (_number(found[1]) or None) if found else None


def _number(text: str) -> int:
    """Return the value of Arabic digits or of a Chinese numeral below ten thousand."""
    if text.isdecimal():
        return int(text)
    whole, digit = 0, 0
    for character in text:
        if character in _DIGITS:
            digit = _DIGITS[character]
        else:
            whole += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[character]
            digit = 0
    return whole + digit


def score(value: str | float | Decimal | None) -> Decimal:
    """Return a rating in the form of ``vod_douban_score``: one decimal, 0.0 to 10.0, halves rounded up.

    A value that is not a number, or out of range (on another scale), becomes 0.0, the CMS's "unknown".
    """
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return Decimal("0.0")
    if not (number.is_finite() and 0 <= number <= 10):
        return Decimal("0.0")
    return abs(number.quantize(Decimal("0.1"), ROUND_HALF_UP))


def moment_of(seconds: int) -> datetime | None:
    """Return the datetime of the CMS's Unix seconds; None for 0 and for numbers outside the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
