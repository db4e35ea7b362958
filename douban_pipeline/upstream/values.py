"""Reading the loose values of the ``vod_*`` shape: texts, lists, numbers, durations. Pure."""

from __future__ import annotations

import html
import re
import unicodedata

# fmt: off
PLACEHOLDERS = frozenset((
    "内详", "未知", "暂无", "不详", "无", "佚名", "待定", "更多", "更多...",
    "更多…", "未填写", "未录入", "未知主演", "未知导演", "未知编剧", "未知演员",
    "暂无主演", "暂无导演", "暂无演员", "暂无简介", "暂无介绍", "暂无剧情",
    "暂无剧情简介", "暂无资料", "暂无信息", "n/a", "na", "null", "none",
    "nil", "undefined", "nan", "-", "--", "—", "/", ".",
    "0",
))
# fmt: on
"""Words that stand for "nothing is known" (compared in lower case)."""

_BREAK = re.compile(r"<br\s*/?>|</p\s*>", re.IGNORECASE)
_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_NOT_AVAILABLE = re.compile(r"(?<![a-z])n/a(?![a-z])", re.IGNORECASE)
_OPENING, _CLOSING = "(（[【《", ")）]】》"
_HOURS = re.compile(r"(\d{1,2})\s*(?:小时|时|h(?:ours?|rs?)?)\s*(?:(\d{1,2})\s*(?:分|m)?)?", re.IGNORECASE)
_MINUTES = re.compile(r"(\d{1,4})\s*(?:分|min|m\b|'|′)", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2}):([0-5]\d):([0-5]\d)(?![\d:])")
_CLOCK_SHORT = re.compile(r"(?<![\d:])(\d{1,3}):([0-5]\d)(?![\d:])")
_LONGEST_MINUTES = 1_200


def clean(value: object, *, keep_lines: bool = False) -> str:
    """Return `text`, or "" where it is a placeholder."""
    found = text(value, keep_lines=keep_lines)
    return "" if found.lower() in PLACEHOLDERS else found


def text(value: object, *, keep_lines: bool = False) -> str:
    """Return plain text: entities unescaped (even twice), markup and control characters gone, blanks single.

    Numbers become text; values that are no text become "".

    Args:
        value: What the source sent.
        keep_lines: Keep line breaks (for synopses).
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    plain = _stable(str(value)).replace("\r\n", "\n").replace("\r", "\n")
    lines = [" ".join(line.split()) for line in _CONTROL.sub("", plain).split("\n")]
    return ("\n" if keep_lines else " ").join(line for line in lines if line)


def names(value: object) -> tuple[str, ...]:
    """Split a list of names, genres, regions or languages; order kept, duplicates and placeholders dropped.

    Separators are ``,`` ``，`` ``、`` ``/`` ``|`` outside brackets, never spaces: names contain them. Where a list
    uses a slash between spaces, a bare slash belongs to an item.
    """
    return _items(value, ",，、|;；", bare_slash=True)


def titles(value: object) -> tuple[str, ...]:
    """Split a list of titles, like `names`, but a title's own punctuation is not taken for a separator.

    A bare slash between two Latin letters belongs to the title (``Fate/Zero``); ``，`` and ``、`` separate only
    where nothing stronger does.
    """
    strong = _items(value, ",|", bare_slash=False)
    return strong if len(strong) != 1 or isinstance(value, list) else _items(value, ",|，、", bare_slash=False)


def year(value: object) -> int | None:
    """Return the first plausible year of ``2018``, ``"2018"``, ``"2018-2019"``; None for 0 and the like."""
    match = re.search(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)", _ascii(value))
    return int(match[1]) if match else None


def rating(value: object) -> float | None:
    """Return a rating above 0 and at most 10; None for a missing one."""
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?)\s*分?", _ascii(value))
    number = float(match[1]) if match else 0.0
    return number if 0 < number <= 10 else None


def count(value: object, most: int = 20_000) -> int | None:
    """Return a count of episodes from ``24``, ``"24"``, ``"全24集"``; None for 0 and for several numbers."""
    found = re.findall(r"\d+", _ascii(value))
    number = int(found[0]) if len(found) == 1 and len(found[0]) < 9 else 0
    return number if 0 < number <= most else None


def minutes(value: object) -> int | None:
    """Return a duration in minutes; of several versions the first.

    Reads ``142``, ``142分钟``, ``01:35:00``, ``1小时35分``, ``120分钟(国际版) / 118分钟``. ``04:51`` may be hours or
    minutes and is taken as minutes and seconds only when it can be nothing else.
    """
    text = _ascii(value)
    found: list[tuple[int, int]] = []
    if match := _HOURS.search(text):
        found.append((match.start(), int(match[1]) * 60 + int(match[2] or 0)))
    if match := _CLOCK.search(text):
        found.append((match.start(), int(match[1]) * 60 + int(match[2]) + (int(match[3]) >= 30)))
    elif (match := _CLOCK_SHORT.search(text)) and int(match[1]) > 12:
        found.append((match.start(), int(match[1]) + (int(match[2]) >= 30)))
    if match := _MINUTES.search(text):
        found.append((match.start(), int(match[1])))
    if match := re.fullmatch(r"(\d{1,4})(?:\.0+)?", text):
        found.append((0, int(match[1])))
    if not found:
        return None
    number = min(found)[1]
    return number if 0 < number <= _LONGEST_MINUTES else None


def _ascii(value: object) -> str:
    return unicodedata.normalize("NFKC", clean(value))


def _stable(text: str) -> str:
    for _ in range(4):  # double escaping is common; markup may hide behind it
        plain = _TAG.sub("", _BREAK.sub("\n", html.unescape(text)))
        if plain == text:
            break
        text = plain
    return text


def _items(value: object, separators: str, *, bare_slash: bool) -> tuple[str, ...]:
    if isinstance(value, list):
        parts = [item.get("name") if isinstance(item, dict) else item for item in value]
        cleaned = [clean(part) for part in parts]
    else:
        listed = _NOT_AVAILABLE.sub("", clean(value))
        cleaned = [clean(part) for part in _split(listed, separators, bare_slash=bare_slash)]
    return tuple(dict.fromkeys(item for item in cleaned if item))


def _split(text: str, separators: str, *, bare_slash: bool) -> list[str]:
    spaced = " / " in text
    balanced = all(text.count(a) == text.count(b) for a, b in zip(_OPENING, _CLOSING, strict=True))
    parts = [""]
    depth = 0
    for position, character in enumerate(text):
        if balanced and character in _OPENING:
            depth += 1
        elif balanced and character in _CLOSING:
            depth -= 1
        elif depth <= 0 and (
            character in separators
            or (character == "/" and _slash_separates(text, position, spaced=spaced, bare=bare_slash))
        ):
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _slash_separates(text: str, position: int, *, spaced: bool, bare: bool) -> bool:
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    if spaced:
        return before == " " or after == " "
    return bare or not (before.isascii() and before.isalpha() and after.isascii() and after.isalpha())
