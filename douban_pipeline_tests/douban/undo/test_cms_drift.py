"""The report on drift and its check, as Dagster runs them."""

from __future__ import annotations

import dagster as dg
import pytest

from douban_pipeline.douban.undo.assets import cms_drift
from douban_pipeline_tests.harness.fixtures.library import unix
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of

CHECK = "cms_keeps_what_was_written"


ALONE = {"videos_at_once": 1}
"""One call at a time: what waits for another's moves the clock."""


@pytest.fixture
def scenario(stage):
    """Videos 4 and 5 are linked and synced; the id of video 4 is locked."""
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS, **ALONE)
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    lock = {"vod_id": 4, "action": "lock_id"}
    config = {"reviewer": "小李", "note": "核对过", "dry_run": False, "decisions": [lock]}
    assert scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success
    assert scenario.play(4).success
    scenario.clock.advance(minutes=1)
    return scenario


class Report:
    """What the asset and its check came to."""

    def __init__(self, scenario):
        result = dg.materialize(
            [cms_drift],
            resources={"services": scenario.services},
            instance=scenario.instance,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
        assert result.success, "the check only warns"
        [event] = result.get_asset_materialization_events()
        self.metadata = {name: value.value for name, value in event.materialization.metadata.items()}
        [self.check] = result.get_asset_check_evaluations()
        self.checked = {name: value.value for name, value in self.check.metadata.items()}

    def plain(self, name):
        return self.metadata[name].replace("\\", "")


def save(scenario, vod_id, **values):
    """Change a row as the CMS does."""
    scenario.clock.advance(minutes=1)
    scenario.library.set_cms(vod_id, vod_time=unix(scenario.clock.now()), **values)


def test_nothing_drifted(scenario):
    report = Report(scenario)
    assert report.check.passed
    assert [report.metadata[name] for name in ("videos", "serious", "edited", "restored", "unsure")] == [2, 0, 0, 0, 0]
    assert report.metadata["differences"] == "—"
    assert scenario.check().failed_guards == set()


def test_ordinary_later_edits_are_listed_and_fail_nothing(scenario):
    save(scenario, 5, vod_writer="采集来的")
    report = Report(scenario)
    assert report.check.passed
    assert (report.metadata["serious"], report.metadata["edited"]) == (0, 1)
    [row] = report.plain("later_edits").splitlines()[2:]
    for reported in ("| 5 ", "vod_writer", "蓝鲸编", "采集来的", "CMS 保存或采集更新", "自动 关联条目", "2026-03-01"):
        assert reported in row


def test_a_synopsis_and_the_blurb_beside_it_are_said_together(stage):
    scenario = stage([row_of(WHALE, 5, vod_content="")], FILMS, **ALONE)
    assert scenario.play().success
    content, blurb = scenario.cms(5, "vod_content", "vod_blurb")
    assert content.startswith(blurb)
    scenario.library.set_cms(5, vod_blurb="机器写的摘要")
    report = Report(scenario)
    assert report.check.passed
    assert (report.metadata["apart"], report.metadata["edited"]) == (1, 0)
    told = report.plain("later_edits")
    for reported in (
        "简介仍是写入的，显示的摘要却不是它的开头",
        "机器写的摘要",
        blurb[:10],
        "采纳的 AI 标注",
        "清空摘要并保存",
    ):
        assert reported in told
    assert "立即同步" not in told, "a sync fills only what is empty"


def test_what_is_serious_warns_and_says_what_can_be_done(scenario):
    save(scenario, 4, vod_douban_id=0)
    save(scenario, 5, vod_writer="", vod_douban_id=90_000_107)
    report = Report(scenario)
    assert not report.check.passed
    assert report.check.severity is dg.AssetCheckSeverity.WARN
    assert not report.check.blocking
    assert report.check.description == "锁定的值被改 1 处，豆瓣 ID 被改 1 处，被改回写入之前的值 1 处"
    assert (report.checked["locked"], report.checked["id"], report.checked["put_back"]) == (1, 1, 1)
    text = report.plain("differences")
    lines = text.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][1:]
    assert [row[:4] for row in rows] == [
        ["1", "4", "长河落日记事", "vod_douban_id"],
        ["2", "5", "蓝鲸与灯塔守望者", "vod_douban_id"],
        ["3", "5", "蓝鲸与灯塔守望者", "vod_writer"],
    ]
    # What is long stands in numbered lines below.
    said = {line[4]: line for line in lines if line.startswith("- **")}
    of_first, of_third = (" ".join([*row, said.get(row[0], "")]) for row in (rows[0], rows[2]))
    assert "CMS 保存或采集更新" in of_first
    assert "过期的后台表单" in of_third
    for job in ("video_history", "record_decisions"):
        assert f"/jobs/{job}/playground/setup?config=" in of_first
    assert "DOUBAN_PIPELINE_RESTORE_LOCKED=true" in report.metadata["restoring"]
    assert report.metadata["restored"] == 0
    assert scenario.cms(4, "vod_douban_id") == (0,)


