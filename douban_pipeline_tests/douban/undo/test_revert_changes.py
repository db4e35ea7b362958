"""Taking writes back as a person does it, in Dagster: to the byte, and so that it can itself be taken back."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from urllib.parse import unquote

import pytest
import yaml

from douban_pipeline.douban.undo.jobs import RevertConfig, revert_changes
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline.matching import RULE_VERSION
from douban_pipeline_tests.harness.fixtures.library import dead_owner
from douban_pipeline_tests.harness.fixtures.locations import fits_schema
from douban_pipeline_tests.harness.fixtures.scenario import (
    CLOCKS,
    FILMS,
    RIVER,
    TRAM,
    WHALE,
    row_of,
    telling,
)

ALONE = {"videos_at_once": 1}
"""One call at a time: what waits for another's moves the clock."""


@pytest.fixture
def scenario(stage):
    rows = [row_of(RIVER, 4, vod_actor="内详"), row_of(WHALE, 5), row_of(TRAM, 6, vod_douban_id=90_000_103)]
    return stage(rows, (*(film for film in FILMS if film is not CLOCKS), {**CLOCKS, "rating": 6.1}), **ALONE)


def revert_writes(scenario, *, dry_run=False, reviewer="小王", reason="年份有误", **chosen):
    nothing = {"change_ids": [], "batch_id": "", "run_id": ""}
    config = {"reviewer": reviewer, "reason": reason, "dry_run": dry_run, **nothing, **chosen}
    return scenario.launch("revert_changes", {"revert_writes": {"config": config}})


@pytest.mark.parametrize("by", ["batch_id", "run_id", "change_ids"])
def test_a_batch_is_reverted_to_the_byte_and_written_again_to_the_byte(scenario, by):
    before = scenario.library.all_bytes()
    written = scenario.play()
    after = scenario.library.all_bytes()
    assert after != before
    changes = [change["change_id"] for change in scenario.library.log()]
    batch = written.metadata("synced_fields")["batch"]
    chosen = {"batch_id": batch, "run_id": written.run_id, "change_ids": changes}[by]

    shown = revert_writes(scenario, dry_run=True, **{by: chosen})
    assert shown.success
    assert (shown.output["dry_run"], shown.output["selected"], shown.output["in_full"]) == (True, 3, 3)
    assert scenario.library.all_bytes() == after
    assert len(scenario.library.log()) == 3

    undone = revert_writes(scenario, **{by: chosen})
    assert (undone.success, undone.output["in_full"], undone.output["skipped"]) == (True, 3, 0)
    assert scenario.library.all_bytes() == before
    assert {change["state"] for change in scenario.library.log()[:3]} == {"reverted"}
    assert {(change["operator"], change["reason"]) for change in scenario.library.log()[3:]} == {("小王", "年份有误")}
    assert scenario.library.state(4)["douban_review_status"] == "REVIEW"
    assert scenario.library.state(4)["douban_review_reason"] == "关联 90000101 已被撤销：年份有误"
    assert scenario.check().failed_guards == set()

    redone = revert_writes(scenario, batch_id=undone.output["batch"], reason="是我看错了")
    assert (redone.success, redone.output["in_full"]) == (True, 3)
    assert scenario.library.all_bytes() == after
    assert {change["state"] for change in scenario.library.log()[:3]} == {"applied"}
    assert scenario.check().failed_guards == set()


def test_what_changed_since_is_left_and_listed(scenario):
    written = scenario.play()
    scenario.library.set_cms(4, vod_writer="站长改的")
    scenario.library.set_state(5, douban_id_locked=True, douban_id_lock_time=scenario.clock.now())
    undone = revert_writes(scenario, run_id=written.run_id)
    assert undone.success
    assert (undone.output["selected"], undone.output["in_full"], undone.output["in_part"]) == (3, 1, 2)
    reported = undone.output["changes"].replace("\\", "")
    assert "之后已被改动" in reported
    assert "之后已被锁定" in reported
    assert scenario.cms(4, "vod_douban_id", "vod_writer", "vod_actor") == (0, "站长改的", "内详")
    assert scenario.cms(5, "vod_douban_id", "vod_writer") == (90_000_102, "")


def test_a_decision_is_taken_back_too(scenario):
    scenario.play()
    scenario.clock.advance(minutes=1)
    before = scenario.library.all_bytes()
    requested = [{"vod_id": 4, "action": "clear_id"}]
    config = {"reviewer": "小李", "note": "误操作", "dry_run": False, "decisions": requested}
    assert scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success
    assert scenario.launch("apply_decisions").success
    assert scenario.cms(4, "vod_douban_id") == (0,)
    [change] = [change for change in scenario.library.log() if change["action"] == "clear_id"]
    assert revert_writes(scenario, change_ids=[change["change_id"]]).output["in_full"] == 1
    assert scenario.library.all_bytes() == before
    state = scenario.library.state(4)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (90_000_101, "CONFIRMED")


