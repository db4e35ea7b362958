"""A failed run is reported by its cause, a failed guard by its name, and both once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.messages.types import DeliveryError
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS, problems_failure
from douban_pipeline.dagster_kit.runs import partition_range_tags
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.reports.health.alerts import end_quiet_runs, open_alerts
from douban_pipeline.douban.reports.health.assets import end_recovered_runs
from douban_pipeline.douban.reports.health.sensors import alert_on_run_failure, causes_of
from douban_pipeline.douban.resources import services_resource
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.review.shelves import decision_of
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, Library, build_library
from douban_pipeline_tests.harness.fixtures.robot import Robot

SYNC = {"pipeline": "sync"}
NOWHERE = "mysql+pymysql://cms:s3cret-pass@127.0.0.1:1/nowhere"


@pytest.fixture
def robot() -> Iterator[Robot]:
    """A robot that listens."""
    with Robot() as robot:
        yield robot


class Trouble(dg.Config):
    """What goes wrong in a run."""

    error: str = ""
    found: int = 0


@dg.asset
def films(config: Trouble) -> dg.MaterializeResult:
    if config.error:
        raise ValueError(config.error)
    return dg.MaterializeResult(metadata={"found": config.found})


@dg.asset(deps=[films])
def shelf() -> dg.MaterializeResult:
    return dg.MaterializeResult()


@dg.asset_check(asset=films, blocking=True)
def films_hold(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    found = context.instance.get_latest_materialization_event(films.key)
    assert found is not None
    assert found.asset_materialization is not None
    count = found.asset_materialization.metadata["found"].value
    return dg.AssetCheckResult(
        passed=not count, description=f"{count} 处不符合", metadata={"shards": "05, 17", "violations": count}
    )


@dg.asset_check(asset=films)
def films_please(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False)


JOB = "make_films"


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(scope="module")
def job() -> dg.JobDefinition:
    definitions = dg.Definitions(
        assets=[films, shelf],
        asset_checks=[films_hold, films_please],
        jobs=[dg.define_asset_job(JOB, selection="*")],
        executor=dg.in_process_executor,
    )
    return definitions.resolve_job_def(JOB)


@pytest.fixture
def library(tmp_path: Path, robot: Robot) -> Iterator[Library]:
    options = {"alert_webhook_url": robot.url, "alert_webhook_kind": "generic"}
    with build_library(f"sqlite:///{tmp_path / 'library.sqlite'}", **options) as library:
        yield library


def fail(job: dg.JobDefinition, instance: dg.DagsterInstance, **trouble: Any) -> dg.ExecuteInProcessResult:
    config = {
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        "ops": {"films": {"config": {"error": "", "found": 0, **trouble}}},
    }
    result = job.execute_in_process(run_config=config, instance=instance, raise_on_error=False)
    assert not result.success
    return result


def tick(result: dg.ExecuteInProcessResult, instance: dg.DagsterInstance, services: Any) -> None:
    """Evaluate the sensor for one failed run."""
    evaluate(result.dagster_run, result.get_run_failure_event(), instance, services)


def evaluate(run: dg.DagsterRun, failure: dg.DagsterEvent, instance: dg.DagsterInstance, services: Any) -> None:
    """Evaluate the sensor for the event of a run's failure."""
    context = dg.build_run_status_sensor_context(
        sensor_name="alert_on_run_failure",
        dagster_instance=instance,
        dagster_run=run,
        dagster_event=failure,
        resources={"services": services},
    )
    alert_on_run_failure(context)


def reported(robot: Robot) -> list[str]:
    return [posted.json["title"] for posted in robot.posted]


def test_many_failed_runs_of_one_cause_are_one_message(
    library: Library, instance: dg.DagsterInstance, job: dg.JobDefinition, robot: Robot
) -> None:
    for number in (17, 170_231, 4):
        tick(fail(job, instance, error=f"video {number} is odd\nand more"), instance, library.services)
    assert reported(robot) == ["运行失败：make_films / films"]
    said = robot.posted[0].json["text"].splitlines()
    assert said[:4] == [
        "这次的工作：没有做完（已经记录和写入的保留），请重新启动：打开该运行，选 Re-execute",
        "可能的原因：程序遇到没有预料到的情况",
        "怎么办：打开该运行看完整的错误；再次出现请连同错误原文反馈给开发者",
        "错误原文：ValueError: video 17 is odd",
    ]
    assert said[4].startswith("运行：http://127.0.0.1:3000/runs/")
    assert said[5].startswith("同一原因只提醒一次")
    [alert] = open_alerts(library.services)
    assert (alert.cause, alert.times) == ("run:make_films:films:ValueError: video # is odd", 3)
    tick(fail(job, instance, error="another thing"), instance, library.services)
    assert len(robot.posted) == 2


