"""The job with which reviewers decide: its launchpad, its manual, its table, and what a run of it comes to.

The rules by which rows are refused are `test_validation`'s, what is written down is `test_records`'s.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from types import SimpleNamespace
from urllib.parse import unquote

import dagster as dg
import pytest
import yaml

from douban_pipeline.core.ui.launchpad_links import op_config, row
from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline.douban.links import UNDONE
from douban_pipeline.douban.review.jobs import (
    DecisionRow,
    DecisionsConfig,
    log_progress,
    record_decisions,
    recorded_table,
)
from douban_pipeline.douban.review.records.record import Recording
from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline_tests.harness.fixtures.locations import fits_schema
from douban_pipeline_tests.harness.fixtures.scenario import (
    FILMS,
    KITE,
    RIVER,
    TRAM,
    WHALE,
    row_of,
    subject,
    telling,
)

RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])


@pytest.fixture
def scenario(stage):
    """Video 4 waits for a person, video 5 was never judged, video 6 is linked."""
    poor = {"vod_director": "", "vod_actor": "", "vod_class": ""}
    rows = [row_of(RIVER, 4, **poor), row_of(WHALE, 5), row_of(TRAM, 6, vod_douban_id=90_000_103)]
    found = stage(rows, [RIVER, RIVAL, *FILMS[1:]])
    assert found.play(4).success
    found.clock.advance(minutes=1)
    return found


def launch(scenario, *decisions, reviewer="小王", note="海报一致", dry_run=False):
    config = {"reviewer": reviewer, "note": note, "dry_run": dry_run, "decisions": list(decisions)}
    return scenario.launch("record_decisions", {"store_decisions": {"config": config}})


def failure_metadata(run):
    """Return the metadata of the run's failure, as plain values."""
    [event] = [event for event in run.result.all_events if event.is_step_failure]
    return {name: value.value for name, value in event.step_failure_data.user_failure_data.metadata.items()}


# --- what a run comes to ----------------------------------------------------------------------------------------------


def test_the_good_rows_are_recorded_and_the_run_tells_of_the_others(scenario):
    before = scenario.library.all_bytes()
    run = launch(
        scenario,
        {"vod_id": 404, "action": "ignore"},
        {"vod_id": 4, "action": "set_id", "douban_id": 90_000_203, "lock": True},
        {"vod_id": 5, "action": "confirm_top1"},
        {"vod_id": 6, "action": "rematch"},
        {"vod_id": 5, "action": "replace_and_lock", "douban_id": KITE["id"]},
    )
    assert run.success, "what could be recorded is"
    assert next(iter(run.output)) == "refusals", "first of all"
    warned = run.guards["decisions_accepted"]
    assert (warned.passed, warned.severity, warned.asset_key.to_user_string()) == (
        False,
        dg.AssetCheckSeverity.WARN,
        "applied_decisions",
    )
    assert warned.description == "本次记录 2 条，拒绝 3 条；请按原因改正后重新决定"
    assert next(iter(warned.metadata)) == "refusals"
    assert str(warned.metadata["refusals"].value).count("\n") == 2, "a line for each"
    logged = scenario.instance.all_logs(run.run_id)
    [warning] = [entry.user_message for entry in logged if entry.level == logging.WARNING]
    assert warning.splitlines()[0] == run.output["refusals"].splitlines()[0] == "已记录 2 条，拒绝 3 条"
    assert warning.split("\n- ")[1:3] == [
        "decisions 第 1 条（影片 404）：没有这部影片，请把示例换成真实的 vod_id",
        "decisions 第 3 条（影片 5《蓝鲸与灯塔守望者》）：没有候选条目，请改用 set_id；"
        "与 decisions 第 5 条（替换豆瓣 ID 并锁定）矛盾，请只留下一条",
    ]
    metadata = run.output
    assert (metadata["recorded"], metadata["refused"]) == (2, 3)
    assert list(metadata)[1:] == ["decisions", "undo", "batch", "recorded", "refused", "dry_run"], "zeros say nothing"
    assert metadata["dry_run"] is False
    results = [line.split("|")[7].strip() for line in metadata["decisions"].splitlines()[2:]]
    assert results == ["拒绝", "拒绝", "拒绝", "已记录", "已记录"]
    columns = ("vod_id", "action", "douban_id", "lock", "reviewer", "note", "state", "run_id", "batch_id")
    signed = ("小王", "海报一致")
    after = (run.run_id, metadata["batch"])
    assert sorted(telling(scenario.decisions(), *columns)) == [
        (4, "set_id", 90_000_203, True, *signed, "pending", *after),
        (5, "confirm_top1", 0, False, *signed, "refused", *after),
        (5, "replace_and_lock", KITE["id"], False, *signed, "refused", *after),
        (6, "rematch", 0, False, *signed, "pending", *after),
        (404, "ignore", 0, False, *signed, "refused", *after),
    ]
    assert scenario.library.all_bytes() == before, "recording writes nothing to the CMS"


