"""The guards on what was written: each fails once, says where, holds back the reports, and passes once mended."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.douban.writes.changes import PIPELINE
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import dead_owner
from douban_pipeline_tests.harness.fixtures.runs import shown_rows
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, WRITE_AND_REPORT, row_of

SHARD, QUIET_SHARD = 4, 5
REPORTS = {"review_queue", "duplicate_reports"}


@pytest.fixture
def scenario(stage):
    """Videos 4 and 69 (of shards 04 and 05) are linked and as Douban has them; nothing is due."""
    linked = stage([row_of(RIVER, 4, vod_actor=""), row_of(WHALE, 69)], FILMS)
    assert linked.play().success
    assert [change["state"] for change in linked.library.log()] == ["applied", "applied"]
    return linked


def log_row(scenario, **columns):
    """Write a row into the change log behind everybody's back."""
    now = scenario.clock.now()
    values = {
        "vod_id": 4,
        "shard": 4,
        "action": "sync",
        "old_values": {},
        "new_values": {},
        "state_old": {},
        "state_new": {},
        "operator": PIPELINE,
        "batch_id": "planted",
        "run_id": "planted",
        "state": "applied",
        "prepared_at": now,
        "applied_at": now,
        **columns,
    }
    scenario.library.execute(sa.insert(scenario.library.tables.log).values(values))


def forget_planted(scenario):
    log = scenario.library.tables.log
    scenario.library.execute(sa.delete(log).where(log.c.run_id == "planted"))


def blank(scenario, column="vod_writer", value=""):
    log_row(scenario, old_values={column: "长河编"}, new_values={column: value})
    scenario.library.set_cms(4, **{column: value})


def restore_writer(scenario):
    forget_planted(scenario)
    scenario.library.set_cms(4, vod_writer="长河编")


def lock_then_write(scenario, lock, column, value):
    scenario.clock.advance(minutes=1)
    scenario.library.set_state(4, **{f"{lock}ed": True, f"{lock}_time": scenario.clock.now()})
    scenario.clock.advance(minutes=1)
    log_row(scenario, old_values={column: value}, new_values={column: scenario.cms(4, column)[0]})


def write_locked_id(scenario):
    lock_then_write(scenario, "douban_id_lock", "vod_douban_id", 0)


def write_locked_synopsis(scenario):
    lock_then_write(scenario, "intro_lock", "vod_blurb", "旧")


def die_in_the_middle(scenario):
    log_row(
        scenario,
        old_values={"vod_writer": "长河编"},
        new_values={"vod_writer": "新人"},
        state="prepared",
        owner=dead_owner(),
        applied_at=None,
    )


def forget_the_link(scenario):
    log = scenario.library.tables.log
    scenario.library.execute(
        sa.update(log).where(log.c.vod_id == 4).values(action="sync", new_values={"vod_writer": "长河编"})
    )


def remember_the_link(scenario):
    log_row(scenario, old_values={"vod_douban_id": 0}, new_values={"vod_douban_id": 90_000_101})


CASES = [
    pytest.param("nothing_blanked", blank, restore_writer, "把 vod_writer 清空", id="emptied"),
    pytest.param(
        "nothing_blanked",
        lambda scenario: blank(scenario, value="内详"),
        restore_writer,
        "把 vod_writer 清空",
        id="a placeholder",
    ),
    pytest.param("locked_untouched", write_locked_id, forget_planted, "改写了已锁定的豆瓣 ID", id="locked id"),
    pytest.param("locked_untouched", write_locked_synopsis, forget_planted, "改写了已锁定的简介", id="locked synopsis"),
    pytest.param(
        "log_agrees_with_cms",
        forget_the_link,
        remember_the_link,
        "豆瓣 ID 90000101 没有对应的变更记录",
        id="id unlogged",
    ),
]


@pytest.mark.parametrize(("guard", "plant", "mend", "sentence"), CASES)
def test_a_bad_write_is_shown_by_every_run_until_it_is_mended(scenario, guard, plant, mend, sentence):
    plant(scenario)
    before = scenario.library.all_bytes()
    # The run is about another shard, whose own videos are in order.
    run = scenario.run(QUIET_SHARD, job=WRITE_AND_REPORT)
    assert (run.success, run.failed_guards) == (False, {guard})
    assert run.guards[guard].blocking
    said = run.guard(guard)
    assert (said["violations"], said["shards"]) == (1, "04")
    assert sentence in said["videos"].replace("\\", "")
    assert shown_rows(said["videos"])[0].startswith("4 ")
    assert run.materialized == {"synced_fields"}, "no report is made of it"
    assert scenario.library.all_bytes() == before

    mend(scenario)
    assert scenario.check().failed_guards == set()