def test_titles_are_outside_text(scenario):
    save(scenario, 4, vod_name="<i>片|名*", vod_writer="")
    metadata = Report(scenario).metadata["differences"]
    assert "<i>" not in metadata
    assert "片\\|名\\*" in metadata


def test_locked_values_are_restored_where_that_is_switched_on(scenario):
    before = scenario.library.all_bytes()
    scenario.library.set_cms(4, vod_douban_id=0)
    report = Report(scenario.under(restore_locked=True))
    assert scenario.library.all_bytes() == before
    assert report.check.passed, "what is restored is there again"
    assert (report.metadata["locked"], report.metadata["restored"]) == (1, 1)
    change = scenario.library.log()[-1]
    assert (change["action"], change["operator"], change["batch_id"]) == (
        "restore",
        "pipeline",
        report.metadata["batch"],
    )
    assert f"已恢复（变更 {change['change_id']}）" in report.metadata["differences"]
    assert "revert_changes" in report.metadata["restoring"]
    assert scenario.check().failed_guards == set(), "no guard takes it for a breach of the lock"
    again = Report(scenario.under(restore_locked=True))
    assert (again.metadata["restored"], len(scenario.library.log())) == (0, change["change_id"])


def test_a_lock_on_no_id_is_restored_without_a_guard_taking_it_for_blanking(scenario):
    decisions = [{"vod_id": 5, "action": "clear_id", "lock": True}]
    config = {"reviewer": "小李", "note": "没有条目", "dry_run": False, "decisions": decisions}
    assert scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success
    assert scenario.play(5).success
    assert scenario.cms(5, "vod_douban_id") == (0,)
    scenario.clock.advance(minutes=1)
    scenario.library.set_cms(5, vod_douban_id=90_000_102)
    assert Report(scenario.under(restore_locked=True)).metadata["restored"] == 1
    assert scenario.cms(5, "vod_douban_id") == (0,)
    assert scenario.check().failed_guards == set()


def test_a_dry_run_only_reports(scenario):
    scenario.library.set_cms(4, vod_douban_id=0)
    report = Report(scenario.under(restore_locked=True, dry_run=True))
    assert (report.metadata["locked"], report.metadata["restored"]) == (1, 0)
    assert "演练模式" in report.metadata["restoring"]
    assert scenario.cms(4, "vod_douban_id") == (0,)


def test_what_was_not_restored_is_reported(scenario):
    scenario.library.set_cms(4, vod_douban_id=0, vod_lock=1)
    report = Report(scenario.under(restore_locked=True))
    assert (report.metadata["restored"], report.metadata["not_restored"]) == (0, 1)
    assert "未恢复：影片已在 CMS 中锁定（vod_lock）" in report.plain("differences")
    assert not report.check.passed


def test_a_restore_is_reverted_by_its_batch(scenario):
    scenario.library.set_cms(4, vod_douban_id=7)
    report = Report(scenario.under(restore_locked=True))
    config = {"reviewer": "小王", "reason": "现值才对", "dry_run": False, "batch_id": report.metadata["batch"]}
    assert scenario.launch("revert_changes", {"revert_writes": {"config": config}}).output["in_full"] == 1
    assert scenario.cms(4, "vod_douban_id") == (7,)
    again = Report(scenario.under(restore_locked=True))
    assert (again.metadata["restored"], scenario.cms(4, "vod_douban_id")) == (0, (7,))
    assert "撤销了恢复" in again.plain("differences")
