"""Whether `plans/douban.md` names what there is: settings, definitions, tables, columns, files."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

import dagster as dg
import pytest
import typer.main

from douban_pipeline.__main__ import app
from douban_pipeline.demo.cms_schema import VOD_COLUMNS
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.setting_values import DEFAULT_FIELD_POLICIES
from douban_pipeline.douban.settings import PREFIX, Settings, variable
from douban_pipeline.douban.store.states import DecisionAction, TaskType
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.library import GivenSettings

PAGE = Path(__file__).resolve().parent / "plans" / "douban.md"
PACKAGE = PAGE.parents[2] / "douban_pipeline"
STATES = ("built", "built another way", "partly", "not")
CHAPTERS = range(1, 13)


def rows_of(page: str) -> list[tuple[int, list[str]]]:
    """Return the rows of the chapters' tables as chapter and cells, without their headings."""
    found: list[tuple[int, list[str]]] = []
    for chapter, body in re.findall(r"^## (\d+)\. [^\n]*\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE):
        lines = [line for line in body.splitlines() if line.startswith("|")]
        found += [(int(chapter), [cell.strip() for cell in line.strip("|").split("|")]) for line in lines[2:]]
    return found


def names_in(where: str) -> list[tuple[str, str]]:
    """Return the names under *where*, each as kind and name."""
    found = [name.partition(":") for name in re.findall(r"`([^`]+)`", where) if ":" in name]
    return [(kind, name) for kind, _, name in found]


def names_of(definitions: dg.Definitions) -> dict[str, Collection[str]]:
    """Return the names of a code location's definitions, by kind."""
    graph = definitions.resolve_asset_graph()
    return {
        "job": {job.name for job in definitions.resolve_all_job_defs()},
        "asset": {key.to_user_string() for key in graph.get_all_asset_keys()},
        "check": {key.name for key in graph.asset_check_keys},
        "sensor": {sensor.name for sensor in definitions.sensors or ()},
        "schedule": {schedule.name for schedule in definitions.schedules or ()},
    }


@cache
def known() -> dict[str, Collection[str]]:
    """Return every name there is, by kind."""
    tables = {table.name.removeprefix("mac_douban_"): table for table in own_tables("mac_").metadata.sorted_tables}
    columns = {f"{name}.{column.name}" for name, table in tables.items() for column in table.columns}
    indexes = {str(index.name) for table in tables.values() for index in table.indexes}
    return {
        "setting": {variable(name).removeprefix(PREFIX) for name in Settings.model_fields},
        **names_of(build_defs(settings=GivenSettings())),
        "table": set(tables),
        "column": columns | {f"vod.{column.name}" for column in VOD_COLUMNS},
        "index": {name.removeprefix("ix_mac_douban_") for name in indexes},
        "policy": set(DEFAULT_FIELD_POLICIES),
        "action": set(DecisionAction),
        "task": set(TaskType),
        "command": set(typer.main.get_command(app).commands),
        "module": {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts},
    }


def faults_of(row: list[str], chapter: int) -> list[str]:
    """Return what is wrong with a row, in words."""
    if len(row) != 3:
        return [f"{len(row)} cells in place of 3: {row[0][:60]}"]
    plan, state, where = row
    found = [] if re.match(rf"{chapter}(?:\.\d+)* \S", plan) else [f"it does not begin with {chapter}: {plan[:60]}"]
    if state not in STATES:
        found.append(f"{plan}: {state!r} is no state")
    names = names_in(where)
    if not where or (state != "not" and not names):
        found.append(f"{plan}: nothing is named")
    found += [f"{plan}: no {kind} {name}" for kind, name in names if name not in known().get(kind, ())]
    return found


def test_every_chapter_of_the_plan_has_a_table():
    page = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^## (\d+)\. .*\n\n\| plan \| state \| where \|\n\|--\|--\|--\|$", page, re.MULTILINE)
    assert [int(number) for number in headings] == list(CHAPTERS)


def test_every_row_is_whole_and_names_what_there_is():
    rows = rows_of(PAGE.read_text(encoding="utf-8"))
    assert len(rows) > 100
    assert [fault for chapter, row in rows for fault in faults_of(row, chapter)] == []


def test_no_requirement_stands_twice():
    plans = [row[0] for _, row in rows_of(PAGE.read_text(encoding="utf-8"))]
    assert sorted(plans) == sorted(set(plans))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (["3.2 due", "built", "`asset:due_videos`"], None),
        (["3.2 due", "not", "nobody needs it"], None),
        (["3.2 due", "built", "`asset:nowhere`"], "no asset nowhere"),
        (["3.2 due", "built", "`setting:NOWHERE`"], "no setting NOWHERE"),
        (["3.2 due", "built", "`job:nowhere`"], "no job nowhere"),
        (["3.2 due", "built", "`column:video.nowhere`"], "no column video.nowhere"),
        (["3.2 due", "built", "`module:nowhere.py`"], "no module nowhere.py"),
        (["3.2 due", "built", "`thing:due_videos`"], "no thing due_videos"),
        (["3.2 due", "built", "somewhere"], "nothing is named"),
        (["3.2 due", "not", ""], "nothing is named"),
        (["3.2 due", "done", "`asset:due_videos`"], "is no state"),
        (["4.2 due", "built", "`asset:due_videos`"], "does not begin with 3"),
        (["3.2 due", "built"], "2 cells"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(row: list[str], fault: str | None):
    found = faults_of(row, 3)
    assert [fault in text for text in found] == ([True] if fault else [])