def test_the_same_revert_twice_does_nothing_the_second_time(scenario):
    written = scenario.play()
    assert revert_writes(scenario, run_id=written.run_id).output["in_full"] == 3
    before = scenario.library.all_bytes()
    assert revert_writes(scenario, run_id=written.run_id).output["selected"] == 0
    assert scenario.library.all_bytes() == before
    assert telling(scenario.library.log(), "state") == [("reverted",)] * 3 + [("applied",)] * 3


def decide(scenario, *decisions, play=True, reviewer="小李"):
    """Record decisions and carry them out; return the batch of the launch."""
    config = {"reviewer": reviewer, "note": "看过海报", "dry_run": False, "decisions": list(decisions)}
    assert scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success
    if play:
        assert scenario.play().success
    return scenario.decisions()[-1]["batch_id"]


@pytest.fixture
def decided(scenario):
    """A person put another subject under video 4, and locked the id of video 5; some time after all was written."""
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    scenario.before = scenario.library.all_bytes()
    scenario.batch = decide(
        scenario,
        {"vod_id": 4, "action": "set_id", "douban_id": 90_000_107, "accept_conflicts": True},
        {"vod_id": 5, "action": "lock_id"},
    )
    assert scenario.cms(4, "vod_douban_id", "vod_douban_score") == (90_000_107, Decimal("6.1"))
    assert scenario.library.state(5)["douban_id_locked"] is True
    return scenario


def ways(scenario):
    """Return what all selects the decisions of `decided`, and nothing else."""
    first, second = (decision["decision_id"] for decision in scenario.decisions())
    return {
        "batch": {"batch_id": scenario.batch},
        "decisions": {"decision_ids": [first, second]},
        "reviewer": {"written_by": "小李"},
        "window": {"since": "2026-03-01 12:01"},
        "window with offset": {"since": "2026-03-01T04:00:30Z", "until": "2026-03-01T12:02:00+08:00"},
        "all of it": {
            "written_by": "小李",
            "batch_id": scenario.batch,
            "rule_version": RULE_VERSION,
            "until": "2099-01-01 00:00",
        },
    }


@pytest.mark.parametrize("way", ["batch", "decisions", "reviewer", "window", "window with offset", "all of it"])
def test_what_people_decided_is_taken_back_with_what_followed_from_it(decided, way):
    chosen = ways(decided)[way]
    shown = revert_writes(decided, dry_run=True, **chosen)
    undone = revert_writes(decided, **chosen)
    for run in (shown, undone):
        assert (run.output["selected"], run.output["in_full"], run.output["videos"]) == (3, 3, 2)
    assert decided.library.all_bytes() == decided.before
    state = decided.library.state(4)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (90_000_101, "CONFIRMED")
    assert decided.library.state(5)["douban_id_locked"] is False
    assert telling(decided.decisions(), "state") == [("reverted",), ("reverted",)]
    assert decided.check().failed_guards == set()


def test_each_launch_goes_one_step_further_back(decided):
    steps = [revert_writes(decided, vod_ids=[4, 5]).output["selected"] for _ in range(3)]
    assert steps == [2, 2, 1]
    assert decided.cms(4, "vod_douban_id") == (0,)
    assert decided.cms(5, "vod_douban_id") == (0,)
    nothing_left = revert_writes(decided, vod_ids=[4, 5])
    assert nothing_left.success
    assert nothing_left.output["selected"] == 0
    assert "没有上一步可退的影片：4、5" in nothing_left.output["result"]


def test_chosen_changes_that_are_not_touched_are_reported(decided):
    done, other = (
        next(change["change_id"] for change in decided.library.log() if change["vod_id"] == vod_id) for vod_id in (6, 5)
    )
    assert revert_writes(decided, change_ids=[done]).output["in_full"] == 1
    again = revert_writes(decided, dry_run=True, change_ids=[done, other])
    assert again.output["selected"] == 1
    assert f"未选中的变更（已撤销、当时没有写入，或不符合其他条件）：{done}。" in again.output["result"]


def test_a_window_is_in_the_sites_time_zone(decided):
    assert revert_writes(decided, dry_run=True, until="2026-03-01 12:00:59").output["selected"] == 3
    assert (
        revert_writes(decided, dry_run=True, since="2026-03-01 12:00", until="2026-03-01 12:01").output["selected"] == 3
    )
    elsewhere = decided.under(site_timezone="UTC")
    assert revert_writes(elsewhere, dry_run=True, since="2026-03-01 04:01").output["selected"] == 3


