"""The guards on the queue and on verdicts: each fails once, stops its run, and stands again in the write path."""

from __future__ import annotations

import dagster as dg
import pytest
import sqlalchemy as sa

from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NewTask, shard_of
from douban_pipeline_tests.harness.fixtures.runs import STEPS, Run, new_run_id, shown_rows
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, GUARDS, RIVER, WHALE, Scenario, row_of

JUDGED_AND_WRITTEN = STEPS[2:]
BAD_VERDICTS = [
    pytest.param(
        "no_confirmed_with_hard_reject", {"rejects": ["YEAR_GAP"]}, {}, "已确认的条目带有硬性排除项", id="hard reject"
    ),
    pytest.param("confirmed_reach_thresholds", {"score": 84.99}, {}, "已确认的条目得分低于确认线", id="low score"),
    pytest.param("confirmed_reach_thresholds", {"score": None}, {}, "已确认的条目得分低于确认线", id="no score"),
    pytest.param("confirmed_reach_thresholds", {"lead": 7.99}, {}, "已确认的条目与次优候选差距不足", id="low lead"),
    pytest.param(
        "confirmed_from_healthy_sources",
        {"complete": False},
        {},
        "已确认的条目来自异常的数据来源或不完整的候选",
        id="incomplete",
    ),
    pytest.param(
        "confirmed_from_healthy_sources",
        {"source_healthy": False},
        {},
        "已确认的条目来自异常的数据来源或不完整的候选",
        id="unhealthy",
    ),
    pytest.param(
        "locked_and_ignored_left_alone", {}, {"douban_id_locked": True}, "视频的豆瓣 ID 已锁定，不得改写", id="locked"
    ),
    pytest.param(
        "locked_and_ignored_left_alone",
        {},
        {"douban_review_status": "IGNORED", "douban_next_sync_at": None},
        "视频已被忽略，不得改写",
        id="ignored",
    ),
]


def names(run, guard, *vod_ids):
    """Look that a guard failed, blocks, and names exactly these videos and their shards."""
    evaluation = run.guards[guard]
    assert (evaluation.passed, evaluation.severity, evaluation.blocking) == (False, dg.AssetCheckSeverity.ERROR, True)
    said = run.guard(guard)
    assert said["violations"] == len(vod_ids)
    assert said["shards"] == ", ".join(f"{shard_of(vod_id):02d}" for vod_id in vod_ids)
    assert [row.split()[0] for row in shown_rows(said["videos"])] == [str(vod_id) for vod_id in vod_ids]
    return " ".join(said["videos"].replace("\\", "").split())


def planted(stage, verdict, state=None) -> tuple[Scenario, str]:
    """Set a bad verdict on video 4 beside a sound one on video 5, as the run to come would have reached them."""
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    run_id = new_run_id()
    if state:
        scenario.library.set_state(4, **state)
    scenario.plant_verdict(4, 90_000_102, run_id=run_id, **verdict)
    scenario.plant_verdict(5, 90_000_102, run_id=run_id)
    return scenario, run_id


def mend(scenario):
    """Make a sound verdict on a video that is free of the bad one of `planted`."""
    verdict = scenario.library.tables.verdict
    sound = {"rejects": [], "score": 85.0, "lead": 8.0, "complete": True, "source_healthy": True}
    scenario.library.execute(sa.update(verdict).where(verdict.c.vod_id == 4).values(**sound))
    scenario.library.set_state(4, douban_id_locked=False, douban_review_status="NOT_FOUND")


@pytest.mark.parametrize(("guard", "verdict", "state", "sentence"), BAD_VERDICTS)
def test_a_bad_verdict_stops_the_run_before_anything_is_written(stage, guard, verdict, state, sentence):
    scenario, run_id = planted(stage, verdict, state)
    before = scenario.library.all_bytes()
    run = scenario.run(4, 5, steps=JUDGED_AND_WRITTEN, run_id=run_id)
    assert (run.success, run.failed_guards) == (False, {guard})
    assert run.materialized == {"scored_matches"}
    assert sentence in names(run, guard, 4)
    assert scenario.library.all_bytes() == before
    assert scenario.library.log() == []
    assert [found["state"] for found in scenario.verdicts()] == ["pending", "pending"]
    mend(scenario)
    assert scenario.check().failed_guards == set()


@pytest.mark.parametrize(("guard", "verdict", "state", "sentence"), BAD_VERDICTS)
def test_the_writing_step_alone_refuses_a_bad_verdict_too(stage, guard, verdict, state, sentence):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    if state:
        scenario.library.set_state(4, **state)
    scenario.plant_verdict(4, 90_000_102, **verdict)
    before = scenario.library.all_bytes()
    run = scenario.write_alone()
    assert run.success
    assert guard not in run.guards, "nobody looked before"
    assert (run.metadata("synced_fields")["refused"], run.metadata("synced_fields")["written"]) == (1, 0)
    assert scenario.library.all_bytes() == before
    assert scenario.library.log() == []
    [refused] = scenario.verdicts()
    assert (refused["state"], refused["state_reason"]) == ("refused", sentence)
    assert (scenario.task(4)["status"], scenario.task(4)["last_error"]) == ("SKIP", sentence)


