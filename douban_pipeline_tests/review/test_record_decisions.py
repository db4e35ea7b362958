"""Reviewers' decisions are recorded whole or not at all, and never written to the CMS by the recording itself."""

from __future__ import annotations

import dagster as dg
import pytest

from douban_pipeline.catalog.states import DecisionAction
from douban_pipeline.review.decisions import DecisionError, Wish, record
from douban_pipeline.review.jobs import DecisionRow, DecisionsConfig, record_decisions
from douban_pipeline_tests.scenario import FILMS, RIVER, TRAM, WHALE, row_of, subject, telling

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


def test_every_problem_is_told_at_once_and_nothing_is_recorded(scenario):
    before, states = scenario.library.all_bytes(), scenario.library.states()
    run = launch(
        scenario,
        {"vod_id": 404, "action": "set_id", "douban_id": 90_000_101},
        {"vod_id": 4, "action": "confirm_top1"},
        {"vod_id": 4, "action": "ignore"},
        {"vod_id": 5, "action": "confirm_top1"},
        {"vod_id": 6, "action": "set_id", "douban_id": 9999},
        {"vod_id": 69, "action": "lock_id", "douban_id": 90_000_101},
        reviewer="  ",
    )
    assert not run.success
    assert run.failure.split("\n- ")[1:] == [
        "reviewer: 请填写审核员的名字",
        "decisions 第 1 条（影片 404）：没有这部影片，请把示例换成真实的 vod_id",
        "decisions 第 3 条（影片 4）：同一部影片有不止一条决定",
        "decisions 第 4 条（影片 5）：没有候选条目，请改用 set_id",
        "decisions 第 5 条（影片 6）：set_id 需要 douban_id（不小于 10000），现为 9999",
        "decisions 第 6 条（影片 69）：没有这部影片，请把示例换成真实的 vod_id",
    ]
    assert "未记录任何决定" in run.failure
    assert (scenario.decisions(), scenario.library.states(), scenario.library.all_bytes()) == ([], states, before)


@pytest.mark.parametrize("field", ["reviewer", "note"])
def test_a_secret_of_the_environment_cannot_be_written_down(scenario, field, monkeypatch):
    # Dagster resolves {env: NAME} in any text field of a launchpad.
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    run = launch(scenario, {"vod_id": 4, "action": "confirm_top1"}, **{field: {"env": "SITE_DATABASE_PASSWORD"}})
    assert not run.success
    assert run.failure.endswith("配置中不得引用环境变量：SITE_DATABASE_PASSWORD")
    assert "geheim" not in str(run.result.all_events)
    assert scenario.decisions() == []


@pytest.mark.parametrize("action", sorted(set(DecisionAction) - {DecisionAction.set_id}))
def test_a_subject_is_only_named_where_it_counts(scenario, action):
    with pytest.raises(DecisionError) as caught:
        record(scenario.services, [Wish(4, action, 90_000_101)], reviewer="小王", note="", run_id="r", dry_run=True)
    assert caught.value.problems == (
        f"decisions 第 1 条（影片 4）：{action} 不使用 douban_id，请改为 0，或改用 set_id",
    )


def test_the_top_candidate_is_that_of_the_newest_verdict(scenario):
    scenario.library.set_cms(4, vod_name="改了名的另一部片")
    scenario.library.set_state(4, douban_next_sync_at=scenario.clock.now())
    assert scenario.play(4).success
    assert telling(scenario.verdicts(4), "verdict") == [("REVIEW",), ("NOT_FOUND",)]
    scenario.clock.advance(minutes=1)
    run = launch(scenario, {"vod_id": 4, "action": "confirm_top1"})
    assert "decisions 第 1 条（影片 4）：没有候选条目，请改用 set_id" in run.failure, "not one of a name it had before"


def test_an_empty_list_is_a_mistake(scenario):
    with pytest.raises(DecisionError, match="decisions: 至少填写一条决定"):
        record(scenario.services, [], reviewer="小王", note="", run_id="r", dry_run=False)


