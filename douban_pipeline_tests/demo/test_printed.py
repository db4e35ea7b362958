"""What the demo prints stands in one table, in both languages, and nothing is printed past it."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import pytest

from douban_pipeline.core.ui.language import has_chinese
from douban_pipeline.demo import printed as module
from douban_pipeline.demo.printed import PRINTED, in_chinese, printed

DEMO = Path(module.__file__).parent
FAMILIES = ("list ",)
"""Beginnings of names that are put together where they are used."""


def values_of(text: str) -> list[str]:
    """Return the names of the values that a text takes, sorted."""
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


@pytest.mark.parametrize("name", PRINTED)
def test_a_text_says_the_same_in_both_languages(name: str) -> None:
    chinese, english = PRINTED[name]
    assert has_chinese(chinese)
    assert not has_chinese(english)
    assert values_of(chinese) == values_of(english)


def names_used() -> set[str]:
    """Return every text in the calls of the demo's modules and in what they iterate over."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in DEMO.glob("*.py") if path.stem != "printed"]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_text_is_left_over() -> None:
    assert not {name for name in PRINTED if not name.startswith(FAMILIES)} - names_used()


def test_the_terminal_says_which_language(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"polls": 3, "hours": "1.5", "hits": 2}
    assert printed("polled", **given) == "3 polls in 1.5 hours of the sources' time, 2 found something"
    monkeypatch.setattr("douban_pipeline.core.ui.language.terminal_language", lambda: "zh")
    assert printed("polled", **given) == "在来源的 1.5 小时里轮询 3 次，2 次有新内容" == in_chinese("polled", **given)
