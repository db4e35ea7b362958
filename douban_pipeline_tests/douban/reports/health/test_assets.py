"""The asset as Dagster runs it: what it shows, what it keeps, whom it tells, and how a guard's alert ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from douban_pipeline.core.errors import SourceWall
from douban_pipeline.douban.reports.health import alerts, samples
from douban_pipeline.douban.reports.health.assets import assets, end_passed_guards
from douban_pipeline.douban.reports.health.causes import guard_cause
from douban_pipeline.douban.reports.health.checks import checks
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline_tests.douban.reports.health import planting
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, build_library, video
from douban_pipeline_tests.harness.fixtures.robot import Robot
from douban_pipeline_tests.harness.fixtures.runs import Run


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def library(tmp_path: Path, robot: Robot) -> Iterator[Library]:
    options = {"alert_webhook_url": robot.url, "alert_webhook_kind": "feishu"}
    rows = [video(vod_id) for vod_id in range(1, 9)]
    with build_library(f"sqlite:///{tmp_path / 'library.sqlite'}", rows, **options) as library:
        yield library


def watch(library: Library, instance: dg.DagsterInstance) -> Run:
    job = dg.define_asset_job("watch_health", selection=dg.AssetSelection.assets(*assets))
    definitions = dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=[job],
        resources={"services": dg.ResourceDefinition.hardcoded_resource(library.services)},
        executor=dg.in_process_executor,
    )
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    found = definitions.resolve_job_def("watch_health")
    return Run(found.execute_in_process(run_config=quiet, instance=instance, raise_on_error=False))


def busy(library: Library) -> None:
    """Plant a day with everything in it, and a wall."""
    planting.tasks(library, 6, TaskStatus.SUCCESS, ago=timedelta(minutes=5))
    planting.failing(library, [7, 8], "douban: HTTP 503 <b>|</b>")
    planting.verdicts(library, CONFIRMED=3, REVIEW=1)
    planting.sample(library, timedelta(hours=1), due=9, open_tasks=4)
    with pytest.raises(SourceWall), library.services.gate.slot("douban"):
        raise SourceWall("douban", "出现验证码")


def test_everything_is_shown(library: Library, instance: dg.DagsterInstance) -> None:
    busy(library)
    run = watch(library, instance)
    assert run.success
    metadata = run.metadata("pipeline_health")
    assert "1. **豆瓣 " in metadata["sources"]
    assert "出现验证码" in metadata["sources"]
    hour = "**更新字段**　时段：最近 1 小时；成功：6；失败（含退回重试）：2；跳过：0；失败率：25.0%"
    assert hour in metadata["outcomes"]
    assert "**更新字段**　结果：成功；数量：6；平均耗时：10 秒；95% 不超过：10 秒" in metadata["closed_tasks"]
    assert "**更新字段**　状态：排队；数量：2；" in metadata["queue"]
    assert "自动确认：3；待审核：1；未找到：0；暂不判断：0；待审核占比：25.0%" in metadata["verdicts"]
    assert "<b>" not in "".join(metadata[name] for name in ("alerts", "sources"))
    assert metadata["oldest_due"].startswith("1 影片1 · 2026-03-01")
    numbers = {name: value for name, value in metadata.items() if isinstance(value, int | float)}
    assert numbers == {
        "due": 6,
        "oldest_due_hours": 0.0,
        "unchecked": 8,
        "not_found": 0,
        "in_review": 0,
        "open_tasks": 2,
        "succeeded_last_hour": 6,
        "failed_last_hour": 2,
        "failure_share_last_hour": 0.25,
        "failure_share_last_day": 0.25,
        "requests_last_hour_douban": 1,
        "requests_last_hour_searxng": 0,
        "verdicts_today": 4,
        "review_share_today": 0.25,
        "spent_usd_today": 0.0,
        "budget_usd_per_day": 1.0,
        "intros_written_today": 0,
        "intros_failed_today": 0,
        "open_alerts": 2,
        "alerts_sent": 2,
    }


def test_the_checks_run_with_it(library: Library, instance: dg.DagsterInstance) -> None:
    planting.sample(library, timedelta(hours=24, minutes=1), due=3)
    run = watch(library, instance)
    assert run.success
    assert set(run.guards) == {
        "backlog_steady",
        "failures_rare",
        "work_succeeds",
        "review_share_usual",
        "tasks_taken_up",
    }
    assert run.failed_guards == set()


def test_a_library_where_nothing_happened_yet_is_shown_too(library: Library, instance: dg.DagsterInstance) -> None:
    metadata = watch(library, instance).metadata("pipeline_health")
    assert metadata["alerts"] == metadata["queue"] == metadata["verdicts"] == "—"
    assert "failure_share_last_hour" not in metadata


def test_each_measurement_is_kept_and_people_are_alerted_once(
    library: Library, instance: dg.DagsterInstance, robot: Robot
) -> None:
    busy(library)
    for _ in range(3):
        assert watch(library, instance).success
        library.clock.advance(minutes=5)
    for number in (1, 2, 3):
        at = START + timedelta(minutes=5 * number)
        kept = samples.newest_before(library.services, at, within=timedelta(minutes=5))
        assert kept is not None
        assert (kept.at, kept.gates["douban"]) == (at - timedelta(minutes=5), "open")
    reported = [posted.json["content"]["text"].splitlines()[0] for posted in robot.posted]
    assert reported == ["数据源已熔断：豆瓣", "2 部影片连续失败 5 次以上"]


def test_what_is_well_again_is_no_alert_any_more(library: Library, instance: dg.DagsterInstance) -> None:
    busy(library)
    watch(library, instance)
    library.services.gate.close("douban", by="小王")
    for vod_id in (7, 8):
        library.set_state(vod_id, douban_sync_fail_count=0)
    library.clock.advance(minutes=5)
    assert watch(library, instance).metadata("pipeline_health")["open_alerts"] == 0


def test_a_webhook_that_fails_does_not_fail_the_run(
    library: Library, instance: dg.DagsterInstance, robot: Robot
) -> None:
    busy(library)
    robot.answer = {"code": 19021}
    metadata = watch(library, instance).metadata("pipeline_health")
    assert (metadata["open_alerts"], metadata["alerts_sent"]) == (2, 0)
    assert "错误码 19021" in metadata["alerts"]


def guarded(passes: bool) -> dg.Definitions:
    @dg.asset
    def stuff() -> dg.MaterializeResult:
        return dg.MaterializeResult()

    @dg.asset_check(asset=stuff, blocking=True)
    def holds() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=passes)

    return dg.Definitions(assets=[stuff], asset_checks=[holds], jobs=[dg.define_asset_job("all", selection="*")])


def test_a_guards_alert_ends_when_the_guard_passes(library: Library) -> None:
    def evaluate(passes: bool) -> None:
        guarded(passes).resolve_job_def("all").execute_in_process(instance=instance, raise_on_error=False)

    with dg.DagsterInstance.ephemeral() as instance:
        alerts.raise_alert(library.services, guard_cause("stuff", "holds", "", ""))
        for passes, left in ((None, 1), (False, 1), (True, 0)):
            if passes is not None:
                evaluate(passes)
            end_passed_guards(library.services, instance)
            assert len(alerts.open_alerts(library.services)) == left


def test_it_is_described_like_every_asset() -> None:
    [asset] = assets
    [spec] = asset.specs
    found: Any = spec
    assert len(found.description) > 50
    assert (found.group_name, found.kinds) == ("health", {"mysql", "python"})
    assert asset.partitions_def is None