def test_a_dry_run_checks_and_shows_without_recording(scenario):
    before = scenario.library.states()
    run = launch(scenario, {"vod_id": 4, "action": "confirm_top1", "lock": True}, dry_run=True)
    assert run.success
    assert (run.output["dry_run"], "仅检查" in run.output["decisions"]) == (True, True)
    top = next(row["douban_id"] for row in scenario.candidates(4) if row["rank"] == 1)
    assert f"[{top}](https://movie.douban.com/subject/{top}/)" in run.output["decisions"]
    assert (scenario.decisions(), scenario.library.states()) == ([], before)
    assert not launch(scenario, {"vod_id": 404, "action": "ignore"}, dry_run=True).success


def test_what_is_recorded(scenario):
    before = scenario.library.all_bytes()
    run = launch(
        scenario,
        {"vod_id": 4, "action": "set_id", "douban_id": 90_000_203, "lock": True},
        {"vod_id": 6, "action": "rematch"},
        reviewer=" 小王 ",
        note="导演一致 ",
    )
    assert run.success
    assert run.output["decisions"].count("已记录") == 2
    columns = ("vod_id", "shard", "action", "douban_id", "lock", "reviewer", "note", "state", "run_id")
    assert telling(scenario.decisions(), *columns) == [
        (4, 4, "set_id", 90_000_203, True, "小王", "导演一致", "pending", run.run_id),
        (6, 6, "rematch", 0, False, "小王", "导演一致", "pending", run.run_id),
    ]
    now = scenario.clock.now()
    assert {scenario.library.state(vod_id)["douban_next_sync_at"] for vod_id in (4, 6)} == {now}, "due for the sensor"
    assert scenario.library.all_bytes() == before


def test_the_same_decision_twice_is_harmless(scenario):
    wish = {"vod_id": 4, "action": "set_id", "douban_id": 90_000_203}
    assert launch(scenario, wish).success
    again = launch(scenario, wish, {"vod_id": 6, "action": "lock_id"})
    assert again.success
    assert "已有相同的决定" in again.output["decisions"]
    assert telling(scenario.decisions(), "vod_id", "state") == [(4, "pending"), (6, "pending")]
    assert scenario.play().metadata("synced_fields")["decisions_applied"] == 2
    # Once it was carried out, the same wish is a new decision.
    scenario.clock.advance(minutes=1)
    assert launch(scenario, wish).success
    assert telling(scenario.decisions(4), "state") == [("applied",), ("pending",)]


def test_a_newer_decision_takes_the_place_of_an_older(scenario):
    assert launch(scenario, {"vod_id": 4, "action": "ignore"}).success
    assert launch(scenario, {"vod_id": 4, "action": "confirm_top1"}, reviewer="小李").success
    assert telling(scenario.decisions(), "action", "state", "state_reason") == [
        ("ignore", "refused", "被更新的决定取代"),
        ("confirm_top1", "pending", ""),
    ]


def test_a_video_with_a_decision_gets_no_automatic_task(scenario):
    assert launch(scenario, {"vod_id": 5, "action": "set_id", "douban_id": 90_000_103}).success
    run = scenario.play(5, steps=["due_videos"])
    assert run.metadata("due_videos")["due"] == 0
    assert [task for task in scenario.library.tasks() if task["vod_id"] == 5] == []


def test_the_launchpad_is_prefilled_with_everything_and_every_default_is_safe():
    # The launchpad shows what the job's own config holds, and nothing else.
    config = record_decisions.run_config["ops"]["store_decisions"]["config"]
    assert set(config) == set(DecisionsConfig.model_fields)
    assert [set(row) for row in config["decisions"]] == [set(DecisionRow.model_fields)]
    assert config["dry_run"] is True
    assert config["decisions"][0]["action"] == "confirm_top1", "members are typed by name"
    assert dg.validate_run_config(record_decisions, record_decisions.run_config)


def test_launching_the_defaults_says_what_to_fill_in(scenario):
    found = scenario.definitions.resolve_job_def("record_decisions")
    result = found.execute_in_process(instance=scenario.instance, raise_on_error=False)
    [event] = [event for event in result.all_events if event.is_step_failure]
    message = event.step_failure_data.error.message
    assert "reviewer: 请填写审核员的名字" in message
    assert "decisions 第 1 条（影片 0）：没有这部影片，请把示例换成真实的 vod_id" in message
    assert scenario.decisions() == []
