"""Whether `docs/rules.md` names what there is, with the values that the code has."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import reduce
from typing import Any

import pytest
from pydantic import BaseModel

from douban_pipeline_tests.documents import text_of
from douban_pipeline_tests.harness.reference import PROJECT

PAGE = "docs/rules.md"
PLACE = re.compile(r"`(?P<path>[\w/]+\.py):(?P<name>[\w.]+)`(?: = `(?P<value>[^`]+)`)?")
"""How a rule's place is written: a file below `douban_pipeline`, a name in it, and its value where one is given."""
UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "min": timedelta(minutes=1), "s": timedelta(seconds=1)}


def rules_of(page: str) -> list[list[str]]:
    """Return the rows of the page's tables as question, answer and places, without their headings."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[-1] != "where"]


def member(owner: Any, name: str) -> Any:
    """Return a module's or class's member; of a field of a class, its default; of a mapping, the value of that key."""
    if isinstance(owner, Mapping):
        return owner[name]
    if isinstance(owner, type) and issubclass(owner, BaseModel) and name in owner.model_fields:
        return owner.model_fields[name].get_default(call_default_factory=True)
    if isinstance(owner, type) and dataclasses.is_dataclass(owner):
        for field in dataclasses.fields(owner):
            if field.name == name:
                return field.default
    return getattr(owner, name)


def value_at(path: str, name: str) -> Any:
    """Return what a place names.

    Raises:
        AttributeError, KeyError, ModuleNotFoundError: It does not exist.
    """
    module = importlib.import_module(f"douban_pipeline.{path.removesuffix('.py').replace('/', '.')}")
    return reduce(member, name.split("."), module)


def spelt(value: Any) -> str:
    """Return a value as the page writes it."""
    if isinstance(value, timedelta):
        unit = next((unit for unit, length in UNITS.items() if not value % length), "s")
        return f"{spelt(value / UNITS[unit])} {unit}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {spelt(each)}" for key, each in value.items())
    if isinstance(value, AbstractSet):
        return ", ".join(sorted(map(spelt, value)))
    return ", ".join(map(spelt, value)) if isinstance(value, tuple | list) else str(value)


def faults_of(row: list[str]) -> list[str]:
    """Return what is wrong with a row, in words."""
    if len(row) != 3 or not all(row):
        return [f"not question, answer and places: {row[0]}"]
    question, _, where = row
    places = list(PLACE.finditer(where))
    if not places or where.count("`") != sum(place.group().count("`") for place in places):
        return [f"{question}: not only places: {where}"]
    found = []
    for place in places:
        try:
            value = value_at(place["path"], place["name"])
        except (AttributeError, KeyError, ModuleNotFoundError):
            found.append(f"{question}: no {place['path']}:{place['name']}")
            continue
        if place["value"] is not None and place["value"] != spelt(value):
            found.append(f"{question}: {place['name']} is {spelt(value)}, not {place['value']}")
    return found


def test_every_rule_is_where_the_page_says_with_that_value():
    rows = rules_of(text_of(PAGE))
    assert len(rows) >= 60
    assert [fault for row in rows for fault in faults_of(row)] == []


def test_no_question_is_asked_twice():
    questions = [row[0] for row in rules_of(text_of(PAGE))]
    assert sorted(questions) == sorted(set(questions))


def test_every_system_has_rules():
    systems = {place["path"].split("/")[0] for row in rules_of(text_of(PAGE)) for place in PLACE.finditer(row[2])}
    packages = {path.name for path in (PROJECT / "douban_pipeline").iterdir() if (path / "settings.py").is_file()}
    assert {"douban", "feeds"} <= packages <= systems


_GUARD = "`matching/guard.py:LOCKED`"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (["what?", "that", f"{_GUARD} = `LOCKED`"], None),
        (["what?", "that", f"{_GUARD}, `core/gate_rules.py:GateRow.ask`"], None),
        (["what?", "that", "`douban/settings.py:Settings.top_n` = `5`"], None),
        (["what?", "that", "`matching/scoring.py:Weights.title` = `45`"], None),
        (["what?", "that", "`core/messages/platforms.py:PLATFORMS.wecom.per_minute` = `20`"], None),
        (["what?", "that", "`core/messages/platforms.py:PLATFORMS.nowhere`"], "no core/messages/platforms.py:PLAT"),
        (["what?", "that", f"{_GUARD} = `OPEN`"], "LOCKED is LOCKED, not OPEN"),
        (["what?", "that", "`matching/guard.py:NOWHERE`"], "no matching/guard.py:NOWHERE"),
        (["what?", "that", "`matching/nowhere.py:LOCKED`"], "no matching/nowhere.py:LOCKED"),
        (["what?", "that", f"{_GUARD} = LOCKED, `elsewhere`"], "not only places"),
        (["what?", "that", "somewhere"], "not only places"),
        (["what?", "", _GUARD], "not question, answer and places"),
        (["what?", _GUARD], "not question, answer and places"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(row: list[str], fault: str | None):
    found = faults_of(row)
    assert [fault in text for text in found] == ([True] if fault else [])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(minutes=90), "90 min"),
        (timedelta(days=30), "30 d"),
        (timedelta(seconds=0.5), "0.5 s"),
        (86_400.0, "86,400"),
        (0.2, "0.2"),
        (True, "True"),
        (frozenset({"b", "a"}), "a, b"),
        ((10.0, 30.0), "10, 30"),
        ({"30": 3.0, "older": 90}, "30: 3, older: 90"),
    ],
)
def test_values_are_spelt_for_readers(value: Any, text: str):
    assert spelt(value) == text
