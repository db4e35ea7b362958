"""The command: what it refuses, and a whole run over a tiny library."""

from __future__ import annotations

import json
import uuid

import pytest
import typer
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from douban_pipeline_tests.conftest import server_url
from douban_pipeline_tests.harness.benchmarks.command import run
from douban_pipeline_tests.harness.benchmarks.measuring import LARGE, SMALL, Measure
from douban_pipeline_tests.harness.benchmarks.prepare import Place
from douban_pipeline_tests.harness.benchmarks.registry import MEASURES, module_of, sizes_for
from douban_pipeline_tests.harness.benchmarks.results import read_results
from douban_pipeline_tests.harness.rig.databases import MARIADB

SIZE = 300


def invoke(*arguments):
    app = typer.Typer()
    app.command()(run)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "220"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "nothing"], "there is no measure 'nothing'"),
        (["--sizes", "many"], "--sizes 'many' is not allowed"),
        (["--sizes", "0,5"], "--sizes '0,5' is not allowed"),
        (["--against", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_made(arguments, said, tmp_path):
    code, output = invoke(*arguments, "--out", tmp_path / "out")
    assert (code, said in output) == (2, True), output
    assert not (tmp_path / "out").exists()


def test_a_server_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(MARIADB[0], "mysql+pymysql://root:secret@127.0.0.1:1/")
    code, output = invoke("--sizes", SIZE, "--out", tmp_path)
    assert code == 2
    assert MARIADB[0] in output
    assert "secret" not in output


def test_every_measure_has_a_name_of_its_own_and_a_home():
    names = [measure.name for measure in MEASURES]
    assert len(set(names)) == len(names)
    assert names[0] == "initialise"
    assert all(module_of(measure).startswith("douban_pipeline_tests.harness.") for measure in MEASURES)
    code, output = invoke("--list")
    assert code == 0
    assert all(name in output for name in names)


@pytest.mark.parametrize(
    ("sizes", "given", "done"),
    [
        ((SMALL, LARGE), (SMALL, LARGE), (SMALL, LARGE)),
        ((SMALL,), (SMALL, LARGE), (SMALL,)),
        ((SMALL,), (500, LARGE), (500,)),
        ((), (SMALL, LARGE), (0,)),
    ],
)
def test_a_measure_is_done_on_its_libraries_and_on_any_of_somebodys_own(sizes, given, done):
    assert sizes_for(Measure("it", "", lambda _: [], sizes), given) == done


@pytest.mark.mariadb
def test_a_tiny_library_is_made_measured_left_as_it_was_and_dropped(tmp_path):
    server, seed = server_url("mariadb"), uuid.uuid4().int % 10**9
    measures = ("initialise", "intake")
    only = ["--only", ", ".join(measures)]
    code, output = invoke("--sizes", SIZE, "--seed", seed, "--out", tmp_path, *only)
    assert code == 0, output
    [path] = tmp_path.glob("*/results.json")
    results = read_results(path)
    assert [(outcome.measure, outcome.size, outcome.changed) for outcome in results.outcomes] == [
        (name, SIZE, ()) for name in measures
    ]
    assert all(outcome.figures and not outcome.failure for outcome in results.outcomes)
    assert results.machine["innodb_flush_log_at_trx_commit"]
    assert "initialise: the whole library" in output
    assert "| initialise: the whole library |" in path.with_suffix(".md").read_text(encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))["seed"] == seed
    with create_engine(server).connect() as connection:
        found = connection.execute(text("SHOW DATABASES LIKE :name"), {"name": Place(SIZE, seed).name}).all()
    assert found == []