def test_a_subject_that_does_not_fit_is_refused_unless_it_is_meant(scenario):
    requested = {"vod_id": 5, "action": "set_id", "douban_id": KITE["id"]}
    refused = launch(scenario, requested)
    assert "条目 90000105 与《纸鸢飞过旧城墙》（2019）对不上：标题冲突：相似度" in refused.failure
    assert refused.failure.endswith("请核对；确认无误请加 accept_conflicts: true")
    meant = launch(scenario, {**requested, "accept_conflicts": True})
    assert meant.success
    assert "已接受：条目 90000105 与《纸鸢飞过旧城墙》" in meant.output["decisions"].replace("\\", "")
    [_, stored] = scenario.decisions(5)
    assert (stored["state"], stored["accept_conflicts"]) == ("pending", True)
    assert stored["checked_at"] == scenario.clock.now()
    assert launch(scenario, {"vod_id": 6, "action": "set_id", "douban_id": 90_009_999}).failure.endswith(
        "豆瓣没有条目 90009999，请核对 douban_id"
    )


def test_whoever_rehearses_is_reminded_that_decisions_wait(scenario):
    requested = {"vod_id": 6, "action": "lock_intro"}
    assert "waits" not in launch(scenario, requested).output
    reported = launch(scenario.under(dry_run=True), requested).output["waits"]
    assert reported == "DOUBAN_PIPELINE_DRY_RUN=true：决定先记录，关闭演练模式之后才执行"


def test_a_source_that_is_closed_puts_the_check_off(scenario):
    scenario.services.gate.open("douban", scenario.clock.now().replace(year=2030), "测试")
    run = launch(scenario, {"vod_id": 5, "action": "set_id", "douban_id": WHALE["id"]})
    assert (run.success, run.output["recorded"], run.output["unchecked"]) == (True, 1, 1)
    assert "条目尚未核对，执行时先核对" in run.output["decisions"]
    assert telling(scenario.decisions(), "state", "checked_at") == [("pending", None)]


def test_the_same_launch_again_is_harmless(scenario):
    requested = {"vod_id": 4, "action": "set_id", "douban_id": 90_000_203}
    first = launch(scenario, requested)
    again = launch(scenario, requested, {"vod_id": 6, "action": "lock_id"})
    assert again.success
    assert (again.output["recorded"], again.output["known"]) == (1, 1)
    assert f"已有相同的决定（小王，批次 {first.output['batch']}）" in again.output["decisions"]
    assert telling(scenario.decisions(), "vod_id", "state") == [(4, "pending"), (6, "pending")]
    assert scenario.play().metadata("synced_fields")["decisions_applied"] == 2
    # Once it was applied, it is so, and needs no decision.
    scenario.clock.advance(minutes=1)
    later = launch(scenario, requested)
    assert (later.success, later.output["known"]) == (True, 1)
    assert "已经如此，无需记录" in later.output["decisions"]
    assert len(scenario.decisions()) == 2


def test_the_top_candidate_is_that_of_the_newest_verdict(scenario):
    requested = {"vod_id": 4, "action": "confirm_top1"}
    scenario.library.set_cms(4, vod_name="改了名的另一部片")
    assert "候选已过时：影片资料在判定之后改变过" in launch(scenario, requested).failure
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now())
    assert scenario.play(4).success
    assert telling(scenario.verdicts(4), "verdict") == [("REVIEW",), ("NOT_FOUND",)]
    scenario.clock.advance(minutes=1)
    assert "没有候选条目，请改用 set_id" in launch(scenario, requested).failure, "not one of a name it had before"


