"""Parses numerals of titles: Arabic, Chinese (一 to 九百九十九, 廿, 卅, 两, 壹贰叁) and Roman."""

from __future__ import annotations

import re
from functools import lru_cache

CHINESE_DIGITS = "零〇一二两三四五六七八九十百廿卅"
"""Characters of a Chinese numeral, for use inside a character class."""

FINANCIAL_DIGITS = "壹贰叁肆伍陆柒捌玖拾佰"
"""Characters of financial numerals: 叁之章."""

_PLAIN = str.maketrans(FINANCIAL_DIGITS, "一二三四五六七八九十百")
_DIGIT = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"廿": 20, "卅": 30}
# ASCII: İ of Turkish titles counts as an I otherwise.
_ROMAN = re.compile(r"(?=[IVX])(X{0,3})(IX|IV|V?I{0,3})", re.IGNORECASE | re.ASCII)
_ROMAN_UNITS = {"": 0, "I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7, "VIII": 8, "IX": 9}
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_TEENS = ("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_WORDS = {word: value for words in (_CARDINALS, _ORDINALS) for value, word in enumerate(words, start=1)}
_COUNTED = {word: str(value) for value, word in enumerate((*_CARDINALS, *_TEENS), start=1) if value > 1}
_WRITTEN_CHINESE = re.compile(f"[二两三四五六七八九十][{CHINESE_DIGITS}]*")
_WRITTEN_ENGLISH = re.compile(
    # Grouped by first letter, so that few alternatives are tried at a word.
    r"\b(?:e(?:ight|leven|ighteen)|f(?:ive|our|ifteen|ourteen)|nine(?:teen)?|s(?:even|ix|eventeen|ixteen)"
    r"|t(?:wo|en|hree|welve|hirteen))\b",
    re.IGNORECASE,
)


def roman_value(text: str) -> int | None:
    """Return the value of a Roman numeral from I to XXXIX, or None."""
    match = _ROMAN.fullmatch(text)
    if match is None:
        return None
    return 10 * len(match[1]) + _ROMAN_UNITS[match[2].upper()]


def chinese_value(text: str) -> int | None:
    """Return the value of a Chinese numeral below 1000, or None.

    Both notations are read: 二十三 with units, 二三 or 二〇 digit by digit.
    """
    if not text:
        return None
    text = text.translate(_PLAIN)
    if all(char in _DIGIT for char in text):
        return int("".join(str(_DIGIT[char]) for char in text)) if len(text) <= 4 else None
    total, pending = 0, None
    last_unit = 1000
    for char in text:
        if char in _DIGIT:
            if pending is not None and pending != 0:
                return None
            pending = _DIGIT[char]
            continue
        if char in _TENS:
            unit, amount = 10, _TENS[char]
            if pending is not None:
                return None
        elif char in "十百":
            unit = 10 if char == "十" else 100
            # 十 alone, and after 百, means 一十.
            amount = unit * (1 if pending is None else pending)
        else:
            return None
        if unit >= last_unit:
            return None
        total, pending, last_unit = total + amount, None, unit
    return total + (pending or 0)


@lru_cache(maxsize=4096)
def numeral(text: str) -> int | None:
    """Return the value of a numeral in any known notation, English number words included, or None."""
    text = text.strip()
    if text.isdecimal():
        return int(text) if len(text) <= 4 else None
    return _WORDS.get(text.casefold()) or chinese_value(text) or roman_value(text)


@lru_cache(maxsize=65536)
def with_digits(text: str) -> str:
    """Return a text with written-out numerals from 2 on (七, 十二, twelve) replaced by Arabic digits.

    一 and "one" are left: too many names contain them as words.
    """
    return _WRITTEN_ENGLISH.sub(_as_digits, _WRITTEN_CHINESE.sub(_as_digits, text))


def _as_digits(match: re.Match[str]) -> str:
    value = chinese_value(match[0])
    return str(value) if value is not None else _COUNTED.get(match[0].casefold(), match[0])
