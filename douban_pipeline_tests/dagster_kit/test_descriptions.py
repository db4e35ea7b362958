"""Everything that Dagster's pages name says what it is, in one language: add a location's module to ``LOCATIONS``."""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import douban_pipeline
from douban_pipeline_tests.harness.messages import LOOKUPS, has_chinese

LOCATIONS = (
    "douban_pipeline.definitions",
    *(f"douban_pipeline.locations.{name}" for name in ("feeds", "digest", "tmdb", "comments")),
)
PACKAGE = Path(douban_pipeline.__file__).parent
# A location is loaded in one language a process.
PROGRAM = """
import importlib, json, sys
import dagster as dg
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
shown, stated, assets, owners = {}, {}, {}, {}
for name in sys.argv[1:]:
    repository = importlib.import_module(name).defs.get_repository_def()
    graph = repository.asset_graph
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        if not node.is_executable:
            continue  # another location's, which describes it; this one only reads it
        shown[f"asset {key.to_user_string()}"] = node.description
        for field, value in node.metadata.items():
            stated[f"asset {key.to_user_string()} {field}"] = str(value)
        stated[f"group of {key.to_user_string()}"] = node.group_name
        stated[f"partitions of {key.to_user_string()}"] = str(node.partitions_def)
        assets[key.to_user_string()] = [sorted(node.owners), sorted(node.kinds)]
    for key in graph.asset_check_keys:
        shown[f"check {key.to_user_string()}"] = graph.get_check_spec(key).description
    for job in repository.get_all_jobs():
        if not job.name.startswith("__"):
            shown[f"job {job.name}"] = job.description
            stated |= {f"job {job.name} {name}": str(value) for name, value in {**job.metadata, **job.tags}.items()}
            owners[f"job {job.name}"] = job.owners
            if not set(job.asset_layer.executable_asset_keys):  # of an asset's step the page of the asset says more
                shown |= {f"op {job.name}.{node.name}": node.definition.description for node in job.nodes}
    for each in (*repository.sensor_defs, *repository.schedule_defs):
        shown[f"{type(each).__name__} {each.name}"] = each.description
        if not isinstance(each, dg.RunStatusSensorDefinition):  # these take no owners
            owners[f"{type(each).__name__} {each.name}"] = each.owners
def configs(kind):
    return [found for each in kind.__subclasses__() for found in (each, *configs(each))]
for each in configs(LaunchpadConfig):
    for name, field in each.model_fields.items():
        shown[f"field {each.__module__}.{each.__name__}.{name}"] = field.description
from douban_pipeline.__main__ import app
from douban_pipeline.core.language import language, read_in
from douban_pipeline.ops.cli import in_terminal_language, with_help
with read_in(language()):
    helps = [each.help for each in with_help(in_terminal_language(app)) if each.help]
print(json.dumps([shown, stated, helps, assets, owners]))
"""


@cache
def loaded(**environment):
    given = {f"DOUBAN_PIPELINE_{name.upper()}": value for name, value in environment.items()}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DOUBAN_PIPELINE_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *LOCATIONS],
        env={**clean, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def english():
    return loaded(language="en", owner="editor@example.com", database_url="mariadb+pymysql://someone@127.0.0.1/cms")


def test_everything_says_what_it_is_in_chinese():
    shown, stated, helps, *_ = loaded()
    assert not [name for name, text in shown.items() if not has_chinese(text or "")]
    assert not [text for text in helps if not has_chinese(text)]
    # Sentences of the other language: five words in a row.
    prose = re.compile(r"(?:\b[A-Za-z]{2,}\b[ ,]+){5}")
    code = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
    texts = {**shown, **stated, **{text: text for text in helps}}
    assert not [name for name, text in texts.items() if prose.search(code.sub("", text))]


def test_everything_says_what_it_is_in_english():
    shown, stated, helps, *_ = english()
    assert shown.keys() == loaded()[0].keys()
    assert not [name for name, text in shown.items() if not text or has_chinese(text)]
    assert not [name for name, text in stated.items() if has_chinese(text)]
    assert not [text for text in helps if has_chinese(EXAMPLE.sub("", text))]


EXAMPLE = re.compile("《.*")
FACES = {"assets", "checks", "jobs", "schedules", "sensors", "resources", "partitions", "definitions"}
FOR_REVIEWERS = {PACKAGE / "douban" / "undo" / "assets.py"}
"""The table of drift: each row has the launchpads of the decisions that settle it."""
STORED = {"同类的任务已在队列中", "（数据库不可用，可能重复提醒）", "运行失败："}
"""A task's and a slot's reason, and an alert: people read them on pages, in Chinese."""


def said(node):
    """Yield the texts below a node that are looked up nowhere, without docstrings and examples."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in LOOKUPS:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        example = isinstance(child, ast.keyword) and child.arg == "examples"
        docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not example and not docstring:
            yield from said(child)


def asks_a_reviewer(tree):
    names = {
        node.target.id for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and hasattr(node.target, "id")
    }
    return bool(names & {"reviewer", "operator"})


def test_no_face_of_dagster_says_in_chinese_alone_what_is_not_for_reviewers():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        face = (path.stem in FACES or "dagster_kit" in path.parts) and path not in FOR_REVIEWERS
        if face and not (path.stem == "jobs" and asks_a_reviewer(tree)):
            found[str(path.relative_to(PACKAGE))] = {text for text in said(tree) if has_chinese(text)} - STORED
    assert len(found) > 40
    assert {name: texts for name, texts in found.items() if texts} == {}


@pytest.mark.parametrize("given", [loaded, english])
def test_what_dagster_shows_as_plain_text_has_no_markup(given):
    shown, *_ = given()
    plain = {name: text for name, text in shown.items() if re.match(r"\w+Definition ", name)}
    assert len(plain) > 10
    assert not [name for name, text in plain.items() if re.search(r"[`*]|\]\(", text)]


@pytest.mark.parametrize(
    ("given", "owner", "backend"), [(loaded, "team:site", "sqlite"), (english, "editor@example.com", "mariadb")]
)
def test_assets_have_the_owner_and_the_database_that_the_settings_name(given, owner, backend):
    *_, assets, _ = given()
    assert {tuple(owners) for owners, _ in assets.values()} == {(owner,)}
    assert set(assets["synced_fields"][1]) == {backend, "python"}
    assert not any("mysql" in kinds for _, kinds in assets.values())


@pytest.mark.parametrize(("given", "owner"), [(loaded, "team:site"), (english, "editor@example.com")])
def test_jobs_schedules_and_sensors_have_the_owner_that_the_settings_name(given, owner):
    *_, owners = given()
    assert {name.partition(" ")[0] for name in owners} == {"job", "ScheduleDefinition", "SensorDefinition"}
    assert {name: found for name, found in owners.items() if found != [owner]} == {}


def test_every_config_shows_its_fields_in_one_language():
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert [path.name for path, text in texts.items() if "(dg.Config)" in text] == ["launchpad.py"]


def test_a_wrong_owner_is_refused_by_the_settings():
    with pytest.raises(subprocess.CalledProcessError) as failed:
        loaded(owner="nobody")
    assert "DOUBAN_PIPELINE_OWNER = 'nobody' is not allowed" in failed.value.stderr
