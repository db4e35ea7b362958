"""The same cause has the same name, however its words differ from run to run; another cause has another."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.errors import SourceThrottled, SourceWall
from douban_pipeline.douban.reports.health.causes import (
    Cause,
    FailedRun,
    cause_name,
    current_causes,
    first_line,
    guard_cause,
    guard_of,
    normalised,
    run_cause,
)
from douban_pipeline.douban.reports.health.metrics import measure
from douban_pipeline.douban.reports.health.samples import HealthSample
from douban_pipeline.douban.store.states import IntroState, TaskStatus, TaskType
from douban_pipeline_tests.douban.reports.health import planting
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, video

LATER = START + timedelta(minutes=45)


@pytest.fixture
def library(shared_library: Library) -> Library:
    return shared_library.renewed([video(vod_id) for vod_id in range(1, 15)])


def causes(library: Library, before: HealthSample | None = None) -> list[Cause]:
    return current_causes(library.services, measure(library.services), before)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("video 17 is gone", "video 170231 is gone"),
        ("took 3.5 s of 20", "took 12 s of 20.25"),
        ("run 0b1e9d1c-8a0e-4a52-9f5e-0d8b3f1f6f4e died", "run 9c1e9d1c-8a0e-4a52-9f5e-0d8b3f1f6f00 died"),
        ("object at 0x7f8870b98bd0", "object at 0x7f8872915290"),
        ("《春天》没有年份", "《秋天的故事》没有年份"),
        ("KeyError: 'vod_area'", "KeyError: 'vod_lang'"),
        ("no answer from http://127.0.0.1:8790/x?id=1", "no answer from https://example.org/y"),
        ("分片12：第3行", "分片7：第40行"),
    ],
)
def test_what_differs_from_case_to_case_is_not_the_cause(one: str, another: str) -> None:
    assert normalised(one) == normalised(another)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("douban: HTTP 503", "douban: HTTP 404"),
        ("douban: HTTP 503", "searxng: HTTP 503"),
        ("ValueError: no year", "KeyError: no year"),
        ("can't connect, won't wait", "can't read, won't wait"),
    ],
)
def test_what_happened_is_the_cause(one: str, another: str) -> None:
    assert normalised(one) != normalised(another)


@given(st.lists(st.text(max_size=120), min_size=1, max_size=5))
def test_a_name_fits_its_column_and_tells_long_causes_apart(parts: list[str]) -> None:
    assert len(cause_name(*parts)) <= 190
    assert cause_name(*parts, "x" * 200) != cause_name(*parts, "x" * 199 + "y")


def test_a_run_is_named_by_the_first_line_of_its_error() -> None:
    error = "\n<b>ValueError</b>: 12 rows\nTraceback: secret inner life\n"
    cause = run_cause(FailedRun("douban_chain"), "synced_fields", error)
    assert cause.name == "run:douban_chain:synced_fields:ValueError: # rows"
    assert cause.title == "运行失败：douban_chain / synced_fields"
    assert "错误原文：ValueError: 12 rows\n" in cause.detail
    assert "inner life" not in cause.detail
    assert run_cause(FailedRun("prune_history"), "", "").name == "run:prune_history::"
    assert len(first_line("x" * 5000)) == 300


def test_a_guard_is_reported_with_what_it_found_and_is_known_again() -> None:
    cause = guard_cause("scored_matches", "confirmed_reach_thresholds", "3 处不符合", "05, 17")
    assert guard_of(cause.name) == ("scored_matches", "confirmed_reach_thresholds")
    assert cause.detail.startswith("3 处不符合，分片 05, 17\n")
    again = guard_cause("scored_matches", "confirmed_reach_thresholds", "", "")
    assert (again.name, again.detail.splitlines()[0]) == (cause.name, "没有说明")


def test_nothing_is_the_matter_with_a_well_library(library: Library) -> None:
    assert causes(library) == []


def test_an_opened_breaker_is_reported_with_its_reason(library: Library) -> None:
    with pytest.raises(SourceWall), library.services.gate.slot("douban"):
        raise SourceWall("douban", "出现验证码\n页面")
    [cause] = causes(library)
    assert (cause.name, cause.kind, cause.title) == ("breaker:douban", "breaker", "数据源已熔断：豆瓣")
    assert "出现验证码 页面，到 2026-03-01" in cause.detail


def test_a_breaker_that_a_person_opened_is_no_news(library: Library) -> None:
    library.services.gate.open("douban", LATER, "维护", by="小王")
    assert causes(library) == []


def test_a_source_that_is_no_longer_asked_is_no_news(shared_library: Library) -> None:
    def wall(library: Library, source: str) -> list[str]:
        library.services.gate.configure(source, 60, 1)
        with pytest.raises(SourceWall), library.services.gate.slot(source):
            raise SourceWall(source, "HTTP 403")
        return [cause.name for cause in causes(library)]

    assert wall(shared_library.renewed(search_provider="douban_suggest"), "searxng") == []
    assert wall(shared_library.renewed(search_provider="chain"), "searxng") == ["breaker:searxng"]
    assert wall(shared_library.renewed(), "openrouter") == []
    writing = shared_library.renewed(ai_intros=True, openrouter_api_key="sk-or-test")
    assert wall(writing, "openrouter") == ["breaker:openrouter"]


def test_a_short_pause_is_news_only_when_it_comes_again_and_again(library: Library) -> None:
    with pytest.raises(SourceThrottled), library.services.gate.slot("searxng"):
        raise SourceThrottled("searxng", "HTTP 429")
    assert causes(library) == []
    was_well = planting.sample(library, timedelta(minutes=5))
    was_ill = planting.sample(library, timedelta(minutes=5), gates={"searxng": "open"})
    assert causes(library, was_well) == []
    assert [cause.name for cause in causes(library, was_ill)] == ["breaker:searxng"]


def test_videos_that_failed_five_times_are_reported_together_by_reason(library: Library) -> None:
    planting.failing(library, [1, 2, 3], "douban: 条目 17 读不出")
    planting.failing(library, [4], "douban: 条目 99 读不出", failures=6)
    planting.failing(library, [5], "douban: HTTP 503")
    planting.failing(library, [6], "douban: HTTP 503", failures=4)
    library.set_cms(4, vod_name="难读的片")
    unavailable, unread = sorted(causes(library), key=lambda cause: cause.name)
    assert (unread.name, unread.title) == ("failing:sync:douban: 条目 # 读不出", "4 部影片连续失败 5 次以上")
    assert "4《难读的片》" in unread.detail
    assert unavailable.name == "failing:sync:douban: HTTP 503"
    assert "5《影片5》" in unavailable.detail
    assert "6《影片6》" not in unavailable.detail


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("内部错误 IndexError: list index out of range", "这是程序的错误"), ("douban: HTTP 503", "修正影片资料")],
)
def test_nobody_is_asked_to_mend_a_video_for_an_error_of_ours(library: Library, reason: str, advice: str) -> None:
    planting.failing(library, [1], reason)
    [cause] = causes(library)
    assert advice in cause.detail.splitlines()[-1]


def test_of_very_many_videos_ten_are_named(library: Library) -> None:
    planting.failing(library, list(range(1, 13)), "douban: HTTP 503")
    [cause] = causes(library)
    assert cause.detail.count("《") == 10
    assert "等 12 部" in cause.detail


def test_intros_that_failed_five_times_are_distinguished_from_the_sync_of_the_same_video(library: Library) -> None:
    library.set_state(1, intro_ai_fail_count=5, intro_ai_last_fail_reason="简介里有事实之外的年份")
    library.set_state(2, intro_ai_fail_count=5, intro_ai_last_fail_reason="简介里有事实之外的年份")
    library.set_state(3, intro_ai_fail_count=5, intro_ai_last_fail_reason="早已过去")
    intros = {"task_type": TaskType.AI_INTRO}
    planting.tasks(library, 1, TaskStatus.PENDING, attempts=5, **intros)
    planting.tasks(library, 1, TaskStatus.FAIL, first=2, **intros)
    planting.tasks(library, 1, TaskStatus.FAIL, first=3, ago=timedelta(hours=25), **intros)
    [cause] = causes(library)
    assert cause.name == "failing:intro:简介里有事实之外的年份"
    assert cause.title == "2 部影片的 AI 简介连续失败 5 次以上"


def test_a_video_that_succeeded_again_is_reported_no_more(library: Library) -> None:
    planting.failing(library, [1], "douban: HTTP 503")
    library.set_state(1, douban_sync_fail_count=0)
    assert causes(library) == []


@pytest.mark.parametrize(("spent", "alerted"), [(0.5, False), (1.0, True), (1.5, True)])
def test_a_used_up_budget_is_reported(shared_library: Library, spent: float, alerted: bool) -> None:
    library = shared_library.renewed(ai_intros=True, openrouter_api_key="sk-or-test")
    planting.intro(library, IntroState.WRITTEN, spent)
    assert [cause.name for cause in causes(library)] == ["budget"] * alerted


def test_a_budget_of_nothing_is_none(shared_library: Library) -> None:
    library = shared_library.renewed(ai_intros=True, openrouter_api_key="sk-or-test", llm_budget_usd_per_day=0)
    assert causes(library) == []
