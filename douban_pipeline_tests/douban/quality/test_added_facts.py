"""Facts of another source are added to labelled rows; what the rows' own facts confirm stays confirmed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from douban_pipeline.matching.profiles import make_profile
from douban_pipeline.matching.weights import PROFILES
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.tools.evaluate.command import run
from douban_pipeline_tests.tools.evaluate.comparison import changes
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge, facts_of_others
from douban_pipeline_tests.tools.evaluate.labelled_rows import read_corpus, read_gold
from douban_pipeline_tests.tools.evaluate.options import EvaluationOptions

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("profile", PROFILES)
def test_facts_of_the_same_work_take_no_link_away(profile):
    corpus, rows = read_corpus(DATA / "corpus.jsonl"), read_gold(DATA / "gold.jsonl")
    # Every row gets the names, year and people that Douban's own record has: of another source would be fewer.
    others = [
        replace(row, source="other", video=replace(row.video, aliases=(corpus[row.expected].record.title,)))
        for row in rows
        if row.expected is not None
    ]
    facts = facts_of_others([*rows, *(replace(row, file="other.jsonl") for row in others)])
    assert len(facts) >= 2 * len(others)
    without = CorpusJudge(corpus).judge(rows, make_profile(profile))
    together = CorpusJudge(corpus).judge(rows, make_profile(profile), facts=facts)
    lost = [each for each in changes(without, together, facts) if each[0] == "CONFIRMED" != each[1]]
    assert lost == []


def test_the_command_prints_what_added_facts_change(tmp_path):
    for source in ("a", "b"):
        text = (DATA / "gold.jsonl").read_text("utf-8")
        (tmp_path / f"{source}.jsonl").write_text(text.replace('"source": "', f'"source": "{source}-'), "utf-8")
    gold_files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    output = io.StringIO()
    options = EvaluationOptions(
        corpus=DATA / "corpus.jsonl", gold=gold_files, out=tmp_path / "out", hide_truth=False, added_facts=True
    )
    console = Console(file=output, width=120, color_system=None)
    run(options, GivenSettings(match_profile="plan"), console, FakeClock())
    assert "facts added, plan" in output.getvalue()
    assert "→ WRONG" in output.getvalue()