def test_an_ignored_video_is_looked_at_again_once_that_is_taken_back(scenario):
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    batch = decide(scenario, {"vod_id": 4, "action": "ignore"})
    assert scenario.library.state(4)["douban_next_sync_at"] is None
    assert revert_writes(scenario, batch_id=batch).output["in_full"] == 1
    state = scenario.library.state(4)
    assert (state["douban_review_status"], state["douban_next_sync_at"]) == ("CONFIRMED", scenario.clock.now())
    scenario.clock.advance(minutes=1)
    assert scenario.play(4).metadata("due_videos")["due"] == 1


def test_decisions_that_wait_are_withdrawn_with_their_batch(scenario):
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    batch = decide(scenario, {"vod_id": 4, "action": "clear_id"}, {"vod_id": 5, "action": "ignore"}, play=False)
    shown = revert_writes(scenario, dry_run=True, batch_id=batch)
    assert (shown.success, shown.output["selected"], shown.output["decisions_withdrawn"]) == (True, 0, 2)
    assert "将撤回尚未执行的决定 2 条" in shown.output["result"]
    assert telling(scenario.decisions(), "state") == [("pending",), ("pending",)]
    assert revert_writes(scenario, batch_id=batch).output["decisions_withdrawn"] == 2
    assert (
        telling(scenario.decisions(), "state", "state_reason") == [("refused", "尚未执行即由 小王 撤回：年份有误")] * 2
    )
    scenario.clock.advance(minutes=1)
    assert scenario.play().success
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)
    # They no longer stand in the way of the same decision.
    scenario.clock.advance(minutes=1)
    decide(scenario, {"vod_id": 4, "action": "clear_id"})
    assert scenario.cms(4, "vod_douban_id") == (0,)


def test_an_order_that_waits_for_its_source_is_withdrawn_too(scenario):
    assert scenario.play().success
    scenario.clock.advance(days=2)
    scenario.upstream.faults.add("douban", "throttled")
    batch = decide(scenario, {"vod_id": 4, "action": "sync_now"})
    assert telling(scenario.decisions(), "state") == [("queued",)]
    assert revert_writes(scenario, batch_id=batch).output["decisions_withdrawn"] == 1
    assert telling(scenario.decisions(), "state") == [("refused",)]
    assert (scenario.task(4)["status"], scenario.task(4)["open_key"]) == ("SKIP", None)


@pytest.mark.parametrize(
    ("wrong", "problems"),
    [
        (
            {"change_ids": [1, 998, 999], "since": "昨天", "until": "2026-03-01"},
            [
                "since：“昨天” 不是时间",
                "until：“2026-03-01” 没有写到分钟",
                "change_ids 中没有这些变更：998、999",
            ],
        ),
        (
            {
                "decision_ids": [77],
                "vod_ids": [4, 88],
                "batch_id": "b",
                "run_id": "r",
                "written_by": "谁",
                "rule_version": "v",
            },
            [
                "decision_ids 中没有这些决定：77",
                "vod_ids 中没有这些影片：88",
                "没有找到批次 b 的任何变更",
                "没有找到运行 r 的任何变更",
                "没有找到审核员 谁 的任何变更",
                "没有找到规则版本 v 的任何变更",
            ],
        ),
        (
            {"since": "2026-03-01 12:00", "until": "2026-03-01 12:00", "vod_ids": [2**40]},
            [
                "since（2026-03-01 12:00）必须早于 until（2026-03-01 12:00，不含）",
                f"vod_ids 中没有这些影片：{2**40}",
            ],
        ),
        ({"reviewer": "pipeline", "change_ids": [1]}, ["reviewer 不能是 pipeline"]),
        ({"reviewer": "Pipeline ", "change_ids": [1]}, ["reviewer 不能是 pipeline"]),
        ({"reviewer": "王" * 65, "change_ids": [1]}, ["reviewer 最多 64 个字符"]),
        ({}, ["请至少填写一项"]),
        (
            {"vod_ids": [4], "until": "2026-01-01 00:00"},
            ["没有同时符合以下全部条件的变更：每部影片的上一步，影片 4；2026-01-01 00:00:00 之前"],
        ),
    ],
)
def test_all_that_is_wrong_is_reported_at_once_and_nothing_is_reverted(scenario, wrong, problems):
    assert scenario.play().success
    after, log = scenario.library.all_bytes(), scenario.library.log()
    run = revert_writes(scenario, **wrong)
    assert not run.success
    reported = run.failure.replace("\u00a0", " ").splitlines()
    assert reported[0].endswith("未撤销任何变更：")
    assert len(reported) == len(problems) + 1
    assert [problem for problem in problems if not any(problem in line for line in reported)] == []
    assert (scenario.library.all_bytes(), scenario.library.log()) == (after, log)