def test_a_verdict_of_a_person_s_past_is_refused_too(stage):
    scenario = stage([row_of(RIVER, 4, vod_douban_id=90_000_999)], FILMS)
    scenario.library.set_state(4, douban_review_status="REVIEW")
    scenario.plant_verdict(4, 90_000_102)
    before = scenario.library.all_bytes()
    assert scenario.write_alone().success
    assert scenario.verdicts()[0]["state_reason"] == "CMS 中已有豆瓣 ID 90000999"
    assert scenario.library.all_bytes() == before


def test_every_failing_shard_is_named_whatever_the_others_say(stage):
    # Shard 05 passes after shard 04 in the same run; a check for each would show the last one's pass alone.
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5), row_of(WHALE, 70)], FILMS)
    run_id = new_run_id()
    for vod_id, score in ((4, 60.0), (5, 95.0), (70, 70.0)):
        scenario.plant_verdict(vod_id, 90_000_102, run_id=run_id, score=score)
    run = scenario.run(4, 6, run_id=run_id)
    assert not run.success
    names(run, "confirmed_reach_thresholds", 4, 70)
    assert "synced_fields" not in run.materialized


def test_many_breaches_are_counted_exactly_and_named_in_part(stage):
    videos = [row_of(RIVER, vod_id) for vod_id in range(64, 64 * 26, 64)]
    scenario = stage(videos)
    for row in videos:
        scenario.plant_verdict(row["vod_id"], 90_000_102, score=1.0)
    said = scenario.check().guard("confirmed_reach_thresholds")
    assert (said["violations"], said["shards"]) == (25, "00")
    assert said["videos"].endswith("… and 5 more")


def test_one_guard_of_several_can_be_launched_alone(stage):
    scenario = stage([row_of(RIVER, 4)])
    scenario.plant_verdict(4, 90_000_102, score=1.0)
    guard = dg.AssetCheckKey(dg.AssetKey("scored_matches"), "confirmed_reach_thresholds")
    alone = dg.define_asset_job("alone", selection=dg.AssetSelection.checks(guard))
    job = dg.Definitions.merge(scenario.definitions, dg.Definitions(jobs=[alone])).resolve_job_def("alone")
    run = Run(job.execute_in_process(instance=scenario.instance, raise_on_error=False))
    assert (run.success, set(run.guards), run.failed_guards) == (False, {guard.name}, {guard.name})


def test_an_open_task_of_an_excluded_category_fails(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5, type_id=20)], FILMS).under(excluded_type_ids="20")
    queue = scenario.library.queue("planted")
    scenario.library.enqueue(queue, [NewTask(5, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH)])
    shown = scenario.launch(GUARDS).guard("no_excluded_type")
    assert "分类 20 不在处理范围内" in shown["videos"]
    # It is mended at once: the category may have been excluded after the task was queued.
    run = scenario.run()
    assert (run.success, run.metadata("due_videos")["dropped_out_of_scope"]) == (True, 0)
    assert (scenario.task(5)["status"], scenario.task(5)["last_error"]) == ("SKIP", "分类不在处理范围内")
    assert (scenario.cms(4, "vod_douban_id"), scenario.cms(5, "vod_douban_id")) == ((90_000_101,), (0,))
    assert scenario.upstream.requests.keys("douban") == ["90000101"]


@pytest.mark.parametrize(
    ("guard", "plant"),
    [
        ("no_excluded_type", lambda scenario: scenario.library.set_state(5, douban_review_status="IGNORED")),
        (
            "no_duplicate_open_task",
            lambda scenario: scenario.library.execute(
                "INSERT INTO mac_douban_task (vod_id, shard, task_type, stage, status, open_key, run_after, created_at)"
                " SELECT vod_id, shard, task_type, stage, status, 'twice', run_after, created_at FROM mac_douban_task"
            ),
        ),
    ],
)
def test_a_bad_queue_is_mended_before_anything_is_asked_and_stops_nothing(stage, guard, plant):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    queue = scenario.library.queue("planted")
    scenario.library.enqueue(queue, [NewTask(5, TaskType.MATCH_DOUBAN_ID, TaskStage.SYNC)])
    plant(scenario)
    before = scenario.cms(5)
    run = scenario.run()
    assert (run.success, run.failed_guards) == (True, {guard})
    assert run.guard(guard)["violations"] == 1
    assert scenario.cms(5) == before
    assert scenario.cms(4, "vod_douban_id") == (RIVER["id"],)
    assert scenario.check().failed_guards == set()
