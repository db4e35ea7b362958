"""Facts of another source are added to labelled rows; what the rows' own facts confirm stays confirmed."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from douban_pipeline.matching import Kind, Video
from douban_pipeline.matching.profiles import make_profile
from douban_pipeline.matching.weights import PROFILES
from douban_pipeline_tests.douban.quality.rows import gold, result
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.tools.evaluate.command import run
from douban_pipeline_tests.tools.evaluate.comparison import changes
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge, facts_of_others
from douban_pipeline_tests.tools.evaluate.labelled_rows import read_corpus, read_gold
from douban_pipeline_tests.tools.evaluate.options import EvaluationOptions

DATA = Path(__file__).parent / "data"


def test_facts_are_another_sources_of_the_same_work():
    film = Video(7, "青石巷", aliases=("Stone Lane",), year=2015, kind=Kind.FILM, directors=("甲",), actors=("乙",))
    rows = [gold(1), gold(2), gold(3, source="imdb", video=film), gold(4, expected=101), gold(5, expected=None)]
    facts = facts_of_others(rows)
    assert set(facts) == {("gold.jsonl", place, "") for place in (1, 2, 3)}
    assert facts["gold.jsonl", 1, ""].names == ("青石巷", "Stone Lane")
    assert (facts["gold.jsonl", 1, ""].key, facts["gold.jsonl", 1, ""].directors) == ("movie/7", ("甲",))
    assert facts["gold.jsonl", 3, ""].names == ("青石巷",)


def test_changes_count_verdicts_without_and_with_the_facts():
    rows = [gold(1), gold(2), gold(3)]
    without = [result(rows[0]), result(rows[1], "REVIEW"), result(rows[2])]
    together = [result(rows[0], "REVIEW"), result(rows[1]), result(rows[2], best=5)]
    facts = facts_of_others([*rows, gold(9, source="imdb")])
    assert changes(without, together, facts) == Counter(
        {("CONFIRMED", "REVIEW"): 1, ("REVIEW", "CONFIRMED"): 1, ("CONFIRMED", "WRONG"): 1}
    )
    assert not changes(without, together, {})


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
