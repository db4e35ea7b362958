"""What is measured is what happened, counted as the definitions say."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.douban.reports.health import samples
from douban_pipeline.douban.reports.health.metrics import IntroBudget, TaskOutcomes, VerdictDay, measure, total
from douban_pipeline.douban.reports.health.samples import HealthSample
from douban_pipeline.douban.store.states import IntroState, ReviewStatus, TaskStatus, TaskType
from douban_pipeline_tests.douban.reports.health import planting
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, video

HOUR = timedelta(hours=1)
SUCCESS, FAIL, SKIP = TaskStatus.SUCCESS, TaskStatus.FAIL, TaskStatus.SKIP


@pytest.fixture
def library(shared_library: Library) -> Library:
    """Six videos in two categories, none of them due."""
    library = shared_library.renewed([video(vod_id, type_id=20 if vod_id > 4 else 6) for vod_id in range(1, 7)])
    for vod_id in range(1, 7):
        library.set_state(vod_id, douban_next_sync_at=START + timedelta(days=1))
    return library


def test_an_idle_library_has_nothing_to_tell(library: Library) -> None:
    health = measure(library.services)
    assert (health.at, health.due, health.oldest_due, health.in_review) == (START, 0, None, 0)
    assert (health.open_tasks, health.closed_tasks, health.last_hour, health.last_day) == ([], [], {}, {})
    assert {gate.source for gate in health.gates} == {"douban", "searxng"}
    assert [day.counts for day in health.verdict_days] == [{}] * 15
    assert health.spending == IntroBudget(0.0, 1.0, 0, 0)
    assert total({}).failure_share is None


def test_due_videos_are_counted_in_scope_and_the_oldest_is_named(library: Library) -> None:
    library = scoped(library)
    library.set_state(1, douban_next_sync_at=START - HOUR)
    library.set_state(2, douban_next_sync_at=START - 3 * HOUR)
    library.set_state(3, douban_next_sync_at=START + HOUR)
    library.set_state(5, douban_next_sync_at=START - 9 * HOUR)  # of an excluded category
    library.set_cms(2, vod_name="等得 &amp; 最久")
    health = measure(library.services)
    assert health.due == 2
    oldest = health.oldest_due
    assert oldest is not None
    assert (oldest.vod_id, oldest.title, oldest.since) == (2, "等得 & 最久", START - 3 * HOUR)


def scoped(library: Library) -> Library:
    narrowed = Library(library.url, library.prefix, library.clock, {"excluded_type_ids": "20"})
    narrowed.engine, narrowed.cms = library.engine, library.cms
    return narrowed


def test_who_waits_for_a_person_is_counted_while_it_lives(library: Library) -> None:
    for vod_id in (1, 2, 3):
        library.set_state(vod_id, douban_review_status=ReviewStatus.REVIEW)
    library.set_state(3, douban_next_sync_at=None)
    library.execute("DELETE FROM mac_vod WHERE vod_id = 3")
    assert measure(library.services).in_review == 2


def test_the_queue_is_reported_by_type_and_status(library: Library) -> None:
    planting.tasks(library, 2, TaskStatus.PENDING, ago=HOUR)
    planting.tasks(library, 1, TaskStatus.PENDING, ago=2 * HOUR, first=3, run_after=START + HOUR)
    planting.tasks(library, 1, TaskStatus.RUNNING, first=4, task_type=TaskType.MATCH_DOUBAN_ID)
    matching, syncing = measure(library.services).open_tasks
    assert (matching.task_type, matching.status, matching.count, matching.later) == ("MATCH_DOUBAN_ID", "RUNNING", 1, 0)
    assert (syncing.task_type, syncing.status, syncing.count, syncing.later) == ("SYNC_DOUBAN", "PENDING", 3, 1)
    assert (syncing.oldest, syncing.created) == (START - HOUR, START - 2 * HOUR)


def test_closed_tasks_are_of_the_last_day_with_what_they_took(library: Library) -> None:
    for number in range(1, 21):
        planting.tasks(library, 1, SUCCESS, ago=5 * HOUR, started_at=START - 5 * HOUR - timedelta(seconds=number))
    planting.tasks(library, 1, SUCCESS, started_at=None)
    planting.tasks(library, 1, SKIP, started_at=None)
    planting.tasks(library, 4, SUCCESS, ago=25 * HOUR)
    skipped, succeeded = measure(library.services).closed_tasks
    assert (skipped.status, skipped.count, skipped.mean_seconds, skipped.p95_seconds) == ("SKIP", 1, None, None)
    assert (succeeded.status, succeeded.count) == ("SUCCESS", 21)
    assert succeeded.mean_seconds == pytest.approx(10.5)
    assert succeeded.p95_seconds == 19, "95 of 100 took no longer"


def test_a_task_requeued_after_a_failure_failed_and_one_that_waits_for_a_source_did_not(library: Library) -> None:
    planting.tasks(library, 3, SUCCESS)
    planting.tasks(library, 1, SKIP)
    planting.tasks(library, 1, FAIL, ago=3 * HOUR, task_type=TaskType.AI_INTRO)
    planting.failing(library, [1, 2], "douban: HTTP 503", failures=1)
    planting.tasks(library, 1, TaskStatus.PENDING, first=3, last_error="douban: 验证码")
    library.set_state(4, douban_last_fail_at=START - 2 * HOUR)
    planting.tasks(library, 1, TaskStatus.PENDING, first=4, attempts=1)
    library.set_state(5, intro_ai_last_fail_at=START, douban_last_fail_at=START - 50 * HOUR)
    planting.tasks(library, 1, TaskStatus.RUNNING, first=5, attempts=1, task_type=TaskType.AI_INTRO)
    health = measure(library.services)
    assert health.last_hour == {
        "AI_INTRO": TaskOutcomes(failed=1),
        "SYNC_DOUBAN": TaskOutcomes(succeeded=3, failed=2, skipped=1),
    }
    assert health.last_day == {
        "AI_INTRO": TaskOutcomes(failed=2),
        "SYNC_DOUBAN": TaskOutcomes(succeeded=3, failed=3, skipped=1),
    }
    assert total(health.last_hour) == TaskOutcomes(3, 3, 1)
    assert total(health.last_hour).failure_share == 0.5


def test_a_failure_whose_task_succeeded_later_is_not_reported(library: Library) -> None:
    library.set_state(1, douban_last_fail_at=START - timedelta(minutes=20))
    planting.tasks(library, 1, SUCCESS, attempts=1)
    assert measure(library.services).last_hour == {"SYNC_DOUBAN": TaskOutcomes(succeeded=1)}


def test_days_are_those_of_the_site(library: Library) -> None:
    # Midnight in Shanghai is 16:00 UTC.
    planting.verdicts(library, at=datetime(2026, 2, 28, 15, 59, tzinfo=UTC), CONFIRMED=1, REVIEW=3, UNDECIDED=9)
    planting.verdicts(library, at=datetime(2026, 2, 28, 16, 0, tzinfo=UTC), NOT_FOUND=2)
    planting.verdicts(library, at=START - timedelta(days=16), CONFIRMED=5)
    days = measure(library.services).verdict_days
    assert len(days) == 15
    assert days[-2:] == [
        VerdictDay(date(2026, 2, 28), {"CONFIRMED": 1, "REVIEW": 3, "UNDECIDED": 9}),
        VerdictDay(date(2026, 3, 1), {"NOT_FOUND": 2}),
    ]
    assert not any(day.counts for day in days[:-2])
    assert (days[-2].judged, days[-2].review_share) == (4, 0.75), "what a source's illness left open says nothing"
    assert days[0].review_share is None


def test_money_is_counted_since_midnight_of_the_site(library: Library) -> None:
    planting.intro(library, IntroState.WRITTEN, 0.25)
    planting.intro(library, IntroState.PREVIEW, 0.25)
    planting.intro(library, IntroState.REFUSED, 0.125)
    planting.intro(library, IntroState.FAILED, 0.0)
    planting.intro(library, IntroState.WRITTEN, 9.0, at=datetime(2026, 2, 28, 15, 59, tzinfo=UTC))
    assert measure(library.services).spending == IntroBudget(0.625, 1.0, 2, 2)


def test_what_sources_were_asked_is_reported(library: Library) -> None:
    gate = library.services.gate
    for _ in range(3):
        with gate.slot("douban"):
            pass
    with pytest.raises(SourceUnavailable), gate.slot("searxng"):
        raise SourceUnavailable("searxng", "HTTP 503")
    gates = {status.source: status for status in measure(library.services).gates}
    assert sum(minute.granted for minute in gates["douban"].minutes) == 3
    assert sum(minute.failed for minute in gates["searxng"].minutes) == 1
    assert gates["douban"].used_today == 3


def test_a_sample_comes_back_as_it_was_kept(library: Library) -> None:
    library.set_state(1, douban_next_sync_at=START - HOUR)
    planting.tasks(library, 2, SUCCESS)
    planting.tasks(library, 1, TaskStatus.PENDING, first=3)
    kept = HealthSample.of(measure(library.services))
    samples.keep(library.services, kept)
    samples.keep(library.services, kept)
    assert (kept.due, kept.open_tasks, kept.last_hour) == (1, 1, TaskOutcomes(succeeded=2))
    assert kept.gates == {"douban": "closed", "searxng": "closed"}
    assert samples.newest_before(library.services, START + HOUR, within=2 * HOUR) == kept


def test_samples_are_found_by_their_time_and_forgotten_after_fifteen_days(library: Library) -> None:
    days = timedelta(days=14, hours=23)
    old, new = planting.sample(library, days), planting.sample(library, HOUR)
    services = library.services
    assert samples.newest_before(services, START, within=2 * HOUR) == new
    assert samples.newest_before(services, new.at, within=2 * HOUR) is None
    assert samples.newest_before(services, new.at, within=days) == old
    library.clock.advance(hours=2)
    planting.sample(library, timedelta(0))
    assert samples.newest_before(services, new.at, within=days) is None
