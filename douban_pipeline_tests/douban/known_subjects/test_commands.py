"""The commands ``index …`` as an owner types them."""

from __future__ import annotations

import json
import sqlite3

import pytest
from typer.testing import CliRunner

from douban_pipeline.ops.cli import app
from douban_pipeline_tests.harness.fixtures.calling import caller  # noqa: F401 (a fixture)

ROWS = [
    {"id": 1_291_546, "title": "霸王别姬", "aka": ["再见，我的妾"], "year": 1993},
    {"id": 1_292_052, "title": "肖申克的救赎", "original_title": "The Shawshank Redemption", "year": 1994},
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("DOUBAN_PIPELINE_HOME", str(tmp_path / "home"))

    def invoke(*words):
        result = CliRunner().invoke(app, ["index", *map(str, words)], env={"COLUMNS": "200"})
        assert not result.exception or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "subjects.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in [*ROWS, {"id": 1}]), encoding="utf-8")
    return path


def test_a_file_is_loaded_shown_and_looked_up(run, dump, tmp_path):
    said = run("load", dump, "--dry-run").output
    assert "2 subjects, 2 of them new, 1 rows skipped" in said
    assert "line 3: id '1' is no id of a subject" in said
    assert "nothing was written" in said
    assert not (tmp_path / "home").exists()
    assert "2 subjects:" in run("load", dump).output
    assert "subjects.jsonl (2)" in run("show").output
    assert "not made yet" in run("show").output, "the archive's"
    found = run("find", "霸王別姬", "--year", 1993).output
    assert "1291546" in found
    assert "再见，我的妾" in found
    assert "1292052" not in found


def test_a_subject_of_two_files_is_taken_from_the_first(run, dump, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("id,title\n1291546,另一个名字\n1300267,乱世佳人\n", encoding="utf-8")
    said = run("load", dump, other).output
    assert "2 subjects, 1 of them new" in said
    assert "3 subjects:" in said
    assert "霸王别姬" in run("find", "霸王别姬").output
    assert "1291546" not in run("find", "另一个名字").output


@pytest.mark.parametrize(
    ("name", "content"), [("subjects.txt", "x"), ("subjects.jsonl", '{"id": 1}'), ("missing.csv", None)]
)
def test_a_file_without_subjects_replaces_nothing(run, dump, tmp_path, name, content):
    run("load", dump)
    wrong = tmp_path / f"wrong-{name}"
    if content is not None:
        wrong.write_text(content, encoding="utf-8")
    for words in ((), ("--dry-run",)):
        result = run("load", wrong, *words)
        assert result.exit_code == 1
        assert "nothing was loaded" in result.output
    assert "1291546" in run("find", "霸王别姬").output


def test_without_an_index_it_says_how_to_make_one(run):
    result = run("find", "霸王别姬")
    assert (result.exit_code, "index load FILE" in result.output) == (1, True)


def test_a_damaged_index_is_reported_in_a_line(run, dump, tmp_path, call):
    run("load", dump)
    [path] = (tmp_path / "home" / "subjects").iterdir()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE pair")
    found = call("index", "find", "霸王别姬", DOUBAN_PIPELINE_HOME=str(tmp_path / "home"))
    assert (found.status, found.said.strip()) == (2, "database error: no such table: pair")
