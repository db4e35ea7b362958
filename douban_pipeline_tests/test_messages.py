"""Every text in the code has its Chinese in the catalogue, with the same values, and nothing else is in there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from douban_pipeline.core.language import translated
from douban_pipeline_tests.harness.messages import (
    LOOKUPS,
    PACKAGE,
    Message,
    all_messages,
    has_chinese,
    messages_in,
    read_catalogue,
)

SAME = re.compile(r"(?:[\W\d_]|\{\w+\})*|ID|.*://.*", re.DOTALL)
"""What has no words, or is written alike in both languages."""
EXAMPLE = re.compile("《.*")
VALUE = re.compile(r"(?<!\{)\{(\w*)[^{}]*\}")


def values_of(text: str) -> list[str]:
    """Return the names of the values that a text takes."""
    return sorted({*VALUE.findall(text)})


def catalogue() -> dict[Message, str]:
    return {(each.context or "", str(each.id)): str(each.string) for each in read_catalogue() if each.id}


def test_every_message_has_its_translation() -> None:
    texts = catalogue()
    assert sorted(message for message in all_messages() if not texts.get(message)) == [], "run `make messages`"


def test_no_translation_is_left_over() -> None:
    assert sorted(catalogue().keys() - all_messages()) == [], "run `make messages`"


def test_the_compiled_catalogue_says_what_its_source_says() -> None:
    wrong = [given for given, text in catalogue().items() if translated(given[1], "zh", given[0]) != text]
    assert wrong == [], "run `make messages`"


def test_a_translation_takes_the_values_of_its_message() -> None:
    wrong = [message for (_, message), text in catalogue().items() if values_of(message) != values_of(text)]
    assert wrong == []


@pytest.mark.parametrize(
    ("message", "translation"), [("{a} of {b}", "{a} 之 {b}"), ("{count:,} rows", "{count} 行"), ("{{a}}", "{{甲}}")]
)
def test_values_are_compared_by_name(message: str, translation: str) -> None:
    assert values_of(message) == values_of(translation)


def test_the_code_is_english_and_the_catalogue_chinese() -> None:
    texts = catalogue()
    assert [message for _, message in texts if has_chinese(EXAMPLE.sub("", message))] == []
    assert [text for text in texts.values() if not has_chinese(text) and not SAME.fullmatch(text)] == []


def lookups() -> Iterator[tuple[str, ast.Call, ast.AST | None]]:
    """Yield every lookup of a constant text with its place, and the call of ``format`` around it, if any."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        formatted = {
            id(node.func.value): node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOKUPS[:2]:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node, formatted.get(id(node))


def test_a_message_is_given_the_values_that_it_names() -> None:
    wrong = []
    for place, node, call in lookups():
        if not isinstance(call, ast.Call) or not isinstance(node.args[0], ast.Constant):
            continue
        given = {each.arg for each in call.keywords}
        if None not in given and sorted(map(str, given)) != values_of(str(node.args[0].value)):
            wrong.append(place)
    assert wrong == []


def test_no_text_is_put_together_before_it_is_looked_up() -> None:
    assert [place for place, node, _ in lookups() if isinstance(node.args[0], ast.JoinedStr)] == []


def test_what_is_looked_up_is_found_in_a_module() -> None:
    module = ast.parse(
        """
terminal_text("one", "feeds").format(a=1)
page_text(text)
translated("two", "zh")
Field(0, description="three")
@dg.asset
@page_docstring
def asset():
    '''Four.

    Five.
    '''
"""
    )
    found = {("feeds", "one"), ("", "two"), ("", "Four.\n\nFive.")}
    assert set(messages_in(module)) == found
    assert set(messages_in(module, settings=True)) == found | {("", "three")}