def test_a_visit_before_the_last_one_is_mended_and_stops_nothing(scenario):
    last = scenario.library.state(4)["douban_last_sync_at"]
    scenario.library.set_state(4, douban_next_sync_at=last - timedelta(hours=1))
    run = scenario.run(QUIET_SHARD, job=WRITE_AND_REPORT)
    assert (run.success, run.failed_guards) == (True, {"next_sync_in_future"})
    assert "下次同步时间不在未来" in run.guard("next_sync_in_future")["videos"]
    assert scenario.library.state(4)["douban_next_sync_at"] == last + timedelta(seconds=1)
    assert scenario.check().failed_guards == set()


def test_a_run_that_was_killed_while_writing_stops_no_other(scenario):
    die_in_the_middle(scenario)
    shown = scenario.check()
    assert shown.failed_guards == {"no_change_interrupted"}
    assert shown.results["no_change_interrupted"].severity is dg.AssetCheckSeverity.WARN
    assert scenario.run(QUIET_SHARD, job=WRITE_AND_REPORT).success


def test_what_a_dead_run_left_is_shown_and_mended_by_the_next_run(scenario):
    die_in_the_middle(scenario)
    shown = scenario.check()
    assert shown.failed_guards == {"no_change_interrupted"}
    assert "停在 prepared，而其运行已结束" in shown.guard("no_change_interrupted")["videos"]
    run = scenario.run(QUIET_SHARD)
    assert (run.success, run.metadata("due_videos")["reconciled_changes"]) == (True, 1)
    assert scenario.library.log()[-1]["state"] == "abandoned"
    assert scenario.check().failed_guards == set()


@pytest.mark.parametrize("lock", ["douban_id_locked", "intro_locked"])
def test_a_lock_set_after_the_write_is_no_breach(scenario, lock):
    scenario.clock.advance(minutes=5)
    name = lock.replace("locked", "lock_time")
    scenario.library.set_state(4, **{lock: True, name: scenario.clock.now()})
    assert scenario.check().failed_guards == set()


def test_a_lock_without_a_time_always_held(scenario):
    scenario.library.set_state(4, douban_id_locked=True)
    assert scenario.check().failed_guards == {"locked_untouched"}


def test_people_and_the_cms_may_do_what_the_machine_may_not(scenario):
    log_row(
        scenario, operator="小王", action="clear_id", old_values={"vod_writer": "长河编"}, new_values={"vod_writer": ""}
    )
    scenario.library.set_cms(4, vod_writer="")
    assert scenario.check().failed_guards == set()
    # What the site's own people saved since is theirs: the CMS tells so by `vod_time`.
    later = int(scenario.clock.now().timestamp()) + 60
    scenario.library.set_cms(69, vod_writer="站长改的", vod_time=later)
    assert scenario.check().failed_guards == set()


def test_what_a_lock_noted_is_no_write(scenario):
    """A text that a person locked was not written by anybody here: whoever edits it in the CMS has lost no write."""
    decide(scenario.library, 4, "lock_intro")
    assert scenario.play(4).success
    scenario.library.set_cms(4, vod_content="站长又改了")
    assert "writes_take_hold" not in scenario.check().failed_guards
    scenario.library.set_cms(4, vod_writer="别人")
    assert "writes_take_hold" in scenario.check().failed_guards


def test_old_writes_are_no_longer_looked_at(scenario):
    blank(scenario)
    scenario.library.set_cms(69, vod_writer="别人")
    assert scenario.check().failed_guards == {"nothing_blanked", "writes_take_hold"}
    scenario.clock.advance(hours=25)
    assert scenario.check().failed_guards == set()


def test_the_writing_step_leaves_a_locked_id_and_a_locked_synopsis_alone(stage):
    scenario = stage(
        [row_of(RIVER, 4, vod_content="", vod_douban_id=90_000_101), row_of(TRAM, 5, vod_content="")], FILMS
    )
    scenario.library.set_state(4, douban_id_locked=True, intro_locked=True)
    scenario.library.set_state(5, intro_locked=True)
    assert scenario.run().success
    assert scenario.cms(4, "vod_douban_id", "vod_writer") == (90_000_101, "长河编"), "other fields are synced"
    for vod_id in (4, 5):
        assert scenario.cms(vod_id, "vod_content", "vod_blurb") == ("", "")
    assert scenario.check().failed_guards == set()


def test_a_single_edit_of_others_is_reported_and_stops_nothing(scenario):
    scenario.library.set_cms(4, vod_writer="别人")
    run = scenario.run(QUIET_SHARD, job=WRITE_AND_REPORT)
    assert (run.success, run.failed_guards) == (True, {"writes_take_hold"})
    assert run.guards["writes_take_hold"].severity is dg.AssetCheckSeverity.WARN
    said = run.guard("writes_take_hold")
    assert (said["violations"], said["shards"]) == (1, "04")
    assert "写入的值不一致" in said["videos"].replace("\\", "")
    assert run.materialized == {"synced_fields", *REPORTS}
    scenario.library.set_cms(4, vod_writer="长河编")
    assert scenario.check().failed_guards == set()
