"""Gates as people see them and set them: the table, the check and the job, as Dagster runs them."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from douban_pipeline.core.errors import GateClosed, SourceError, SourceUnavailable, SourceWall
from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.upkeep import assets, checks, jobs
from douban_pipeline.douban.upkeep.gates import MOST_MINUTES
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.runs import Run, run_of

SHANGHAI = ZoneInfo("Asia/Shanghai")
REPORT = "report"


@pytest.fixture
def library(shared_library: Library) -> Library:
    return shared_library.renewed(daily_quotas={"searxng": 500})


@pytest.fixture
def launch(library: Library, dagster_instance: dg.DagsterInstance):
    """Run a job of this room over the library: `REPORT`, or `set_gate` with a config."""
    definitions = dg.Definitions(
        assets=assets.assets,
        asset_checks=checks.checks,
        jobs=[*jobs.jobs, dg.define_asset_job(REPORT, selection=["source_gates"])],
        resources={"services": library.services},
        executor=dg.in_process_executor,
    )

    def run(job: str, **config: object) -> Run:
        ops = {"ops": {"change_gate": {"config": config}}} if config else {}
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        definition = definitions.resolve_job_def(job)
        return run_of(
            lambda: definition.execute_in_process(
                run_config={**quiet, **ops}, instance=dagster_instance, raise_on_error=False
            )
        )

    return run


def call(library: Library, source: str, error: SourceError | None = None) -> None:
    with suppress(SourceError), library.services.gate.slot(source):
        if error:
            raise error


def status_of(library: Library, source: str) -> GateStatus:
    [found] = [status for status in library.services.gate.status() if status.source == source]
    return found


def cells(markdown: str, source: str) -> dict[str, str]:
    """Return the cells of a source's row, which is a line of a list, by their heads."""
    [line] = [line for line in markdown.splitlines() if f" {source}**" in line]
    return dict(part.split("：", 1) for part in line.split("**　")[1].split("；"))


def test_sources_that_are_well(library: Library, launch) -> None:
    for error in (None, None, None, SourceUnavailable("douban", "HTTP 500")):
        call(library, "douban", error)
    library.clock.advance(minutes=1)
    call(library, "searxng")
    run = launch(REPORT)
    assert run.success
    metadata = run.metadata("source_gates")
    table = metadata.pop("gates")
    assert metadata == {
        "gates_open": 0,
        "waiting": 0,
        "requests_today": 5,
        "requests_today_douban": 4,
        "requests_today_searxng": 1,
    }
    limits = ["上一分钟 / 上限", "今日 / 配额", "成功率 5 / 60 分钟"]
    assert cells(table, "douban") == {"状态": "放行", **dict(zip(limits, ["4 / 10", "4", "75% / 75%"], strict=True))}
    assert [cells(table, "searxng")[name] for name in limits] == ["0 / 10", "1 / 500", "100% / 100%"]
    guard = run.guards["gates_closed"]
    assert (guard.passed, guard.blocking, run.guard("gates_closed")) == (True, False, {"gates_open": 0})


def test_a_source_that_is_no_longer_asked_warns_nobody(library: Library, launch) -> None:
    library.services.gate.configure("bocha", 60, 1)
    call(library, "bocha", SourceWall("bocha", "验证码"))
    run = launch(REPORT)
    assert "暂停" in cells(run.metadata("source_gates")["gates"], "bocha")["状态"]
    assert run.guards["gates_closed"].passed


def test_a_source_that_is_unhealthy_is_named_with_time_and_reason(library: Library, launch) -> None:
    call(library, "douban", SourceWall("douban", "验证码 | <img>"))
    until = status_of(library, "douban").open_until
    assert until is not None
    run = launch(REPORT)
    assert run.success, "it warns; nothing is stopped"
    local = f"{until.astimezone(SHANGHAI):%Y-%m-%d\u00a0%H:%M}"
    until_then = local.replace("\u00a0", " ")
    row = cells(run.metadata("source_gates")["gates"].replace("\\|", "/"), "douban")
    assert row["状态"] == f"暂停，至 {until_then}：验证码 / &lt;img&gt;（自动）"
    guard = run.guards["gates_closed"]
    assert (guard.passed, guard.severity, guard.blocking) == (False, dg.AssetCheckSeverity.WARN, False)
    assert guard.description == f"以下来源暂停调用：douban（暂停，至 {local}，验证码 | <img>）"
    assert run.guard("gates_closed")["gates_open"] == run.metadata("source_gates")["gates_open"] == 1
    library.clock.advance(hours=1)
    assert "到期，等待试探" in launch(REPORT).guards["gates_closed"].description
    with library.services.gate.slot("douban"):
        assert "试探中" in launch(REPORT).guards["gates_closed"].description
    assert launch(REPORT).guards["gates_closed"].passed


def test_a_person_opens_and_closes(library: Library, launch) -> None:
    given = {"reviewer": " 小王 ", "note": " 今晚维护\n", "source": "douban", "action": "open", "minutes": 120}
    shown = launch("set_gate", **given, dry_run=True)
    assert (shown.success, shown.output["dry_run"], shown.output["until"]) == (True, True, "2026-03-01\u00a014:00")
    assert status_of(library, "douban").state is GateState.CLOSED
    done = launch("set_gate", **given, dry_run=False)
    assert (done.output["source"], done.output["action"]) == ("douban", "open")
    assert "放行" in done.output["before"]
    assert "今晚维护" in done.output["now"]
    status = status_of(library, "douban")
    assert (status.state, status.open_until, status.reason, status.changed_by) == (
        GateState.OPEN,
        START + timedelta(hours=2),
        "今晚维护",
        "小王",
    )
    with pytest.raises(GateClosed, match="今晚维护"), library.services.gate.slot("douban"):
        pytest.fail("let through")
    assert "小王：今晚维护" in launch(REPORT).guards["gates_closed"].description
    launch("set_gate", **{**given, "minutes": 10}, dry_run=False)
    assert status_of(library, "douban").open_until == START + timedelta(minutes=10), "a person may shorten it"
    launch("set_gate", reviewer="小李", note="已恢复", source="douban", action="close", dry_run=False)
    status = status_of(library, "douban")
    assert (status.state, status.reason, status.changed_by) == (GateState.CLOSED, "", "小李")
    call(library, "douban")


def test_every_mistake_is_reported_at_once(library: Library, launch) -> None:
    run = launch(
        "set_gate", action="open", minutes=MOST_MINUTES + 1, source="douban2", reviewer="王" * 65, dry_run=False
    )
    assert run.failure.splitlines()[-5:] == [
        "dagster._core.definitions.events.Failure: 未改动任何来源：",
        "- reviewer: 名字最多 64 个字符",
        "- note: 请写明原因",
        "- source: 没有 douban2 这个来源；已知的有：douban、searxng",
        f"- minutes: 暂停的分钟数须在 1 到 {MOST_MINUTES} 之间",
    ]
    assert (
        "配置中不得引用环境变量：HOME"
        in launch("set_gate", reviewer="小王", source="douban", note={"env": "HOME"}).failure
    )