def test_a_dry_run_checks_and_shows_without_recording(scenario):
    before = scenario.library.states()
    run = launch(scenario, {"vod_id": 4, "action": "confirm_top1", "lock": True}, dry_run=True)
    assert run.success
    assert (run.output["dry_run"], run.output["recorded"]) == (True, 0)
    assert not {"batch", "undo"} & set(run.output), "there is nothing to take back"
    assert "仅检查，可以记录" in run.output["decisions"]
    top = next(row["douban_id"] for row in scenario.candidates(4) if row["rank"] == 1)
    assert f"[{top}](https://movie.douban.com/subject/{top}/)" in run.output["decisions"]
    mixed = launch(scenario, {"vod_id": 6, "action": "rematch"}, {"vod_id": 404, "action": "ignore"}, dry_run=True)
    assert mixed.success
    assert "仅检查：1 条可以记录，拒绝 1 条" in mixed.output["refusals"]
    assert (scenario.decisions(), scenario.library.states()) == ([], before)


def test_a_video_with_a_decision_gets_the_task_that_follows_from_it_and_no_other(scenario):
    assert launch(scenario, {"vod_id": 5, "action": "set_id", "douban_id": WHALE["id"]}).success
    run = scenario.play(5, steps=["due_videos"])
    assert run.metadata("due_videos")["decisions_first"] == 1
    [task] = [task for task in scenario.library.tasks() if task["vod_id"] == 5]
    [decision] = scenario.decisions()
    assert (task["task_type"], task["payload"]) == ("SYNC_DOUBAN", {"decision_id": decision["decision_id"]})


@pytest.mark.parametrize("field", ["reviewer", "note"])
def test_a_secret_of_the_environment_cannot_be_written_down(scenario, field, monkeypatch):
    # Dagster resolves {env: NAME} in any text field of a launchpad.
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    run = launch(scenario, {"vod_id": 4, "action": "confirm_top1"}, **{field: {"env": "SITE_DATABASE_PASSWORD"}})
    assert not run.success
    assert run.failure.endswith("配置中不得引用环境变量：SITE_DATABASE_PASSWORD")
    assert "geheim" not in str(run.result.all_events)
    assert scenario.decisions() == []


# --- the launchpad and the manual -------------------------------------------------------------------------------------


def test_launching_the_defaults_says_what_to_fill_in(scenario):
    runs = scenario.instance.get_runs_count()
    assert scenario.launch("record_decisions").failure.splitlines() == [
        "未记录任何决定：",
        "- reviewer: 不能为空，请填写你的名字",
        "- decisions 第 1 条 vod_id: 至少为 1，现为 0，影片的编号在 mac_vod.vod_id",
    ]
    assert scenario.instance.get_runs_count() == runs, "no run was begun"
    assert scenario.decisions() == []


def test_five_hundred_videos_are_decided_in_one_launch(scenario):
    ids = range(1001, 1501)
    scenario.library.add(*(row_of(WHALE, vod_id) for vod_id in ids))
    given = [{"vod_id": vod_id, "action": "ignore", "days": 30} for vod_id in ids]
    assert Intake.of(scenario.services).changes().new == len(ids)
    done = launch(scenario, *given).output
    assert (done["recorded"], done["decisions"].count("已记录")) == (500, 500)
    assert Counter(row["state"] for row in scenario.decisions()) == {"pending": 500}


def test_the_launchpad_is_prefilled_with_everything_and_every_default_is_safe():
    # The launchpad shows what the job's own config holds, and nothing else.
    config = record_decisions.run_config["ops"]["store_decisions"]["config"]
    assert set(config) == set(DecisionsConfig.model_fields)
    assert [set(row) for row in config["decisions"]] == [set(DecisionRow.model_fields)]
    assert config["dry_run"] is True
    assert config["decisions"][0]["action"] == "confirm_top1", "members are typed by name"
    assert fits_schema(record_decisions, record_decisions.run_config)


def test_a_launch_links_to_what_takes_it_back(scenario):
    top = scenario.candidates(4)[0]["douban_id"]
    run = launch(scenario, {"vod_id": 4, "action": "choose", "douban_id": top})
    assert list(run.output) == ["decisions", "undo", "batch", "recorded", "dry_run"]
    [path] = re.findall(
        r"^\[撤销这一批\]\((/locations/\S+/jobs/revert_changes/playground/setup\?config=\S+)\)$", run.output["undo"]
    )
    config = yaml.safe_load(unquote(path.partition("config=")[2]))["ops"]["revert_writes"]["config"]
    # Signed by who recorded it, and green as it opens.
    assert config == {"reviewer": "小王", "reason": UNDONE, "dry_run": True, "batch_id": run.output["batch"]}
    assert scenario.launch("revert_changes", {"revert_writes": {"config": config}}).success
    assert scenario.play().metadata("synced_fields")["decisions_applied"] == 1
    signed = {**config, "dry_run": False}
    assert scenario.launch("revert_changes", {"revert_writes": {"config": signed}}).success
    assert scenario.library.row(4)["vod_douban_id"] == 0


