"""What launches runs, and why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from douban_pipeline.douban.chain.match.ordered import RecheckOrder, order_rechecks
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, chain_runs_under_way, shard_range_tags
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.schedules import schedules_for
from douban_pipeline.douban.sensors import decisions_sensor, due_videos_sensor, intake_sensor
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction, TaskStage
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, Library, build_library, video
from douban_pipeline_tests.harness.fixtures.locations import add_run, daily_digest, foreign


@pytest.fixture
def library(sqlite_url: str) -> Iterator[Library]:
    """Twelve videos, all due: ten in shard 5, one each in the shards 6 and 7."""
    ids = [5 + 64 * number for number in range(10)] + [6, 7]
    with build_library(sqlite_url, [video(vod_id) for vod_id in ids]) as library:
        for vod_id in ids:
            library.set_state(vod_id, douban_next_sync_at=START)
        yield library


def tick(
    sensor: dg.SensorDefinition, library: Library, instance: dg.DagsterInstance, cursors: list[str] | None = None
) -> list[dg.RunRequest] | str:
    """Return the runs a tick asks for, or why it asks for none; ``cursors`` are kept from tick to tick."""
    cursor = cursors[-1] if cursors else None
    context = dg.build_sensor_context(instance=instance, resources={"services": library.services}, cursor=cursor)
    result = sensor(context)
    if cursors is not None and context.cursor_updated and context.cursor:
        cursors.append(context.cursor)
    if isinstance(result, dg.SkipReason):
        return result.skip_message or ""
    if isinstance(result, dg.RunRequest):
        return [result]
    assert isinstance(result, dg.SensorResult)
    return list(result.run_requests or [])


def start(instance: dg.DagsterInstance, tags: dict[str, str], status: dg.DagsterRunStatus) -> None:
    """Let a chain run be under way."""
    job = build_defs(settings=GivenSettings()).get_repository_def().get_job(CHAIN)
    instance.create_run_for_job(job, tags=tags, status=status)


def test_a_shard_with_enough_due_videos_is_run(library: Library, instance: dg.DagsterInstance) -> None:
    requests = tick(due_videos_sensor, library, instance)
    assert [request.partition_key for request in requests] == ["05"]
    assert requests[0].tags["pipeline"] == "sync"


def test_no_run_is_held_back_because_the_clock_was_set_back(library: Library, instance: dg.DagsterInstance) -> None:
    # Dagster launches nothing for a key that it knows, and keys made of the time would recur.
    [request] = tick(due_videos_sensor, library, instance)
    assert request.run_key is None


def test_a_few_videos_wait_until_one_has_waited_long_enough(library: Library, instance: dg.DagsterInstance) -> None:
    for vod_id in range(5, 640, 64):
        library.set_state(vod_id, douban_next_sync_at=START + timedelta(days=1))
    reason = tick(due_videos_sensor, library, instance)
    assert reason == "2 个分片有 2 部影片到期，不够一次运行：其中一部等满 10 分钟时启动"
    library.clock.advance(minutes=10)
    assert [request.partition_key for request in tick(due_videos_sensor, library, instance)] == ["06", "07"]


def under(library: Library, **options: object) -> Library:
    """Return the same library under changed settings."""
    changed = replace(library, options={**library.options, **options})
    changed.engine, changed.cms = library.engine, library.cms
    return changed


def order_a_recheck(library: Library) -> None:
    """Let a person order a recheck of video 7."""
    library.set_state(7, vod_douban_id=90_000_101, douban_review_status="CONFIRMED")
    order_rechecks(library.services, RecheckOrder("小王", "读者说不对", vod_ids=[7]), run_id="r", dry_run=False)


def test_selections_keep_their_distance_but_for_what_people_ordered(
    library: Library, instance: dg.DagsterInstance
) -> None:
    paced = under(library, due_interval_seconds=120)
    cursors: list[str] = []
    for number in range(20):
        assert tick(due_videos_sensor, paced, instance, cursors) != [], number
        until = datetime.fromisoformat(cursors[-1])
        waits = (until - paced.clock.now()).total_seconds()
        assert 120 <= waits <= 240
        paced.clock.advance(seconds=waits - 1)
        reason = tick(due_videos_sensor, paced, instance, cursors)
        assert isinstance(reason, str)
        assert reason.startswith("按 DOUBAN_PIPELINE_DUE_INTERVAL_SECONDS 的间隔，")
        paced.clock.advance(seconds=1)
    assert len({datetime.fromisoformat(cursor).microsecond for cursor in cursors}) > 1, "by lot"
    assert tick(due_videos_sensor, paced, instance, cursors) != []
    order_a_recheck(paced)
    requests = tick(due_videos_sensor, paced, instance, cursors)
    assert [request.partition_key for request in requests] == ["07"], "people do not wait"
    assert cursors[-1] == cursors[-2], "nor do they put off what is due"


@pytest.mark.parametrize("cursor", ["0", "2026-11-22T10:00:00", "\0" * 500])
def test_a_cursor_that_is_no_time_is_a_fresh_start_and_said_once(
    library: Library, instance: dg.DagsterInstance, cursor: str, capfd: pytest.CaptureFixture[str]
) -> None:
    cursors = [cursor]
    assert tick(due_videos_sensor, library, instance, cursors) == tick(due_videos_sensor, library, instance, [])
    assert tick(due_videos_sensor, library, instance, cursors) != []
    assert capfd.readouterr().err.count("is no time with a zone: starting afresh") == 1


def test_outside_the_active_hours_only_what_people_ordered_is_run(
    library: Library, instance: dg.DagsterInstance
) -> None:
    local = START.astimezone(library.settings.zone).hour
    awake = under(library, active_hours=frozenset({local}))
    assert [request.partition_key for request in tick(due_videos_sensor, awake, instance)] == ["05"]
    asleep = under(library, active_hours=frozenset({(local + 1) % 24, (local + 2) % 24}))
    reason = tick(due_videos_sensor, asleep, instance)
    assert isinstance(reason, str)
    assert reason.startswith("现在不在工作时段（")
    order_a_recheck(asleep)
    assert [request.partition_key for request in tick(due_videos_sensor, asleep, instance)] == ["07"]
    record(asleep.services, [Decision(6, DecisionAction.ignore)], reviewer="小王", note="", run_id="r", dry_run=False)
    assert [request.job_name for request in tick(decisions_sensor, asleep, instance)] == ["apply_decisions"]
    asleep.clock.advance(hours=1)
    assert "05" in [request.partition_key for request in tick(due_videos_sensor, asleep, instance)]


@pytest.mark.parametrize(
    ("hours", "cron"), [((), "0 4 * * 0"), ((1, 2), "0 1 * * 0"), ((3, 4), "0 4 * * 0"), ((22,), "0 22 * * 0")]
)
def test_the_weekly_backfill_begins_in_an_active_hour(hours: tuple[int, ...], cron: str) -> None:
    assert (
        next(each.cron_schedule for each in schedules_for("Asia/Shanghai", hours) if each.name == "weekly_backfill")
        == cron
    )


def test_a_recheck_that_a_person_ordered_is_run_at_once(library: Library, instance: dg.DagsterInstance) -> None:
    library.clock.advance(days=-1)
    assert tick(due_videos_sensor, library, instance) == "没有到期的影片"
    order_a_recheck(library)
    assert [request.partition_key for request in tick(due_videos_sensor, library, instance)] == ["07"]
    # Not while a run has it.
    library.queue().lease([7], TaskStage.SEARCH, limit=1)
    assert tick(due_videos_sensor, library, instance) == "没有到期的影片"


def test_nothing_due_is_said(library: Library, instance: dg.DagsterInstance) -> None:
    library.clock.advance(days=-1)
    assert tick(due_videos_sensor, library, instance) == "没有到期的影片"


@pytest.mark.parametrize("tags", [{"dagster/partition": "05"}, shard_range_tags(0, 7)])
@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_a_running_shard_is_left_alone(
    library: Library, instance: dg.DagsterInstance, tags: dict[str, str], status: dg.DagsterRunStatus
) -> None:
    start(instance, tags, status)
    reason = tick(due_videos_sensor, library, instance)
    assert isinstance(reason, str)
    assert "影片到期" in reason


def test_a_finished_run_does_not_count(library: Library, instance: dg.DagsterInstance) -> None:
    start(instance, {"dagster/partition": "05"}, dg.DagsterRunStatus.SUCCESS)
    assert len(tick(due_videos_sensor, library, instance)) == 1


def test_no_more_runs_than_allowed(library: Library, instance: dg.DagsterInstance) -> None:
    for shard in ("40", "41"):
        start(instance, {"dagster/partition": shard}, dg.DagsterRunStatus.STARTED)
    assert len(tick(due_videos_sensor, library, instance)) == 1, "one waits in the queue until one of them ends"
    start(instance, {"dagster/partition": "42"}, dg.DagsterRunStatus.STARTING)
    assert "主作业已有 3 次运行" in tick(due_videos_sensor, library, instance)
    assert sorted(chain_runs_under_way(instance).shards) == [[40], [41], [42]]


def test_where_sources_allow_many_requests_a_run_covers_neighbouring_shards(
    library: Library, instance: dg.DagsterInstance
) -> None:
    library.clock.advance(minutes=10)
    fast = under(library, search_requests_per_minute=300, douban_requests_per_minute=300)
    [request] = tick(due_videos_sensor, fast, instance)
    assert request.partition_key is None
    covered = {name: value for name, value in request.tags.items() if "range" in name}
    assert covered == shard_range_tags(5, 7)


def test_runs_of_backfills_leave_the_sensor_its_own(library: Library, instance: dg.DagsterInstance) -> None:
    start(instance, {"pipeline": "backfill", **shard_range_tags(8, 15)}, dg.DagsterRunStatus.STARTED)
    start(instance, {"dagster/backfill": "abcdefgh", **shard_range_tags(16, 23)}, dg.DagsterRunStatus.STARTED)
    assert [request.partition_key for request in tick(due_videos_sensor, library, instance)] == ["05"]


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE])
@pytest.mark.parametrize("job", ["digest_job", "__ASSET_JOB"])
def test_a_date_range_backfill_of_another_system_neither_stops_nor_pauses_the_chain(
    library: Library, instance: dg.DagsterInstance, job: str, status: dg.DagsterRunStatus
) -> None:
    tags = {
        "dagster/asset_partition_range_start": "2026-01-01",
        "dagster/asset_partition_range_end": "2026-01-31",
        "dagster/backfill": "abcdefgh",
    }
    assets = frozenset({daily_digest.key})
    add_run(instance, foreign.get_job(job), location="feeds", tags=tags, status=status, assets=assets)
    library.clock.advance(seconds=(datetime.now(UTC) - library.clock.now()).total_seconds())
    requests = tick(due_videos_sensor, library, instance)
    assert {request.partition_key for request in requests} >= {"05"}
    assert chain_runs_under_way(instance).shards == []


def test_a_failing_guard_is_said_and_when_the_next_run_is_tried(library: Library, instance: dg.DagsterInstance) -> None:
    library.clock.advance(seconds=(datetime.now(UTC) - library.clock.now()).total_seconds())
    instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey("scored_matches"),
            check_name="confirmed_reach_thresholds",
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata={},
        )
    )
    reason = tick(due_videos_sensor, library, instance)
    assert isinstance(reason, str)
    assert reason.startswith("scored_matches 的检查 confirmed_reach_thresholds 没有通过")
    library.clock.advance(minutes=11)
    assert isinstance(tick(due_videos_sensor, library, instance), list)


def test_a_shard_whose_run_failed_is_paused(library: Library, instance: dg.DagsterInstance) -> None:
    start(instance, {"dagster/partition": "05"}, dg.DagsterRunStatus.FAILURE)
    library.clock.advance(seconds=(datetime.now(UTC) - library.clock.now()).total_seconds())
    assert [request.partition_key for request in tick(due_videos_sensor, library, instance)] == ["06", "07"]


def test_a_closed_gate_is_said_and_until_when(library: Library, instance: dg.DagsterInstance) -> None:
    library.services.gate.open("douban", START + timedelta(minutes=45), "验证码页面")
    reason = tick(due_videos_sensor, library, instance)
    assert "来源 douban 熔断到" in reason
    assert "验证码页面" in reason
    library.clock.advance(minutes=46)
    assert isinstance(tick(due_videos_sensor, library, instance), list)


@pytest.mark.parametrize("source", ["searxng", "openrouter"])
def test_while_another_source_is_closed_links_are_still_synced(
    library: Library, instance: dg.DagsterInstance, source: str
) -> None:
    library.services.gate.configure(source, 60, 1)
    library.services.gate.open(source, START + timedelta(minutes=45), "验证码页面")
    assert [request.partition_key for request in tick(due_videos_sensor, library, instance)] == ["05"]


def test_excluded_categories_launch_nothing(sqlite_url: str, instance: dg.DagsterInstance) -> None:
    rows = [video(5 + 64 * number, type_id=20) for number in range(20)]
    with build_library(sqlite_url, rows, excluded_type_ids="20") as library:
        for row in rows:
            library.set_state(row["vod_id"], douban_next_sync_at=START)
        assert tick(due_videos_sensor, library, instance) == "没有到期的影片"


@pytest.mark.parametrize("sensor", [due_videos_sensor, intake_sensor, decisions_sensor])
def test_before_the_library_is_set_up_the_tick_says_what_to_do(
    sensor: dg.SensorDefinition, sqlite_url: str, instance: dg.DagsterInstance
) -> None:
    services = open_services(GivenSettings(database_url=sqlite_url))
    context = dg.build_sensor_context(instance=instance, resources={"services": services})
    result = sensor(context)
    services.close()
    assert isinstance(result, dg.SkipReason)
    assert "douban-pipeline setup" in (result.skip_message or "")
    assert "initialise_library" in (result.skip_message or "")


def test_a_database_that_does_not_answer_fails_the_tick(instance: dg.DagsterInstance) -> None:
    # A failed read must not look as if nothing were due.
    services = open_services(GivenSettings(database_url="mysql+pymysql://nobody@127.0.0.1:1/nowhere"))
    context = dg.build_sensor_context(instance=instance, resources={"services": services})
    with pytest.raises(OperationalError):
        due_videos_sensor(context)
    services.close()


def test_intake_is_launched_for_new_rows_and_only_once(library: Library, instance: dg.DagsterInstance) -> None:
    assert tick(intake_sensor, library, instance) == "CMS 没有新增或改动的影片"
    library.add(video(5000))
    assert len(tick(intake_sensor, library, instance)) == 1
    repository = build_defs(settings=GivenSettings()).get_repository_def()
    instance.create_run_for_job(repository.get_job("take_in_changes"), status=dg.DagsterRunStatus.STARTED)
    assert tick(intake_sensor, library, instance) == "take_in_changes 正在运行"


def test_before_the_library_is_taken_in_no_intake_begins(sqlite_url: str, instance: dg.DagsterInstance) -> None:
    # Else every video of the library would be due at once, instead of spread over its tier's interval.
    with build_library(sqlite_url, [video(1)], taken_in=False) as library:
        assert "initialise_library" in tick(intake_sensor, library, instance)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_decision_of_a_person_is_worth_a_run_at_once_unless_nothing_is_written(
    sqlite_url: str, instance: dg.DagsterInstance, dry_run: bool
) -> None:
    with build_library(sqlite_url, [video(7)], dry_run=dry_run) as library:
        assert isinstance(tick(decisions_sensor, library, instance), str)
        ignore = [Decision(7, DecisionAction.ignore)]
        record(library.services, ignore, reviewer="王", note="", run_id="r", dry_run=False)
        found = tick(decisions_sensor, library, instance)
    if dry_run:
        assert found == "试运行（DOUBAN_PIPELINE_DRY_RUN）：决定先不执行"
        return
    [request] = found
    assert request.job_name == "apply_decisions"
    job = build_defs(settings=GivenSettings()).get_repository_def().get_job(request.job_name)
    assert (job.tags["pipeline"], job.tags["dagster/priority"]) == ("decisions", "20")
    assert int(PERSON_TAGS["dagster/priority"]) < 20


def test_the_lane_counts_its_own_runs_only_and_pauses_after_failures(
    library: Library, instance: dg.DagsterInstance
) -> None:
    record(library.services, [Decision(6, DecisionAction.ignore)], reviewer="王", note="", run_id="r", dry_run=False)
    # Closed gates and whatever the chain is at are no reason to wait.
    library.services.gate.open("douban", START + timedelta(minutes=45), "验证码页面")
    for first in range(0, 64, 8):
        start(instance, {"pipeline": "backfill", **shard_range_tags(first, first + 7)}, dg.DagsterRunStatus.STARTED)
    assert [request.job_name for request in tick(decisions_sensor, library, instance)] == ["apply_decisions"]
    job = build_defs(settings=GivenSettings()).get_repository_def().get_job("apply_decisions")
    run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    assert tick(decisions_sensor, library, instance) == "apply_decisions 正在运行"
    library.clock.advance(seconds=(datetime.now(UTC) - library.clock.now()).total_seconds())
    instance.report_run_failed(run)
    reason = tick(decisions_sensor, library, instance)
    assert isinstance(reason, str)
    assert reason.startswith("apply_decisions 运行失败，")
    library.clock.advance(minutes=2)
    assert len(tick(decisions_sensor, library, instance)) == 1


def schedule(name: str) -> dg.ScheduleDefinition:
    repository = build_defs(settings=GivenSettings()).get_repository_def()
    return next(item for item in repository.schedule_defs if item.name == name)


def test_the_weekly_backfill_visits_every_shard_once() -> None:
    data = schedule("weekly_backfill").evaluate_tick(dg.build_schedule_context(scheduled_execution_time=START))
    requests = list(data.run_requests or [])
    covered = [
        shard
        for request in requests
        for shard in range(
            int(request.tags["dagster/asset_partition_range_start"]),
            int(request.tags["dagster/asset_partition_range_end"]) + 1,
        )
    ]
    assert covered == list(range(64))
    assert len({request.run_key for request in requests}) == 8


@pytest.mark.parametrize(
    ("name", "op", "more"), [("hourly_sweep", "sweep", {"dry_run": False}), ("hourly_rechecks", "due_rechecks", {})]
)
def test_the_hourly_slices_of_a_day_cover_the_library(name: str, op: str, more: dict[str, object]) -> None:
    parts = []
    for hour in range(24):
        moment = START.replace(hour=hour)
        data = schedule(name).evaluate_tick(dg.build_schedule_context(scheduled_execution_time=moment))
        [request] = data.run_requests or []
        parts.append(request.run_config["ops"][op]["config"])
    assert parts == [{"part": hour, "parts": 24, **more} for hour in range(24)]
