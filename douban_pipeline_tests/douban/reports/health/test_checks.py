"""Each warning comes when it should, says what, how much and what to do, and stays away otherwise."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from douban_pipeline.core.errors import SourceWall
from douban_pipeline.douban.reports.health import checks
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline_tests.douban.reports.health import planting
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, video

SUCCESS, FAIL, SKIP, PENDING = TaskStatus.SUCCESS, TaskStatus.FAIL, TaskStatus.SKIP, TaskStatus.PENDING
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def ask(library: Library, check: dg.AssetChecksDefinition) -> tuple[bool, str]:
    """Return whether a check passes, and what it says; what all of them have in common is looked at here."""
    result = check(library.services)
    assert isinstance(result, dg.AssetCheckResult)
    assert result.severity is dg.AssetCheckSeverity.WARN
    assert result.description
    return result.passed, result.description


@pytest.fixture
def library(shared_library: Library) -> Library:
    """No CMS row, but state rows of 300 videos, all due for an hour."""
    return due(shared_library.renewed(), 300)


def due(library: Library, count: int) -> Library:
    library.add_states(*({"vod_id": vod_id} for vod_id in range(1, count + 1)))
    return library


@pytest.mark.parametrize("check", checks.checks)
def test_they_warn_and_block_nothing(check: dg.AssetChecksDefinition) -> None:
    [spec] = check.check_specs
    assert not spec.blocking
    assert spec.asset_key == dg.AssetKey("pipeline_health")
    assert len(spec.description or "") > 10


@pytest.mark.parametrize("check", checks.checks)
def test_an_empty_library_gives_no_warning(shared_library: Library, check: dg.AssetChecksDefinition) -> None:
    assert ask(shared_library.renewed(), check)[0]


@pytest.mark.parametrize(
    ("then", "passed"),
    [
        (300, True),
        (99, False),  # 201 more
        (100, True),  # 200 more: too few to speak of
        (0, False),
    ],
)
def test_a_growing_backlog_is_warned_of(library: Library, then: int, passed: bool) -> None:
    planting.sample(library, DAY + timedelta(minutes=5), due=then)
    planting.sample(library, timedelta(minutes=5), due=1)
    found, said = ask(library, checks.backlog_steady)
    assert found is passed
    assert ("积压在增长：到期影片 24 小时内从" in said) is not passed


def test_a_large_backlog_may_grow_by_its_share(shared_library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "BACKLOG_GROWTH", 3.0)
    library = due(shared_library.renewed(), 300)
    planting.sample(library, DAY + timedelta(minutes=5), due=75)
    assert ask(library, checks.backlog_steady)[0], "it may grow to four times of it"
    planting.sample(library, DAY + timedelta(minutes=1), due=74)
    passed, said = ask(library, checks.backlog_steady)
    assert not passed
    assert "从 74 部增到 300 部 (+305%)，警戒线 +300%" in said


@pytest.mark.parametrize("ago", [timedelta(hours=23), timedelta(hours=27)])
def test_without_a_measurement_of_a_day_ago_nothing_is_compared(library: Library, ago: timedelta) -> None:
    planting.sample(library, ago, due=0)
    passed, said = ask(library, checks.backlog_steady)
    assert passed
    assert "还没有 24 小时前的记录" in said


@pytest.mark.parametrize(
    ("succeeded", "failed", "passed"),
    [(14, 6, True), (13, 7, False), (12, 7, True), (0, 20, False), (0, 0, True)],
)
def test_many_failures_are_warned_of(library: Library, succeeded: int, failed: int, passed: bool) -> None:
    if succeeded:
        planting.tasks(library, succeeded, SUCCESS)
    if failed:
        planting.tasks(library, failed, FAIL, ago=timedelta(minutes=59), task_type=TaskType.MATCH_DOUBAN_ID)
    planting.tasks(library, 30, SKIP)
    planting.tasks(library, 30, FAIL, ago=timedelta(minutes=61))
    found, said = ask(library, checks.failures_rare)
    assert found is passed
    if not passed:
        assert f"失败 {failed} / {succeeded + failed} 个任务" in said
        assert f"警戒线 30%，以 MATCH_DOUBAN_ID 最多（{failed} 个）" in said


def test_tasks_requeued_after_a_failure_are_failures(shared_library: Library) -> None:
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 31)])
    planting.tasks(library, 20, SUCCESS)
    planting.failing(library, list(range(1, 10)), "douban: HTTP 503", failures=1)
    assert not ask(library, checks.failures_rare)[0]
    library.clock.advance(hours=1, seconds=1)
    planting.tasks(library, 20, SUCCESS)
    assert ask(library, checks.failures_rare)[0]


def succeed(library: Library, status: TaskStatus = SUCCESS, **ago: float) -> None:
    planting.tasks(library, 1, status, ago=timedelta(**ago))


def test_a_standstill_is_warned_of(library: Library) -> None:
    succeed(library, hours=6, seconds=1)
    succeed(library, SKIP, hours=1)
    planting.tasks(library, 3, PENDING, first=10, ago=2 * HOUR)
    passed, said = ask(library, checks.work_succeeds)
    assert not passed
    assert "最近 6 小时没有任何任务完成，而有 300 部到期影片、3 个任务在等待" in said
    assert "传感器" in said
    succeed(library, hours=5, minutes=59)
    assert ask(library, checks.work_succeeds)[0]


def test_work_that_came_only_now_needs_no_success_yet(shared_library: Library) -> None:
    library = shared_library.renewed()
    library.add_states({"vod_id": 1, "douban_next_sync_at": START - timedelta(minutes=59)})
    planting.tasks(library, 1, PENDING, ago=timedelta(minutes=59))
    assert ask(library, checks.work_succeeds)[0]
    library.clock.advance(minutes=1)
    assert not ask(library, checks.work_succeeds)[0]


def test_tasks_that_only_fail_are_a_standstill_though_no_video_is_due(shared_library: Library) -> None:
    library = shared_library.renewed()
    planting.tasks(library, 2, PENDING, ago=3 * HOUR, attempts=3, run_after=START + HOUR)
    passed, said = ask(library, checks.work_succeeds)
    assert not passed
    assert "2 个任务在等待" in said


def test_a_dry_run_closes_tasks_without_writing(shared_library: Library) -> None:
    library = due(shared_library.renewed(dry_run=True), 3)
    succeed(library, SKIP, hours=1)
    assert ask(library, checks.work_succeeds)[0]


def test_an_open_breaker_is_named_and_a_person_who_opened_it_excuses(library: Library) -> None:
    with pytest.raises(SourceWall), library.services.gate.slot("douban"):
        raise SourceWall("douban", "验证码")
    passed, said = ask(library, checks.work_succeeds)
    assert not passed
    assert "熔断中的数据源：douban" in said
    library.services.gate.open("searxng", START + DAY, "搬家", by="小王")
    passed, said = ask(library, checks.work_succeeds)
    assert passed
    assert "searxng (小王)" in said


def shares(library: Library, today: tuple[int, int], before: tuple[int, int]) -> tuple[bool, str]:
    """Plant verdicts as (to review, not to review) and ask about them."""
    for days, (review, others) in ((0, today), (1, before), (14, before), (15, (300, 0))):
        planting.verdicts(library, at=START - timedelta(days=days), REVIEW=review, CONFIRMED=others)
    planting.verdicts(library, UNDECIDED=60)
    return ask(library, checks.review_share_usual)


@pytest.mark.parametrize(
    ("today", "before", "passed"),
    [
        ((20, 80), (100, 400), True),
        ((40, 60), (100, 400), False),  # twenty points more
        ((1, 99), (100, 400), False),  # nineteen points less
        ((29, 71), (100, 400), True),  # nine points: too little to speak of
        ((15, 34), (50, 450), True),  # 49 verdicts say nothing
        ((20, 35), (120, 380), True),  # 12 points, but so few verdicts vary as much by chance
        ((40, 60), (5, 15), True),  # too little is known of the days before
        ((0, 100), (0, 500), True),
    ],
)
def test_an_unusual_share_of_reviews_is_warned_of(
    shared_library: Library, today: tuple[int, int], before: tuple[int, int], passed: bool
) -> None:
    found, said = shares(shared_library.renewed(), today, before)
    assert found is passed
    assert ("请抽查" in said) is not passed


def test_the_warning_says_how_far_it_is_from_what_is_usual(shared_library: Library) -> None:
    _, said = shares(shared_library.renewed(), (40, 60), (100, 400))
    assert said.startswith("今日待审核占 40.0%（100 条判定），前 2 天平均 20.0%。")


def test_numbers_of_a_warning_are_numbers(library: Library) -> None:
    planting.sample(library, DAY + timedelta(minutes=5), due=10)
    result: Any = checks.backlog_steady(library.services)
    assert {name: value.value for name, value in result.metadata.items()} == {"due": 300, "due_a_day_ago": 10}


def test_tasks_that_nobody_takes_up_are_told_after_a_day(library: Library) -> None:
    queue = library.queue("backfill")
    library.enqueue(queue, [NewTask(n, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH) for n in (1, 2, 65)])
    library.enqueue(queue, [NewTask(3, TaskType.SYNC_DOUBAN, TaskStage.SYNC)])
    library.clock.advance(hours=24)
    assert ask(library, checks.tasks_taken_up)[0]
    library.clock.advance(seconds=1)
    passed, said = ask(library, checks.tasks_taken_up)
    assert not passed
    assert said.startswith("有 4 个任务可以执行却等了一天以上（MATCH_DOUBAN_ID 3, SYNC_DOUBAN 1），最早的自 ")
    assert "在 3 个分片：01, 02, 03。" in said
    assert "douban_chain" in said
    # What waits for a source, or is some run's, is not left.
    [task] = library.queue("one").lease([3], TaskStage.SYNC, limit=1)
    for task in library.queue("two").lease([1, 2], TaskStage.SEARCH, limit=3):
        with library.engine.begin() as connection:
            library.queue("two").requeue(connection, task.task_id, library.clock.now() + HOUR, "熔断", failed=False)
    assert ask(library, checks.tasks_taken_up)[0]