@pytest.mark.parametrize(
    ("error", "messages"), [(problems_failure("未记录任何决定", ["reviewer: 请填写"]), 0), (KeyError(), 1)]
)
def test_what_a_job_refuses_a_person_it_tells_that_person_alone(
    library: Library, instance: dg.DagsterInstance, robot: Robot, error: Exception, messages: int
) -> None:
    @dg.op
    def decide() -> None:
        raise error

    @dg.job(tags=PERSON_TAGS)
    def decisions() -> None:
        decide()

    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = decisions.execute_in_process(run_config=quiet, instance=instance, raise_on_error=False)
    tick(result, instance, library.services)
    assert len(robot.posted) == messages


@dg.op
def break_off() -> None:
    """Record what was asked for, and break off."""
    raise KeyError("vod_name")


@dg.job(tags=PERSON_TAGS)
def record_decisions() -> None:
    break_off()


def test_a_run_of_a_person_that_broke_off_says_what_it_recorded(
    library: Library, instance: dg.DagsterInstance, robot: Robot
) -> None:
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = record_decisions.execute_in_process(run_config=quiet, instance=instance, raise_on_error=False)
    library.insert(
        library.tables.decision,
        [
            decision_of(library, vod_id, DecisionAction.rematch, 0, "pending") | {"run_id": run_id}
            for vod_id, run_id in ((1, result.run_id), (2, result.run_id), (3, "another"))
        ],
    )
    tick(result, instance, library.services)
    [posted] = robot.posted
    assert posted.json["title"] == "没有做完，请重新启动：record_decisions / break_off"
    assert posted.json["text"].startswith("没有做完（已记录 2 条决定），请重新启动：打开该运行，选 Re-execute\n")


def test_each_launch_of_a_person_that_was_lost_is_told_of(
    library: Library, instance: dg.DagsterInstance, robot: Robot
) -> None:
    runs = []
    for reviewer in ("小王", "小李"):
        run = instance.create_run_for_job(record_decisions, run_config={"ops": {"break_off": {"config": reviewer}}})
        failure = instance.report_run_failed(run, "Run timed out due to taking longer than 120 seconds to start.")
        evaluate(run, failure, instance, library.services)
        runs.append(run)
    assert reported(robot) == ["没有执行，请重新启动：record_decisions"] * 2
    first, other = runs
    again = instance.create_run_for_job(record_decisions, run_config=other.run_config)
    instance.handle_new_event(_finished(again))
    end_recovered_runs(library.services, instance)
    [alert] = open_alerts(library.services)
    assert first.run_id in alert.cause, "what 小李 launched again says nothing of what 小王 launched"


def shard_range(instance: dg.DagsterInstance, first: int, last: int, **tags: str) -> dg.DagsterRun:
    return instance.create_run_for_job(
        dg.Definitions(assets=[films, shelf]).resolve_implicit_global_asset_job_def(),
        tags=SYNC | tags | partition_range_tags(partition_key(first), partition_key(last)),
        asset_selection=frozenset({films.key}),
    )


def test_launches_of_a_backfill_that_were_lost_are_told_of_with_all_their_shards(
    library: Library, instance: dg.DagsterInstance, robot: Robot
) -> None:
    ranges, backfill = [(0, 7), (8, 15), (24, 31)], {"dagster/backfill": "abcdefgh"}
    lost = [shard_range(instance, *each, **backfill) for each in ranges]
    reason = "Run timed out due to taking longer than 120 seconds to start."
    failures = [instance.report_run_failed(run, reason) for run in lost]
    for run, failure in zip(lost, failures, strict=True):
        evaluate(run, failure, instance, library.services)
    assert reported(robot) == ["没有执行，请重新启动：资产 films（手动物化或回填），分片 00–15、24–31"]
    for first, last in ranges:
        end_recovered_runs(library.services, instance)
        assert len(open_alerts(library.services)) == 1
        instance.handle_new_event(_finished(shard_range(instance, first, last)))
    end_recovered_runs(library.services, instance)
    assert open_alerts(library.services) == []


