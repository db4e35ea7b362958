"""The numbers a text says, in any writing: 120, １２０, 一百二十, 二〇一八年, 3.5亿, 第二季, 九十年代, 百分之三十.

Language is full of numerals that count nothing. What is a number and what a word is decided by one rule: digits
always count; so does a numeral of two characters and more, unless `number_words` has the phrase; a single numeral
counts before a unit, where 一 and 两 ask for more than a mere measure word (两个人 is language, 两年 is a number).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from douban_pipeline.douban.intros.factguard.number_words import (
    ORDINAL_UNITS,
    PHRASES,
    PLAIN_UNITS,
    STRONG_UNITS,
)
from douban_pipeline.douban.intros.factguard.wording import plain
from douban_pipeline.matching.numerals import roman_value

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_FORMAL_DIGITS = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟", "一二三四五六七八九十百千")
_FORMAL = re.compile("[壹贰叁肆伍陆柒捌玖拾佰仟零万亿]{2,}")
"""Numerals as they stand on cheques; a single one (大陆, 收拾) is a part of a word."""
_NUMERALS = "".join((*_DIGITS, *_TENS, *_MYRIADS, "廿卅"))
_SAME_UNITS = (
    "季 辑",
    "集 话 回 期",
    "分钟 分 min",
    "年 周年",
    "天 日 夜 晚",
    "月 个月",
    "星期 个星期 周 礼拜 个礼拜",
    "小时 个小时",
    "世纪 个世纪",
    "国家 个国家",
    "元 块钱 人民币",
)
_KINDS = {unit: units.split()[0] for units in _SAME_UNITS for unit in units.split()}

_SAID = re.compile(
    rf"""
    (?P<before>第|全|共|总共|共计|一共|[几数上])?\ ?
    (?:(?P<arabic>\d+(?:,\d{{3}})*(?:\.\d+)?)\ ?(?P<scale>[百千万亿]{{1,2}})?
     |(?P<chinese>[{_NUMERALS}]+)
     |(?<=第)(?P<roman>[IVX]+))
    (?P<about>[多余来几]*)\ ?
    (?P<unit>min(?![a-z])|[%‰]|分钟|分(?![之享手裂离别开析担布散外明])|{STRONG_UNITS}|{PLAIN_UNITS})?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HOURS = re.compile(
    rf"(?P<hours>\d{{1,4}}|[{_NUMERALS}]+)个?(?:小时|钟头)(?:零|又)?(?:(?P<minutes>\d{{1,4}}|[{_NUMERALS}]+)分钟?)?"
)
_STRONG = re.compile(STRONG_UNITS)
_ORDINAL = re.compile(ORDINAL_UNITS)
_PLAIN = re.compile(PLAIN_UNITS)
_LONGEST = 20  # characters; what is longer is no number but a list
_LARGE = frozenset("百千万亿")
_COUNTED_LARGE = re.compile("元|美元|美金|人民币|块钱|人次|集|岁|部")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as a text says it.

    Attributes:
        value: Its value in plain digits, or its characters where they spell no number (十百).
        kind: What it counts, one word for units that count the same; "" where the text does not say.
        piece: As it stands in the text.
    """

    value: str
    kind: str
    piece: str


def numbers_said(text: str) -> list[Number]:
    """Return the numbers of ``text``, in order; words with numerals that count nothing are none."""
    found = []
    for match in _SAID.finditer(PHRASES.sub("_", _plain(text))):
        value = _value(match)
        if value is not None:
            found.append(Number(value, _kind((match["unit"] or "").lower()), match[0].strip()))
    return found


def _plain(text: str) -> str:
    return _FORMAL.sub(lambda match: match[0].translate(_FORMAL_DIGITS), plain(text))


def _kind(unit: str) -> str:
    """Return what a unit counts: 三个, 三位 and 三名 are the same."""
    return "个" if _PLAIN.fullmatch(unit) else _KINDS.get(unit, unit)


def _value(match: re.Match[str]) -> str | None:
    """Return the value of what looks like a number, None if it is a word."""
    before, unit = match["before"] or "", match["unit"] or ""
    if match["arabic"]:
        amount = Decimal(match["arabic"].replace(",", ""))
        for scale in match["scale"] or "":
            amount *= (_TENS | _MYRIADS)[scale]
        return f"{amount.normalize():f}"
    if match["roman"]:
        value = roman_value(match["roman"])
        return str(value) if value and unit else None
    if not _counts(before, match["chinese"], match["about"], unit):
        return None
    value = chinese_number(match["chinese"])
    return match["chinese"] if value is None else str(value)


def _counts(before: str, numeral: str, about: str, unit: str) -> bool:
    """Return whether a Chinese numeral is a number rather than a part of the language."""
    if set(numeral) <= _LARGE:  # 千万, 百姓: 几百 and 百万元 count
        return before in ("几", "数") or _COUNTED_LARGE.fullmatch(unit) is not None
    if len(numeral) > 1:
        return not set(numeral) <= {"零", "〇"}
    if numeral in ("零", "〇"):
        return False
    if numeral == "一":
        return before not in ("", "几", "数", "上") and _ORDINAL.fullmatch(unit) is not None
    if before == "第":
        return True
    if numeral in ("二", "两"):
        return _STRONG.fullmatch(unit) is not None
    return bool(unit) or (numeral == "十" and bool(about or before == "几"))


def chinese_number(text: str) -> int | None:
    """Return the value of a Chinese numeral below ten thousand times a hundred million, or None.

    Both writings are read: 二千零一十八 with units, 二〇一八 digit by digit.
    """
    if len(text) > _LONGEST:
        return None
    text = text.replace("廿", "二十").replace("卅", "三十")
    if all(char in _DIGITS for char in text):
        return int("".join(str(_DIGITS[char]) for char in text)) if text else None
    total = section = 0
    digit: int | None = None
    for char in text:
        if char in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[char]
        elif char in _TENS:
            section += (1 if digit is None else digit) * _TENS[char]
            digit = None
        else:
            total = (total + section + (digit or 0) or 1) * _MYRIADS[char]
            section, digit = 0, None
    return total + section + (digit or 0)


def ungrounded_numbers(text: str, facts: Iterable[Number], duration_minutes: int | None) -> list[str]:
    """Return the numbers of ``text`` that no fact holds, as they stand in the text.

    A number needs a fact of its value that counts the same, or does not say what it counts (the 2 of a title); where
    the text itself does not say, the value is enough.

    Args:
        text: The introduction.
        facts: Numbers of the fact sheet.
        duration_minutes: The running time, which may be said in hours.
    """
    held = {(fact.value, fact.kind) for fact in facts}
    values = {fact.value for fact in facts}

    def in_minutes(match: re.Match[str]) -> str:
        hours, minutes = (_whole(match[name] or "零") for name in ("hours", "minutes"))
        return "_" if 60 * hours + minutes == duration_minutes else match[0]

    found = []
    for number in numbers_said(_HOURS.sub(in_minutes, _plain(text))):
        spellings = _decades(number.value) if number.kind == "年代" else {number.value}
        kinds = {number.kind} if number.kind == "年代" else {number.kind, ""}
        if not any((value, kind) in held for value in spellings for kind in kinds) and not (
            number.kind == "" and number.value in values
        ):
            found.append(number.piece)
    return list(dict.fromkeys(found))


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else chinese_number(text) or 0


def _decades(value: str) -> set[str]:
    """Return the ways to say a decade: 90 and 1990."""
    return {value, value[-2:], f"19{value}"}
