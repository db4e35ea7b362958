"""Derives the characters in which matches of a pattern may end, so that most patterns are skipped for most titles.

Only the syntax used by the title tables is supported. Other syntax, or an open end, gives `ANYTHING`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

ANYTHING: Final = None
"""The end is unknown."""

_TOKEN = re.compile(
    r"(?P<look>\(\?<?[=!])|(?P<open>\((?:\?:|\?P<\w+>)?)|(?P<close>\))|(?P<either>\|)"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<times>[?*+]|\{\d+(?:,\d*)?\})\??|(?P<end>\$)|(?P<char>\\?.)",
    re.DOTALL,
)
_DIGITS = frozenset("0123456789")
_SPACES = frozenset(" \t\n\r\f\v")
_RANGE = re.compile(r"(?P<escape>\\.)|(?P<low>[^\\])-(?P<high>[^\]\\])|(?P<char>.)", re.DOTALL)
_WIDEST = 200
"""Most characters of a range that are listed individually; a wider range counts as unknown."""


class _OpenEndError(Exception):
    """The end is unknown."""


@lru_cache(maxsize=512)
def ends(source: str) -> frozenset[str] | None:
    """Return the characters, casefolded, that a match of the pattern may end in, or `ANYTHING`.

    Args:
        source: A case-insensitive regular expression. Lookarounds are not part of a match.
    """
    try:
        found, may_be_empty, at = _either(source, 0)
    except _OpenEndError:
        return ANYTHING
    return ANYTHING if may_be_empty or at < len(source) else found


def _either(source: str, at: int) -> tuple[frozenset[str], bool, int]:
    """Parse alternatives up to a closing bracket; return their ends, whether one may be empty, and the end position."""
    found, may_be_empty = frozenset[str](), False
    while True:
        last, empty, at = _sequence(source, at)
        found, may_be_empty = found | last, may_be_empty or empty
        if not source.startswith("|", at):
            return found, may_be_empty, at
        at += 1


def _sequence(source: str, at: int) -> tuple[frozenset[str], bool, int]:
    last, empty = frozenset[str](), True
    while at < len(source) and source[at] not in "|)":
        token = _TOKEN.match(source, at)
        if token is None or token["times"]:
            raise _OpenEndError
        at = token.end()
        if token["look"]:
            at = _behind(source, at)
            continue
        if token["end"]:
            continue
        if token["open"]:
            own, may_be_empty, at = _either(source, at)
            at += 1
        else:
            own, may_be_empty = _single(token[0]), False
        times = _TOKEN.match(source, at)
        if times is not None and times["times"]:
            at = times.end()
            may_be_empty = may_be_empty or times["times"] in "?*" or times["times"].startswith("{0")
        last = last | own if may_be_empty else own
        empty = empty and may_be_empty
    return last, empty, at


def _behind(source: str, at: int) -> int:
    """Return the position after the bracket that closes the one open at ``at``."""
    depth = 1
    while depth:
        token = _TOKEN.match(source, at)
        if token is None:
            raise _OpenEndError
        at = token.end()
        depth += bool(token["look"] or token["open"]) - bool(token["close"])
    return at


def _single(token: str) -> frozenset[str]:
    """Return the characters that one token matches."""
    if not token.startswith("["):
        return _characters(token)
    if token.startswith("[^"):
        raise _OpenEndError
    found: set[str] = set()
    for each in _RANGE.finditer(token[1:-1]):
        if each["low"]:
            low, high = ord(each["low"]), ord(each["high"])
            if high - low > _WIDEST:
                raise _OpenEndError
            found.update(chr(code).casefold() for code in range(low, high + 1))
        else:
            found |= _characters(each[0]) if each["escape"] else {each[0].casefold()}
    return frozenset(found)


def _characters(written: str) -> frozenset[str]:
    if written == ".":
        raise _OpenEndError
    if not written.startswith("\\"):
        return frozenset(written.casefold())
    letter = written[1]
    if letter == "d":
        return _DIGITS
    if letter == "s":
        return _SPACES
    if letter.isalnum():
        raise _OpenEndError
    return frozenset(letter.casefold())