def test_more_than_meant_is_counted_and_nothing_is_reverted(scenario):
    written = scenario.play()
    after = scenario.library.all_bytes()
    run = revert_writes(scenario, run_id=written.run_id, max_changes=2)
    assert not run.success
    assert "符合条件的变更有 3 条，超过 max_changes（2）" in run.failure
    assert "调大 max_changes" in run.failure
    assert scenario.library.all_bytes() == after
    assert revert_writes(scenario, run_id=written.run_id, max_changes=3).output["in_full"] == 3


def test_what_was_skipped_is_reported_first_and_outside_text_is_escaped(scenario):
    written = scenario.play()
    scenario.library.set_cms(6, vod_writer="站长|改的", vod_name="<b>片*名</b>")
    shown = revert_writes(scenario, dry_run=True, run_id=written.run_id)
    lines = shown.output["changes"].splitlines()
    short = [line for line in lines if line.startswith("| ")][1:]
    assert [row.split("|")[3].strip() for row in short] == ["6", "5", "4"]
    # What is long stands in numbered lines below.
    below = {line[4]: line for line in lines if line.startswith("- **")}
    rows = [row + below.get(str(number), "") for number, row in enumerate(short, 1)]
    assert "<b>" not in shown.output["changes"]
    assert "片\\*名" in rows[0]
    assert "vod\\_writer" in rows[0]
    assert "之后已被改动" in rows[0]
    assert "vod\\_douban\\_id：90000101 → 0" in rows[2]
    assert "转入待审核" in rows[2]
    assert (shown.output["in_full"], shown.output["in_part"]) == (2, 1)


def config_of(markdown):
    """Return the config that the first link of a text fills a launchpad with."""
    address = re.search(r"config=([^)]+)\)", markdown).group(1)
    return yaml.safe_load(unquote(address))["ops"]["revert_writes"]["config"]


def test_what_comes_next_is_a_link_away(scenario):
    written = scenario.play()
    shown = revert_writes(scenario, dry_run=True, run_id=written.run_id)
    config = config_of(shown.output["next"])
    assert (config["run_id"], config["dry_run"], config["reviewer"]) == (written.run_id, False, "小王")
    assert set(config) == set(RevertConfig.model_fields)
    undone = scenario.launch("revert_changes", {"revert_writes": {"config": config}})
    assert undone.output["in_full"] == 3
    again = config_of(undone.output["next"])
    assert (again["batch_id"], again["dry_run"], again["reviewer"]) == (undone.output["batch"], True, "小王")


def test_who_only_looks_signs_nothing(scenario):
    written = scenario.play()
    shown = revert_writes(scenario, dry_run=True, reviewer="", reason="", run_id=written.run_id)
    assert shown.output["in_full"] == 3
    assert "填写 reviewer 和 reason" in shown.output["next"]
    assert not revert_writes(scenario, reviewer="", reason="", run_id=written.run_id).success


def test_a_step_back_says_which_steps_stay(decided):
    for dry_run in (True, False):
        steps = revert_writes(decided, vod_ids=[4], dry_run=dry_run).output["steps"]
        rows = [line for line in steps.splitlines() if line.startswith("| 4 ")]
        assert len(rows) >= 2
        assert [row.rstrip(" |").rsplit("| ", 1)[1] for row in rows] == ["撤销", *["保留"] * (len(rows) - 1)]


@pytest.mark.parametrize(("dies", "at", "left"), [("_apply", 2, {"abandoned"}), ("_settle", 1, set())])
def test_a_killed_launch_leaves_nothing_half_and_the_next_one_goes_on(scenario, monkeypatch, dies, at, left):
    before = scenario.library.all_bytes()
    written = scenario.play()
    real, calls = getattr(ChangeLog, dies), itertools.count(1)

    def dying(self, *arguments):
        if next(calls) == at:
            raise KeyboardInterrupt
        return real(self, *arguments)

    log, chosen = scenario.library.change_log("killed", owner=dead_owner()), ChangeSelection(run_id=written.run_id)
    with monkeypatch.context() as patch:
        patch.setattr(ChangeLog, dies, dying)
        with pytest.raises(KeyboardInterrupt):
            revert(log, chosen, operator="小王", reason="年份有误", dry_run=False)
    assert "prepared" in {change["state"] for change in scenario.library.log()}
    assert revert_writes(scenario, run_id=written.run_id).success
    assert scenario.library.all_bytes() == before
    assert {change["state"] for change in scenario.library.log()} == {"reverted", "applied"} | left


def test_the_launchpad_is_prefilled_with_everything_and_every_default_is_safe():
    config = revert_changes.run_config["ops"]["revert_writes"]["config"]
    assert set(config) == set(RevertConfig.model_fields)
    assert config["dry_run"] is True
    assert config["max_changes"] == 10_000
    assert not any(value for name, value in config.items() if name not in ("dry_run", "max_changes"))
    assert fits_schema(revert_changes, revert_changes.run_config)
