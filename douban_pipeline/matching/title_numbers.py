"""Tables of how titles number seasons, parts and sequels; see ``title_words``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from douban_pipeline.matching.numerals import CHINESE_DIGITS, FINANCIAL_DIGITS
from douban_pipeline.matching.text import HAN
from douban_pipeline.matching.title_words import Words, suffix

NumberKind = Literal["season", "part", "sequel", "year"]

_N = rf"(?:[{CHINESE_DIGITS}{FINANCIAL_DIGITS}]{{1,5}}|\d{{1,3}})"
_ORDINAL = r"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_CARDINAL = r"one|two|three|four|five|six|seven|eight|nine|ten"
_ROMAN = r"II|III|IV|VI{1,3}|IX|XI{1,3}|XIV|XV|XVI"
_KANA = r"\u3040-\u30ff"
# 7号房, 28天, 3人: digits before a counter count things, not parts.
_COUNTERS = (
    "号个人位名天日夜年月周岁级点时分秒小度倍次步条只头口家间层楼米里吨块元万千百亿代世宫生重面女男姐吻的英集期季部"
)


@dataclass(frozen=True)
class NumberWord:
    """A notation for a number that states what it counts.

    Attributes:
        kind: What it counts.
        words: The words, with the number as group ``n``.
        weak: Whether another season mark overrides it: 第九季 第3期 is the third episode of that season.
    """

    kind: NumberKind
    words: Words
    weak: bool = False


NUMBER_SUFFIXES: tuple[NumberWord, ...] = (
    NumberWord("season", suffix(rf"第\s*(?P<n>{_N})\s*(?:季|辑|輯|シリーズ|クール|シーズン|系列)")),
    NumberWord("season", suffix(rf"第\s*(?P<n>{_N})\s*期"), weak=True),
    NumberWord("season", suffix(r"(?<![0-9])(?P<n>[0-9]{1,2})\s*季")),
    NumberWord("season", suffix(r"(?<=\s)(?P<n>[一二三五六七八九十]{1,3})\s*季")),
    NumberWord("season", suffix(r"(?<=\s)(?P<n>[0-9]{1,2})\s*期"), weak=True),
    NumberWord("season", suffix(rf"(?:(?<=[^a-z0-9])|^)(?:season|series)\s*(?P<n>\d{{1,2}}|[ivx]{{1,5}}|{_CARDINAL})")),
    NumberWord(
        "season", suffix(rf"(?<![a-z])(?:the\s+)?(?P<n>\d{{1,2}}(?=st|nd|rd|th)|{_ORDINAL})(?:st|nd|rd|th)?\s+season")
    ),
    NumberWord("season", suffix(r"(?<![a-z0-9])s0?(?P<n>\d{1,2})(?:e(?!0+$)\d{1,4})?")),
    NumberWord("season", suffix(r"(?:シーズン|セカンド)\s*(?P<n>\d{1,2})")),
    # 反叛的鲁路修 R2; R5 is a picture quality.
    NumberWord("season", suffix(rf"(?<=[\s{HAN}{_KANA}])r(?P<n>[23])")),
    NumberWord("part", suffix(rf"第\s*(?P<n>{_N})\s*(?:部分|部|章|卷|幕|弹)")),
    # 教父第三集; after a season mark it would be an episode.
    NumberWord("part", suffix(rf"第\s*(?P<n>[{CHINESE_DIGITS}]{{1,3}}|[1-9])\s*[集话]"), weak=True),
    NumberWord("part", suffix(rf"(?<=[\s{HAN}])(?P<n>[{FINANCIAL_DIGITS}一二三四五六七八九十]{{1,2}})之章")),
    NumberWord(
        "part",
        suffix(rf"(?<![a-z])(?:part|pt|vol|volume|cour)\.?\s*(?P<n>\d{{1,2}}|[ivx]{{1,5}}|{_CARDINAL})"),
    ),
    NumberWord("part", suffix(r"(?<![a-z])chapter\.?\s*(?P<n>\d{1,2}|[ivx]{1,5})")),
    # 黄飞鸿之二, but 其中之一 and 四分之三 are not part numbers.
    NumberWord("sequel", suffix(rf"(?<=[{HAN}])(?<!分)之(?P<n>[二三四五六七八九十]|[1-9])")),
)
"""Numbers at the end of a title that state what they count."""

_PAUSE = r"[\s::·\-–—]"

NUMBER_INSIDE: tuple[NumberWord, ...] = (
    NumberWord("season", Words(rf"\s*第\s*(?P<n>{_N})\s*季{_PAUSE}*")),
    NumberWord("part", Words(rf"(?<=\s)第\s*(?P<n>{_N})\s*[部章弹]{_PAUSE}+")),
    NumberWord("part", Words(rf"(?<=[{HAN}{_KANA}])\s*第\s*(?P<n>{_N})\s*(?:部\s*:|章(?=[「『]))\s*")),
    NumberWord("season", Words(rf"(?<=[\s(])season\s*(?P<n>\d{{1,2}})(?:\)|(?={_PAUSE})){_PAUSE}*", re.IGNORECASE)),
    # A file name: 风骚律师.S04.Better
    NumberWord("season", Words(r"(?<=[^a-z0-9])[. _]?s(?P<n>\d{2})(?:e\d{2,3})?[. _]+(?=\S)", re.IGNORECASE)),
    # 复仇者联盟3:无限战争; the space form only between Chinese words, else "Ocean 8 men".
    NumberWord("sequel", Words(r"(?<=[^\d\W])\s*(?P<n>\d{1,2})\s*(?::|\s[-–—]\s|·)\s*(?=[^\d\s])")),
    NumberWord("sequel", Words(rf"(?<=[{HAN}])(?P<n>\d{{1,2}})\s*(?:之|[\s.])(?=[{HAN}])")),
    NumberWord("sequel", Words(rf"(?<=[{_KANA}])(?P<n>\d{{1,2}})\s+(?=[{HAN}{_KANA}])")),
    NumberWord("sequel", Words(rf"(?<=[{HAN}])(?<!分)之(?P<n>[一二三四五六七八九十])\s*:\s*(?=\S)")),
    NumberWord("sequel", Words(rf"(?:(?<=[{HAN}])\s*|(?<=[^\d\W])\s+)(?P<n>{_ROMAN})\s*:\s*(?=\S)")),
    NumberWord("sequel", Words(rf"(?<=[{HAN}])\s*(?P<n>{_ROMAN})(?:之|\s*)(?=[{HAN}])")),
    NumberWord("part", Words(r"(?<=[\s:])episode\s+(?P<n>[IVX]{1,4})\s*[-–—:]\s*(?=\S)", re.IGNORECASE)),
)
"""Numbers in the middle of a title."""

MAYBE_INSIDE = Words("|".join("0123456789IVX第之") + r"|s(?i:eason)|S(?i:eason)|e(?i:pisode)|E(?i:pisode)")
"""Present in every title with a number in the middle; written so that most letters need no alternative tried."""

BARE_NUMBER = suffix(rf"(?:(?<=[{HAN}])|(?<=[a-z]{{2}})|(?<=[{_KANA}!?)\]~])|(?<=\s))(?P<n>(?!00)\d{{1,2}})")
BARE_ROMAN = Words(rf"(?:(?<=[{HAN}])|(?<=[{HAN}A-Za-z!?.]\s))(?P<n>{_ROMAN})$")
_CHINESE_SEQUEL, _FINANCIAL_SEQUEL = "二三四五六七八九十", "贰叁肆柒捌玖拾"
_BARE_CHINESE = Words(
    rf"(?<=[{HAN}]{{2}})(?<![零〇一二两三四五六七八九十百千万第初老阿小星期周礼拜年月廿卅几数之])"
    rf"(?P<n>[{_CHINESE_SEQUEL}]{{1,2}}|[{_FINANCIAL_SEQUEL}])$"
)
_BARE_LETTER = Words(rf"(?<=[{HAN}]{{2}})\s?(?P<n>[VX])$")
BARE_ENDS: Mapping[str, Words] = {
    **dict.fromkeys(_CHINESE_SEQUEL + _FINANCIAL_SEQUEL, _BARE_CHINESE),
    **dict.fromkeys("VX", _BARE_LETTER),
}
"""Patterns of a numeral at the end of a name, by its last character: 无间道二. It may also be part of the name, so it
adds another reading."""
DIGIT_OF_PART = Words("[2-9]")
BARE_INSIDE = Words(rf"(?<=[{HAN}]{{2}})(?P<n>[2-9])(?=[{HAN}]{{4}})(?![{_COUNTERS}])")
BARE_YEAR = Words(r"(?<![0-9])(?P<n>(?:19|20)\d{2})$|(?<=\s)(?P<m>(?:19|20)\d{2})年$")

BRACKET_NUMBER = Words(rf"(?P<n>\d{{1,2}}|[一二三四五六七八九十]{{1,3}}|{_ROMAN})")
"""A number alone in brackets after a name: 招魂(2), 招魂㈡."""