def test_a_full_disk_is_one_trouble_whatever_it_stops(
    library: Library, instance: dg.DagsterInstance, robot: Robot
) -> None:
    for name in ("douban_chain", "nightly_reports", "frequent_health"):

        @dg.op(name=f"write_{name}")
        def write() -> None:
            raise OSError(28, "No space left on device")

        @dg.job(name=name, tags={"dagster/schedule_name": "x"})
        def job() -> None:
            write()

        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        tick(
            job.execute_in_process(run_config=quiet, instance=instance, raise_on_error=False),
            instance,
            library.services,
        )
    [title] = reported(robot)
    assert title.startswith("运行失败（磁盘已满）：")
    end_recovered_runs(library.services, instance)
    library.clock.advance(minutes=59)  # type: ignore[attr-defined]
    end_quiet_runs(library.services)
    assert [alert.times for alert in open_alerts(library.services)] == [3]
    library.clock.advance(minutes=2)  # type: ignore[attr-defined]
    end_quiet_runs(library.services)
    assert open_alerts(library.services) == []


@pytest.mark.parametrize(
    ("tags", "config", "work"),
    [
        (SYNC, {}, "没有执行；任务仍在排队，会自动再启动，不必重跑"),
        (SYNC, {"ops": {"films": {"config": {"found": 1}}}}, "没有执行，请重新启动"),
        ({"dagster/schedule_name": "nightly"}, {}, "没有执行，到时会自动再启动"),
        ({"dagster/sensor_name": "intake_sensor"}, {}, "没有执行，到时会自动再启动"),
        ({}, {}, "没有执行，请重新启动"),
    ],
)
def test_what_becomes_of_the_work_is_by_who_launches_it_again(
    instance: dg.DagsterInstance, job: dg.JobDefinition, tags: dict[str, str], config: dict[str, Any], work: str
) -> None:
    run = instance.create_run_for_job(job, tags=tags, run_config=config)
    failure = instance.report_run_failed(run, "Run timed out due to taking longer than 120 seconds to start.")
    [cause] = causes_of(instance, run, failure, ui_url="http://dagster.example")
    assert cause.detail.startswith(f"这次的工作：{work}")
    assert "内存" not in cause.detail


def test_a_failed_guard_is_reported_in_place_of_its_run(
    library: Library, instance: dg.DagsterInstance, job: dg.JobDefinition, robot: Robot
) -> None:
    for found in (3, 4):
        tick(fail(job, instance, found=found), instance, library.services)
    assert reported(robot) == ["守卫未通过：films / films_hold"], "neither the run nor the warning is told of"
    assert robot.posted[0].json["text"].startswith("3 处不符合，分片 05, 17\n")
    [alert] = open_alerts(library.services)
    assert (alert.cause, alert.kind, alert.times) == ("guard:films:films_hold", "guard", 2)


def test_a_run_that_ended_outside_of_any_step_is_reported_as_a_whole(
    instance: dg.DagsterInstance, job: dg.JobDefinition
) -> None:
    run = instance.create_run_for_job(job)
    failure = instance.report_run_failed(run, "This run has timed out after 600 seconds.")
    [cause] = causes_of(instance, run, failure)
    assert cause.name == "run:make_films::This run has timed out after # seconds."
    assert cause.title == "运行失败：make_films"


def killed(instance: dg.DagsterInstance, shard: int, **given: Any) -> tuple[dg.DagsterRun, dg.DagsterEvent]:
    """Return an ad-hoc run of a shard whose process was killed, as the daemon notes it."""
    run = instance.create_run_for_job(
        dg.Definitions(assets=[films, shelf]).resolve_implicit_global_asset_job_def(),
        tags={"dagster/partition": partition_key(shard)},
        asset_selection=frozenset({films.key}),
        **given,
    )
    return run, instance.report_run_failed(run)


def test_a_killed_run_is_told_of_in_chinese_with_its_shard_what_it_means_and_what_to_do(
    instance: dg.DagsterInstance,
) -> None:
    run, failure = killed(instance, 17)
    assert "outside the execution context" in str(failure.message), "all that Dagster says"
    [cause] = causes_of(instance, run, failure, ui_url="http://dagster.example/")
    assert cause.title == "运行失败：资产 films（手动物化或回填），分片 17"
    assert "可能的原因：运行的进程中途消失，或没能启动" in cause.detail
    assert "这次的工作：没有执行，请重新启动：打开该运行，选 Re-execute\n" in cause.detail, "no step began"
    assert f"运行：http://dagster.example/runs/{run.run_id}\n" in cause.detail
    assert "__ASSET_JOB" not in cause.title


