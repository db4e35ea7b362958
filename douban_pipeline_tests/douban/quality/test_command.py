"""The command: what it writes, what it says, how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from douban_pipeline.matching.profiles import Profile
from douban_pipeline.matching.weights import PROFILES
from douban_pipeline_tests.documents import PROJECT
from douban_pipeline_tests.douban.quality.rows import FIELDS, result
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.tools.evaluate.command import run
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge, Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import GoldRow
from douban_pipeline_tests.tools.evaluate.options import EvaluationOptions

FIRST, SECOND = 90_000_100, 90_000_101
SUBJECTS = [
    {
        "id": "90000100",
        "title": "青石巷",
        "aka": ["Bluestone Lane"],
        "year": 2015,
        "kind": "movie",
        "regions": ["中国大陆"],
    }
    | {"directors": ["林远山"], "actors": ["周见微", "何大川", "苏小荷"], "genres": ["剧情"], "duration_min": 104},
    {"id": "90000101", "title": "青石巷2", "year": 2018, "kind": "movie", "regions": ["中国大陆"]}
    | {"directors": ["林远山"], "actors": ["周见微", "何大川"], "genres": ["剧情"], "duration_min": 110},
]
FACTS = {"vod_sub": "", "vod_area": "大陆", "vod_class": "剧情", "vod_remarks": "", "type": "movie", "source": "cbo"}
PEOPLE = {"vod_director": "林远山", "vod_actor": "周见微,何大川,苏小荷"}
GOLD = [
    FACTS | PEOPLE | {"vod_name": "青石巷", "vod_year": "2015", "douban_id": "90000100", "label": "gold", "gid": "a"},
    FACTS | PEOPLE | {"vod_name": "青石巷2", "vod_year": "2018", "douban_id": "90000101", "label": "gold", "gid": "b"},
    FACTS
    | PEOPLE
    | {"vod_name": "不在库中的电影", "vod_year": "2011", "douban_id": "999", "label": "gold", "gid": "c"},
]
OTHERS = [
    FACTS | {"vod_name": "青石巷", "vod_year": "1987", "vod_director": "", "vod_actor": "", "expect": "none"},
    FACTS | {"vod_name": "青石巷2024", "vod_year": "", "vod_director": "", "vod_actor": "", "trap_id": "90000100"},
]


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "corpus.jsonl", SUBJECTS)


@pytest.fixture
def gold(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / "gold.jsonl", GOLD), write(tmp_path / "others.jsonl", OTHERS)]


Judge = Callable[[GoldRow, Profile], Result]


def well(row: GoldRow, profile: Profile) -> Result:
    """Link what has a subject in the corpus, nothing else."""
    del profile
    return result(row, best=row.expected) if row.expected in (FIRST, SECOND) else result(row, "NOT_FOUND", None)


def badly(row: GoldRow, profile: Profile) -> Result:
    """Link everything to the first subject, but only with one profile."""
    return result(row, best=FIRST) if profile.name == "calibrated" else well(row, profile)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Judge], None]:
    """Put a judge of the test's in the matcher's place."""

    def put(judge: Judge) -> None:
        def judge_rows(
            against: CorpusJudge,
            rows: list[GoldRow],
            profile: Profile,
            *,
            hide_truth: bool,
            facts: object,
            on_progress: Callable[[], None],
        ):
            del against, facts
            rows = [replace(row, expected=None) for row in rows] if hide_truth else rows
            for _ in rows:
                on_progress()
            return [judge(row, profile) for row in rows]

        monkeypatch.setattr(CorpusJudge, "judge", judge_rows)

    put(well)
    return put


def reported(options: EvaluationOptions, *, terminal: bool = False) -> tuple[bool, str]:
    output = io.StringIO()
    console = Console(file=output, width=160, force_terminal=terminal, color_system=None)
    kept = run(options, GivenSettings(), console, FakeClock(datetime(2026, 3, 1, tzinfo=UTC)))
    return kept, output.getvalue()


def request(corpus: Path, gold: list[Path], out: Path, *profiles: str, **changes: Any) -> EvaluationOptions:
    return EvaluationOptions(corpus=corpus, gold=gold, profile=list(profiles or ("plan",)), out=out, **changes)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_profile_writes_predictions_and_report(tmp_path: Path, corpus: Path, gold: list[Path], judged):
    out = tmp_path / "deep" / "out"
    kept, output = reported(request(corpus, gold, out))
    assert kept
    assert files(out) == {"predictions.jsonl", "report.html"}
    rows = [json.loads(line) for line in (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["file"], row["row"], row.get("gid"), row["verdict"]) for row in rows] == [
        ("gold.jsonl", 1, "a", "CONFIRMED"),
        ("gold.jsonl", 2, "b", "CONFIRMED"),
        ("gold.jsonl", 3, "c", "NOT_FOUND"),
        ("others.jsonl", 1, None, "NOT_FOUND"),
        ("others.jsonl", 2, None, "NOT_FOUND"),
    ]
    assert list(rows[0]) == FIELDS
    assert "Rows whose true subject is not in the corpus: 1." in (out / "report.html").read_text(encoding="utf-8")
    assert "66.7 %" in output
    assert str(out) in output


@pytest.mark.parametrize(
    ("limits", "kept", "said"),
    [
        ({}, True, ""),
        ({"most_wrong": 4, "least_coverage": 1.0}, True, ""),
        ({"most_wrong": 3}, False, "calibrated: 4 wrong links, and at most 3 are allowed"),
        ({"most_wrong_hidden": 3}, True, ""),
        (
            {"most_wrong_hidden": 2},
            False,
            "calibrated: 3 links of rows whose true subject was taken out, and at most 2 are allowed",
        ),
        (
            {"least_coverage": 0.667},
            False,
            "plan: coverage of the headline sources is 66.667 %, and at least 66.7 % is required",
        ),
    ],
)
def test_limits(tmp_path: Path, corpus: Path, gold: list[Path], judged, limits: dict[str, Any], kept: bool, said: str):
    judged(badly)
    profiles = ("calibrated",) if limits.get("least_coverage") == 1.0 or not said else PROFILES
    found, output = reported(request(corpus, gold, tmp_path / "out", *profiles, **limits))
    assert found is kept
    assert said in output
    assert ("limit not met:" in output) is not kept


# --- as a person uses it ----------------------------------------------------------------------------------------------


def run_cli(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the tool in a process of its own."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "DOUBAN_PIPELINE"))
    }
    environment = inherited | {"COLUMNS": "300", "PYTHONPATH": str(PROJECT)} | variables
    command = [sys.executable, "-m", "douban_pipeline_tests.tools.evaluate", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240)


def test_from_the_command_line(tmp_path: Path, corpus: Path, gold: list[Path]):
    arguments = ["--corpus", str(corpus), "--gold", *map(str, gold)]
    first = run_cli(*arguments, "--profile", "both", "--most-wrong", "0", cwd=tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    home = tmp_path / ".douban_pipeline" / "evaluation"
    assert {"summary.html", "plan/predictions.jsonl", "calibrated/report.html"} <= files(home)
    again = run_cli(*(*arguments, "--against", str(home), "--out", "again", "--least-coverage", "0.9"), cwd=tmp_path)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "regressed 0, improved 0, unchanged 5, new 0, gone 0" in again.stdout
    assert "limit not met: calibrated: coverage of the headline sources is" in again.stdout


def test_the_settings_have_their_say_and_gold_files_may_each_have_their_option(
    tmp_path: Path, corpus: Path, gold: list[Path]
):
    options = [word for path in gold for word in ("--gold", str(path))]
    settings = {"DOUBAN_PIPELINE_MATCH_PROFILE": "calibrated", "DOUBAN_PIPELINE_CONFIRM_SCORE": "91"}
    done = run_cli("--corpus", str(corpus), *options, "--out", "out", cwd=tmp_path, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len((tmp_path / "out" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()) == 5
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "profile calibrated;" in report
    assert "Confirmed from 91 points" in report
    assert "Weights or thresholds are not the defaults" in report


def test_what_is_wrong_is_reported_in_a_line(tmp_path: Path, corpus: Path):
    name = "broken [1].jsonl"
    (tmp_path / name).write_text(json.dumps(GOLD[0]) + '\n{"vod_name": ', encoding="utf-8")
    done = run_cli("--corpus", str(corpus), "--gold", name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"error: {name}, line 2: no JSON" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / ".douban_pipeline").exists()
