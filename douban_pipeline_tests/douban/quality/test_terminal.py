"""What an evaluation says its rows rest on: curve, reasons left with their facts, wrong links side by side."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from douban_pipeline_tests.douban.quality import test_command as commands
from douban_pipeline_tests.douban.quality.rows import TRUTH, gold, none_row, result
from douban_pipeline_tests.tools.evaluate.command import EvaluationError
from douban_pipeline_tests.tools.evaluate.terminal import NOT_AMONG, RIGHT_ON_TOP, WRONG_ON_TOP, print_row, reasons_left

corpus, gold_files, judged = commands.corpus, commands.gold, commands.judged

AGREE, UNKNOWN = {"year": "agree", "director": "unknown"}, {"year": "unknown", "director": "unknown"}


def test_reasons_left_count_tops_and_facts():
    rows = [
        result(gold(1), "REVIEW", outcomes=AGREE, dated=True),
        result(gold(2), "REVIEW", outcomes=UNKNOWN, dated=True),
        result(gold(3), "REVIEW", 7, others=(TRUTH,), outcomes=AGREE),
        result(gold(4), "REVIEW", 7, outcomes=AGREE),
        result(gold(5), "NOT_FOUND", None, reasons=("NO_CANDIDATES",)),
        result(gold(6)),
        result(none_row(7), "REVIEW", 7),
    ]
    first, second = reasons_left(rows)
    assert first == {
        "reasons": ["BELOW_CONFIRM"],
        "rows": 4,
        "fair": 2,
        RIGHT_ON_TOP: 2,
        WRONG_ON_TOP: 1,
        NOT_AMONG: 1,
        "facts": {
            RIGHT_ON_TOP: {"year": {"agree": 1, "unknown": 1}, "director": {"unknown": 2}},
            WRONG_ON_TOP: {"year": {"agree": 1}, "director": {"unknown": 1}},
        },
    }
    assert (second["reasons"], second["rows"], second["facts"]) == (["NO_CANDIDATES"], 1, {})


def test_evidence_is_printed_behind_the_tables(tmp_path: Path, corpus: Path, gold_files: list[Path], judged):
    judged(commands.badly)
    request = commands.request(corpus, gold_files, tmp_path / "out", "calibrated", evidence=True)
    _, output = commands.reported(request)
    for part in ("profile calibrated", "reports ", "curve, linked:", "reasons left, headline rows:", "wrong links: "):
        assert part in output
    # The record, what it was linked to, and what it is.
    assert "  video title 青石巷2; " in output
    assert "  best  douban_id 90000100; kind movie; title 青石巷;" in output
    assert "  truth douban_id 90000101; kind movie; title 青石巷2;" in output
    assert "truth taken out" in output


def test_evidence_as_json_is_all_that_is_printed(tmp_path: Path, corpus: Path, gold_files: list[Path], judged):
    judged(commands.badly)
    request = commands.request(corpus, gold_files, tmp_path / "out", "calibrated", as_json=True)
    _, output = commands.reported(request)
    [found] = json.loads(output)
    assert set(found) == {"rules", "profile", "groups", "curve", "reasons", "wrong"}
    wrong = [(row["file"], row["row"], row["truth taken out"]) for row in found["wrong"]]
    assert ("gold.jsonl", 2, False) in wrong
    assert ("gold.jsonl", 2, True) in wrong
    assert all(row["best"]["douban_id"] == 90_000_100 for row in found["wrong"])


@pytest.mark.parametrize("as_json", [False, True])
def test_one_row_says_what_its_verdict_rests_on(tmp_path: Path, corpus: Path, gold_files: list[Path], as_json: bool):
    out = tmp_path / "out"
    request = commands.request(corpus, gold_files, out, "calibrated", row="gold.jsonl:2", as_json=as_json)
    _, output = commands.reported(request)
    assert not out.exists()
    if as_json:
        there, taken_out = json.loads(output)
        assert (there["verdict"], there["best"]["title"], there["facts"]["director"]) == (
            "CONFIRMED",
            "青石巷2",
            "agree",
        )
        assert taken_out["truth taken out"]
        assert taken_out["verdict"] != "CONFIRMED"
    else:
        assert "gold.jsonl:2 (cbo) CONFIRMED" in output
        assert "gold.jsonl:2 (cbo, truth taken out)" in output
        assert "director agree" in output


def test_a_row_that_is_not_there_is_named(tmp_path: Path, corpus: Path, gold_files: list[Path]):
    with pytest.raises(EvaluationError, match=r"no row 'gold\.jsonl:9'"):
        commands.reported(commands.request(corpus, gold_files, tmp_path / "out", row="gold.jsonl:9"))


def test_a_row_without_a_candidate_has_text_too():
    output = io.StringIO()
    print_row([result(gold(), "NOT_FOUND", None)], {}, TRUTH, False, Console(file=output, width=160))
    assert "NOT_FOUND" in output.getvalue()
    assert "best  —" in output.getvalue()