def test_it_is_told_again_when_it_happens_again_after_having_been_well(tmp_path: Path, robot: Robot) -> None:
    options = {"alert_webhook_url": robot.url, "alert_webhook_kind": "generic"}
    url = f"sqlite:///{tmp_path / 'library.sqlite'}"
    with build_library(url, clock=SystemClock(), **options) as library, dg.DagsterInstance.ephemeral() as instance:

        def kill(shard: int) -> int:
            run, failure = killed(instance, shard)
            evaluate(run, failure, instance, library.services)
            return len(robot.posted)

        def succeed(shard: int) -> None:
            run = instance.create_run_for_job(
                dg.Definitions(assets=[films]).resolve_implicit_global_asset_job_def(),
                tags={"dagster/partition": partition_key(shard)},
                asset_selection=frozenset({films.key}),
            )
            instance.handle_new_event(_finished(run))

        assert [kill(5), kill(5), kill(6)] == [1, 1, 1], "one cause"
        succeed(7)
        assert kill(6) == 1, "another shard was well all the time"
        succeed(6)
        end_recovered_runs(library.services, instance)
        assert open_alerts(library.services) == []
        assert kill(6) == 2, "it had been well"
        succeed(6)
        assert kill(6) == 3, "the sensor looks for itself"


def _finished(run: dg.DagsterRun) -> Any:
    """Return the entry in the log that makes a run a success."""
    event = dg.DagsterEvent(event_type_value=dg.DagsterEventType.PIPELINE_SUCCESS.value, job_name=run.job_name)
    return dg.EventLogEntry(
        error_info=None,
        level="info",
        user_message="",
        run_id=run.run_id,
        timestamp=SystemClock().now().timestamp(),
        dagster_event=event,
        job_name=run.job_name,
    )


def test_what_cannot_be_sent_waits(
    library: Library, instance: dg.DagsterInstance, job: dg.JobDefinition, robot: Robot
) -> None:
    robot.status = 502
    tick(fail(job, instance, error="odd"), instance, library.services)
    [alert] = open_alerts(library.services)
    assert (alert.sent_at, alert.send_error) == (None, "HTTP 502")


def test_without_the_database_people_are_alerted_all_the_same(
    instance: dg.DagsterInstance, job: dg.JobDefinition, robot: Robot
) -> None:
    options = {"alert_webhook_url": robot.url, "alert_webhook_kind": "generic", "database_url": NOWHERE}
    services = open_services(GivenSettings(**options))
    failed = fail(job, instance, error="cannot log in with s3cret-pass")
    for _ in range(2):
        tick(failed, instance, services)
    services.close()
    assert reported(robot) == ["运行失败：make_films / films（数据库不可用，可能重复提醒）"] * 2
    assert all(b"s3cret-pass" not in posted.body for posted in robot.posted)


@pytest.mark.parametrize(("webhook", "error"), [(False, OperationalError), (True, DeliveryError)])
def test_without_the_database_and_the_webhook_the_tick_fails(
    instance: dg.DagsterInstance, job: dg.JobDefinition, robot: Robot, webhook: bool, error: type[Exception]
) -> None:
    robot.status = 500
    url = robot.url if webhook else ""
    services = open_services(GivenSettings(alert_webhook_url=url, database_url=NOWHERE))
    with pytest.raises(error) as caught:
        tick(fail(job, instance, error="odd"), instance, services)
    services.close()
    assert robot.url not in str(caught.value)


def test_before_our_tables_exist_people_are_alerted_all_the_same(
    tmp_path: Path, instance: dg.DagsterInstance, job: dg.JobDefinition, robot: Robot
) -> None:
    options = {"alert_webhook_url": robot.url, "database_url": f"sqlite:///{tmp_path / 'none.sqlite'}"}
    services = open_services(GivenSettings(**options))
    tick(fail(job, instance, error="odd"), instance, services)
    services.close()
    assert len(robot.posted) == 1


def test_the_daemon_gives_it_every_failed_run_of_the_code_location(
    library: Library, job: dg.JobDefinition, robot: Robot
) -> None:
    assert alert_on_run_failure.default_status is dg.DefaultSensorStatus.RUNNING
    # The resource is one that is closed after each use, as in production.
    resources = {"services": services_resource(library.settings)}
    repository = dg.Definitions(sensors=[alert_on_run_failure], resources=resources).get_repository_def()
    with dg.DagsterInstance.ephemeral() as instance:

        def evaluate(cursor: str | None) -> str:
            with dg.build_sensor_context(
                instance=instance, cursor=cursor, repository_def=repository, resources=resources
            ) as context:
                data = alert_on_run_failure.evaluate_tick(context)
            assert data.cursor is not None
            return data.cursor

        cursor = evaluate(None)  # the first tick only notes where events end
        for number in (1, 2):
            fail(job, instance, error=f"odd {number}")
        while (moved := evaluate(cursor)) != cursor:
            cursor = moved
    assert reported(robot) == ["运行失败：make_films / films"]
    assert [alert.times for alert in open_alerts(library.services)] == [2]
