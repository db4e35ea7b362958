"""Labelled rows on the production path: what is predicted, what is wrong, what it cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.known_subjects.name_index import NameIndex, build
from douban_pipeline.douban.known_subjects.subject_files import NamedSubject
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.matching import PROFILES, Kind, Status, Video, make_profile
from douban_pipeline_tests.douban.quality.rows import TRUTH, gold, none_row, result, trap_row
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge
from douban_pipeline_tests.tools.evaluate.labelled_rows import CorpusSubject, GoldRow, read_corpus, read_gold

PEOPLE = {"directors": ("长河导",), "actors": ("甲一", "乙二", "丙三")}
CORPUS = {
    90_000_101: CorpusSubject(
        "movie",
        SubjectRecord(90_000_101, "长河落日记事", year=2021, regions=("中国大陆",), duration_minutes=118, **PEOPLE),
    ),
    90_000_102: CorpusSubject("tv", SubjectRecord(90_000_102, "长河落日记事 第二季", year=2023, episodes=12, **PEOPLE)),
    90_000_103: CorpusSubject("movie", SubjectRecord(90_000_103, "午夜电车站台", year=2022, directors=("电车导",))),
}
RICH = Video(1, "长河落日记事 HD", year=2021, kind=Kind.FILM, regions=("大陆",), **PEOPLE)
PLAN = make_profile("plan")


def row(video: Video, number=1, expected: int | None = 90_000_101, **changes) -> GoldRow:
    return gold(number, video=video, expected=expected, rich=True, **changes)


def test_conflicts_are_those_of_the_top_candidate_and_reasons_those_of_the_verdict():
    season = Video(3, "长河落日记事 第三季", year=2023, kind=Kind.SERIES, **PEOPLE)
    [found] = CorpusJudge(CORPUS).judge([row(season, expected=None)], PLAN)
    assert not found.confirmed
    assert "SEASON_CONFLICT" in found.to_json()["conflicts"]
    assert found.explanation
    assert found.truth_titles == ""


@pytest.mark.parametrize("name", PROFILES)
def test_the_verdict_is_that_of_the_production_path(name):
    profile = make_profile(name)
    rows = [row(RICH), row(Video(2, "午夜电车站台", year=2022), 2, 90_000_103), row(Video(3, "无此片", year=1999), 3)]
    ticks: list[int] = []
    results = CorpusJudge(CORPUS).judge(rows, profile, on_progress=lambda: ticks.append(1))
    assert [each.gold for each in results] == rows
    assert len(ticks) == len(rows)
    assert [each.confirmed for each in results] == [True, name == "calibrated", False]
    for each in results:
        assert each.verdict in set(Status) - {Status.UNDECIDED}
        assert [douban_id for douban_id, _ in each.candidates][:1] == ([each.douban_id] if each.douban_id else [])
        assert set(each.titles) == {douban_id for douban_id, _ in each.candidates}
    first = results[0]
    assert first.truth_titles == first.titles[90_000_101] == "长河落日记事 (2021)"
    assert "rich" in first.strata
    assert [each.dated for each in results] == [True, True, True], "the third row's subject is in the corpus, too"


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        pytest.param(result(gold()), False, id="the true one"),
        pytest.param(result(gold(), best=7), True, id="another one"),
        pytest.param(result(gold(), "REVIEW", 7), False, id="another one, but a person looks"),
        pytest.param(result(gold(), "NOT_FOUND", None), False, id="nothing"),
        pytest.param(result(none_row(), best=TRUTH), True, id="any link where the true one is missing"),
        pytest.param(result(none_row(), "REVIEW", TRUTH), False, id="a review there"),
        pytest.param(result(trap_row(), best=666), True, id="the trap"),
        pytest.param(result(trap_row(), best=667), False, id="beside the trap"),
        pytest.param(result(trap_row(), "REVIEW", 666), False, id="the trap, but a person looks"),
    ],
)
def test_what_counts_as_wrong(found, wrong):
    assert found.wrong is wrong


def named(douban_id: int, title: str, year: int, *aliases: str) -> CorpusSubject:
    return CorpusSubject("movie", SubjectRecord(douban_id, title, aliases=aliases, year=year))


@pytest.mark.parametrize(("year", "details"), [(2019, 3), (2020, 1)])
def test_other_names_are_looked_for_among_subjects_of_the_year(year, details):
    corpus = {90_000_200 + n: named(90_000_200 + n, title, year, "雾港夜行录") for n, title in enumerate("甲乙丙丁")}
    [found] = CorpusJudge(corpus).judge([row(Video(1, "雾港夜行", year=2019))], make_profile("calibrated"))
    assert found.requests == 1 + details


def test_further_aliases_are_asked_for_where_nothing_is_named_alike():
    corpus = {90_000_301: named(90_000_301, "灯塔守望人", 2019)}
    video = Video(1, "Lighthouse", ("ライトハウス", "The Keeper", "灯塔守望人"), year=2019, kind=Kind.FILM)
    [found] = CorpusJudge(corpus).judge([row(video, expected=90_000_301)], make_profile("calibrated"))
    assert found.douban_id == 90_000_301
    assert found.requests == 4, "three searches and one question about the subject"


def test_who_bears_the_name_is_not_looked_for_under_others():
    corpus = {90_000_401: named(90_000_401, "追凶", 2019)}
    video = Video(1, "追凶", ("夜行人", "The Chase"), year=2019)
    [found] = CorpusJudge(corpus).judge([row(video, expected=90_000_401)], make_profile("calibrated"))
    assert (found.verdict, found.requests) == (Status.REVIEW, 2)


def test_known_subjects_are_asked_first_and_the_hidden_one_is_not_among_them(tmp_path: Path):
    path = tmp_path / "known.sqlite"
    build(path, [NamedSubject(90_000_101, "长河落日记事", year=2021)], {"test": 1})
    known = KnownSubjects((NameIndex(path),))
    [found] = CorpusJudge(CORPUS, known=known).judge([row(RICH)], PLAN)
    assert (found.douban_id, found.requests) == (90_000_101, 1), "one question about the subject and no search"
    [hidden] = CorpusJudge(CORPUS, known=known).judge([row(RICH)], PLAN, hide_truth=True)
    assert not hidden.confirmed
    assert 90_000_101 not in dict(hidden.candidates)


REPORTED = Path(__file__).resolve().parents[4] / "shared/cases/titles"
"""Labelled rows of public reports; their licences keep them out of the checkout."""


@pytest.mark.skipif(not REPORTED.is_dir(), reason=f"there are no labelled rows in {REPORTED}")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("corpus", ["corpus.jsonl", "corpus_hidden.jsonl"])
def test_no_reported_row_is_linked_wrongly(corpus: str, profile: str) -> None:
    rows = [row for file in ("gold_rich.jsonl", "gold_thin.jsonl") for row in read_gold(REPORTED / file)]
    judge = CorpusJudge(read_corpus(REPORTED / corpus))
    assert [r.gold.video.title for r in judge.judge(rows, make_profile(profile)) if r.wrong] == []
    hidden = judge.judge([row for row in rows if row.expected], make_profile(profile), hide_truth=True)
    assert [r.gold.video.title for r in hidden if r.confirmed] == []
