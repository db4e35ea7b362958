"""Whether the pages of the plans of feeds, digest and TMDB name what there is, and a test for each row."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import typer.main
from sqlalchemy import MetaData

from douban_pipeline.__main__ import app
from douban_pipeline.core.settings_base import BASE_PREFIX, SystemSettings
from douban_pipeline.digest.definitions import build_defs as digest_defs
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.store.tables import metadata as digest_tables
from douban_pipeline.feeds.definitions import build_defs as feeds_defs
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.tables import metadata as feeds_tables
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline.tmdb.definitions import build_defs as tmdb_defs
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.tables import metadata as tmdb_tables
from douban_pipeline_tests.test_plan_coverage import PACKAGE, PAGE, STATES, names_in, names_of, rows_of

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class System:
    """What a system's page may name: its settings, definitions and tables."""

    name: str
    settings: Callable[..., SystemSettings]
    definitions: Callable[..., dg.Definitions]
    tables: MetaData

    @property
    def rows(self) -> list[tuple[int, list[str]]]:
        """The rows of its page, as chapter and cells."""
        return rows_of((PAGE.parent / f"{self.name}.md").read_text(encoding="utf-8"))


SYSTEMS = (
    System("feeds", FeedsSettings, feeds_defs, feeds_tables),
    System("digest", DigestSettings, digest_defs, digest_tables),
    System("tmdb", TmdbSettings, tmdb_defs, tmdb_tables),
)


def variables(settings: Any) -> set[str]:
    """Return the variables of a class of settings, without `BASE_PREFIX`."""
    own = settings.model_config.get("env_prefix", "")
    fields = settings.model_fields.items()
    found = {str(field.validation_alias or f"{own}{name}").upper() for name, field in fields}
    return {name.removeprefix(BASE_PREFIX) for name in found}


@cache
def known(system: System) -> dict[str, Collection[str]]:
    """Return every name that a system's page may use, by kind; modules and tests are looked up as files."""
    tables = system.tables.sorted_tables
    [commands] = [group for name, group in typer.main.get_command(app).commands.items() if name == system.name]  # type: ignore[attr-defined]
    return {
        **names_of(system.definitions(settings=system.settings(_env_file=None))),
        "setting": variables(system.settings) | variables(ServeSettings),
        "table": {table.name for table in tables},
        "column": {f"{table.name}.{column.name}" for table in tables for column in table.columns},
        "index": {str(index.name) for table in tables for index in table.indexes},
        "command": set(commands.commands),
    }


@cache
def symbols(path: Path) -> frozenset[str]:
    """Return the functions, classes, their members and the assigned names of a Python file."""

    def named(body: list[ast.stmt], within: str = "") -> set[str]:
        found: set[str] = set()
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(f"{within}{each.name}")
            if isinstance(each, ast.ClassDef):
                found |= named(each.body, f"{each.name}.")
            targets = (
                each.targets
                if isinstance(each, ast.Assign)
                else [each.target]
                if isinstance(each, ast.AnnAssign)
                else []
            )
            found |= {
                f"{within}{name.id}" for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
        return found

    return frozenset(named(ast.parse(path.read_text(encoding="utf-8")).body))


def is_there(root: Path, name: str) -> bool:
    """Return whether a file below ``root`` exists, and the symbol in it if ``name`` says ``file.py::symbol``."""
    path, _, symbol = name.partition("::")
    return (root / path).exists() and (not symbol or symbol in symbols(root / path))


def faults_of(system: System, chapter: int, row: list[str]) -> list[str]:
    """Return what is wrong with a row, in words."""
    if len(row) != 4:
        return [f"{len(row)} cells in place of 4: {row[0][:60]}"]
    plan, state, where, proof = row
    found = [] if re.match(rf"{chapter}(?:\.\d+)* \S", plan) else [f"it does not begin with {chapter}: {plan[:60]}"]
    if state not in STATES:
        found.append(f"{plan}: {state!r} is no state")
    names = names_in(where)
    tests = re.findall(r"`([^`]+)`", proof)
    if not where or (state != "not" and not names):
        found.append(f"{plan}: nothing is named")
    if state != "not" and not tests:
        found.append(f"{plan}: no test is named")
    for kind, name in names:
        if not (is_there(PACKAGE, name) if kind == "module" else name in known(system).get(kind, ())):
            found.append(f"{plan}: no {kind} {name}")
    found += [f"{plan}: no test {name}" for name in tests if "::" not in name or not is_there(TESTS, name)]
    return found


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_every_row_names_what_there_is_and_its_test(system: System):
    assert len(system.rows) >= 40
    assert [fault for chapter, row in system.rows for fault in faults_of(system, chapter, row)] == []


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_no_requirement_stands_twice(system: System):
    plans = [row[0] for _, row in system.rows]
    assert sorted(plans) == sorted(set(plans))


_TEST = "`feeds/test_scheduler.py::test_rows_of_one_second_are_one_publication`"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (["2.1 due", "built", "`module:feeds/scheduler.py::get_due_sources`", _TEST], None),
        (["2.1 due", "built", "`module:feeds/store/stats.py`, `setting:FEEDS_PROFILE`", _TEST], None),
        (["2.1 due", "built", "`module:feeds/poller.py::Poller.run`, `command:why`", _TEST], None),
        (["2.1 due", "not", "nobody needs it", "—"], None),
        (["2.1 due", "built", "`module:feeds/scheduler.py::nowhere`", _TEST], "no module feeds/scheduler.py::nowhere"),
        (["2.1 due", "built", "`module:feeds/nowhere.py`", _TEST], "no module feeds/nowhere.py"),
        (["2.1 due", "built", "`setting:NOWHERE`", _TEST], "no setting NOWHERE"),
        (["2.1 due", "built", "`column:source_stats.nowhere`", _TEST], "no column source_stats.nowhere"),
        (["2.1 due", "built", "`index:idx_source_stats_type`", "`feeds/test_scheduler.py::test_x`"], "no test feeds"),
        (["2.1 due", "built", "`index:idx_source_stats_type`", "`feeds/test_scheduler.py`"], "no test feeds"),
        (["2.1 due", "built", "`index:idx_source_stats_type`", "—"], "no test is named"),
        (["2.1 due", "built", "somewhere", _TEST], "nothing is named"),
        (["2.1 due", "done", "`check:no_source_starved`", _TEST], "is no state"),
        (["3.1 due", "built", "`check:no_source_starved`", _TEST], "does not begin with 2"),
        (["2.1 due", "built", "`check:no_source_starved`"], "3 cells"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(row: list[str], fault: str | None):
    found = faults_of(SYSTEMS[0], 2, row)
    assert [fault in text for text in found] == ([True] if fault else [])