def test_where_nothing_was_recorded_there_is_nothing_to_take_back(scenario):
    metadata = failure_metadata(launch(scenario, {"vod_id": 404, "action": "ignore"}))
    assert list(metadata) == ["decisions", "recorded", "refused", "dry_run"]


def test_a_row_has_the_fields_of_a_decision_that_people_write():
    fields = list(Decision.__dataclass_fields__)
    assert list(DecisionRow.model_fields) == fields[: fields.index("note")]


def test_the_manual_names_every_action_and_field_and_its_example_can_be_launched(scenario):
    manual = record_decisions.description
    named = set(re.findall(r"`(\w+)`", manual))
    assert named >= {str(action) for action in DecisionAction}
    assert named >= {*DecisionsConfig.model_fields, *DecisionRow.model_fields} - {"decisions"}
    assert set(ACTIONS) == set(DecisionAction)
    [example] = re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL)
    config = yaml.safe_load(example)
    assert fits_schema(record_decisions, config)
    assert len({row["action"] for row in config["ops"]["store_decisions"]["config"]["decisions"]}) >= 5
    assert "影片 1024" in scenario.launch("record_decisions", config["ops"]).failure
    [path] = re.findall(r"^\[[^]]+\]\((/locations/\S+/jobs/record_decisions/\S+)\)", manual, re.MULTILINE)
    opened = yaml.safe_load(unquote(path.partition("config=")[2]))["ops"]["store_decisions"]["config"]
    assert (opened["reviewer"], opened["dry_run"]) == ("", True), "nobody signed it"
    assert opened["decisions"] == config["ops"]["store_decisions"]["config"]["decisions"]


def test_a_link_into_the_launchpad_opens_what_can_be_launched():
    rows = [row(vod_id=4, action="choose", rank=2, verdict_id=7), row(vod_id=5, action="ignore", days=30)]
    config = op_config("store_decisions", {"reviewer": "", "note": "", "dry_run": True, "decisions": rows})
    assert fits_schema(record_decisions, yaml.safe_load(config))


# --- what is left to others -------------------------------------------------------------------------------------------


def test_a_launch_leaves_applying_to_the_lane(scenario):
    assert launch(scenario, {"vod_id": 5, "action": "ignore", "days": 30}).success
    assert [row["state"] for row in scenario.decisions()] == ["pending"]


# --- the table and the log --------------------------------------------------------------------------------------------


def recorded(number, status, action="ignore", **more):
    return Decision(number, DecisionAction(action), where=f"第 {number} 行", status=DecisionStatus(status), **more)


def test_the_table_shows_refused_rows_first_and_then_those_to_be_checked():
    recording = Recording(
        "b",
        (
            recorded(1, "known", reason="已有相同的决定"),
            recorded(2, "recorded"),
            recorded(3, "already"),
            recorded(4, "refused", reason="因为|<b>", title="*甲*"),
            recorded(5, "recorded", "set_id"),
        ),
    )
    lines = recorded_table(recording).splitlines()
    assert [line.split("|")[2].strip() for line in lines[2:]] == ["4", "5", "2", "3", "1"]
    assert "因为\\|&lt;b&gt;" in lines[2]
    assert "\\*甲\\*" in lines[2]
    assert (len(recording.of("recorded")), len(recording.of("known", "already"))) == (2, 2)


def test_a_table_of_thousands_says_how_many_it_leaves_out():
    text = recorded_table(Recording("b", tuple(recorded(number, "refused", reason="原因") for number in range(600))))
    assert len(text.splitlines()) == 2 + 500 + 2
    assert text.endswith("…… 另有 100 条")


def test_the_log_tells_of_progress_every_few_seconds(scenario):
    heard: list[str] = []
    tell = log_progress(SimpleNamespace(log=SimpleNamespace(info=heard.append)), scenario.services, 9)
    for done in range(9):
        tell(done)
        scenario.clock.advance(seconds=4)
    assert heard == ["3 of 9 decisions settled", "6 of 9 decisions settled"]
