"""Rejects regular expressions of rules that could backtrack for seconds. Pure, and without a clock.

Python's engine backtracks at every repeat and every alternative. The maximum number of ways to match is computed from
the pattern alone, so that no text, accidental or malicious, can block the ranking of a section.
"""

from __future__ import annotations

import ast
import math
import re
from functools import cache
from importlib import import_module
from typing import Any

MOST_TEXT = 2000
"""Number of characters, from the beginning of a text, in which patterns are searched."""
MOST_WAYS = 5_000_000
"""Maximum number of ways to match one text: enough for one gap of any length, some hundredths of a second."""
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_PLAIN = re.compile(r"(?:[^()*+?{\\]|\\[^0-9])*(?:[*+?{](?:[^()*+?{\\]|\\[^0-9])*)?")
"""Patterns with at most one repeat, without groups and references: no text makes them slow."""
_CODES = (
    "MAX_REPEAT MIN_REPEAT POSSESSIVE_REPEAT BRANCH SUBPATTERN ATOMIC_GROUP ASSERT ASSERT_NOT GROUPREF GROUPREF_EXISTS"
)


def pattern_refusal(pattern: str, *, anywhere: bool = True) -> str | None:
    """Return why a pattern is refused; None if it is accepted.

    Raises:
        re.error: It is not a valid regular expression.
    """
    try:
        ways = _Ways(*_engine()).count(pattern) * (MOST_TEXT if anywhere else 1)
    except _UnknownEngine:
        re.compile(pattern)
        if _PLAIN.fullmatch(pattern):
            return None
        return (
            f"正则表达式 {pattern!r} 的代价在此版本的 Python 上无法估算；请不要使用分组，并至多写一个 *、+、? 或 {{}}"
        )
    except _BackReference:
        return f"正则表达式 {pattern!r} 引用了前面的分组（\\1），可能匹配极慢；请去掉引用"
    if ways <= MOST_WAYS:
        return None
    return (
        f"正则表达式 {pattern!r} 在某些正文上会反复回溯而极慢；请不要在重复里再重复，"
        "并给 .* 之类写明上限（如 .{0,20}），=~~ 本身就在任意位置查找，开头不必写 .*"
    )


def literal_refusal(expression: str) -> str | None:
    """Return why a text literal in an expression is refused as a pattern, before anything evaluates the expression."""
    for literal in _LITERAL.findall(expression):
        try:
            refusal = pattern_refusal(str(ast.literal_eval(literal)))
        except (re.error, SyntaxError, ValueError):
            continue  # the parser of the expression reports it
        if refusal is not None:
            return refusal
    return None


class _BackReference(Exception):  # noqa: N818 (it is a finding)
    pass


class _UnknownEngine(Exception):  # noqa: N818 (it is a finding)
    pass


@cache
def _engine() -> tuple[Any, Any]:
    """Return the parser of Python's regular expressions, and the names of its node types.

    Both are private to Python. If a future Python has different ones, only plain patterns are accepted.

    Raises:
        _UnknownEngine: They are not as this module expects them.
    """
    try:
        parser, codes = import_module("re._parser"), import_module("re._constants")
        for name in _CODES.split():
            getattr(codes, name)
        known = [(str(code), len(given)) for code, given in parser.parse("(a{2,3})?")]
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise _UnknownEngine from error
    if known != [("MAX_REPEAT", 3)]:
        raise _UnknownEngine
    return parser, codes


class _Ways:
    """Counts the ways in which a pattern can match."""

    def __init__(self, parser: Any, codes: Any) -> None:
        self._parser, self._codes = parser, codes
        self._repeats = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
        self._groups = (codes.SUBPATTERN, codes.ATOMIC_GROUP, codes.ASSERT, codes.ASSERT_NOT)

    def count(self, pattern: str) -> float:
        """Return the maximum number of ways for a pattern at one position of a text."""
        return self._of(list(self._parser.parse(pattern)), last=True)

    def _of(self, items: list[Any], *, last: bool = False) -> float:
        """Return the maximum number of ways in which a sequence can match at one position."""
        ways, codes = 1.0, self._codes
        for place, (code, given) in enumerate(items):
            if code in self._repeats:
                least, most, body = given
                each = self._of(list(body))
                if not (last and place == len(items) - 1 and each == 1):
                    ways *= _repeated(each, int(least), min(int(most), MOST_TEXT))
            elif code == codes.BRANCH:
                ways *= sum(self._of(list(branch)) for branch in given[1])
            elif code in self._groups:
                ways *= self._of(list(given[-1] if code != codes.ATOMIC_GROUP else given))
            elif code in (codes.GROUPREF, codes.GROUPREF_EXISTS):
                raise _BackReference
        return ways


def _repeated(each: float, least: int, most: int) -> float:
    if each == 1:
        return max(most - least, 0) + 1.0
    ways = 0.0
    for times in range(least, most + 1):
        ways += math.inf if times * math.log2(each) > 64 else each**times
        if ways > MOST_WAYS:
            return math.inf
    return ways
