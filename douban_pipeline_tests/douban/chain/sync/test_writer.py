"""Ids and fields reach the CMS only where every rule holds at the moment of writing."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from douban_pipeline.douban.jobs import CHAIN
from douban_pipeline.douban.store.subjects import note_titles
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.sample_rules import CONSTANT_WRONG_ID
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, SNOW, TRAM, WHALE, row_of, subject, telling


def linked(entry, vod_id, **columns):
    return row_of(entry, vod_id, vod_douban_id=entry["id"], **columns)


def meddle(scenario, act):
    """Let somebody ``act`` on the CMS after the writing step has read its rows, while Douban is asked."""
    real = scenario.services.douban

    def ask(douban_id, **given):
        act()
        return real.subject(douban_id, **given)

    vars(scenario.services)["douban"] = SimpleNamespace(subject=ask)


def test_a_link_is_written_with_all_that_explains_it(stage):
    scenario = stage([row_of(RIVER, 4, vod_actor="内详", vod_content="")], FILMS)
    run = scenario.run()
    [verdict], [change] = scenario.verdicts(), scenario.library.log()
    assert (change["action"], change["state"], change["operator"]) == ("link", "applied", "pipeline")
    assert (change["run_id"], change["verdict_id"], change["score"]) == (
        run.run_id,
        verdict["verdict_id"],
        verdict["score"],
    )
    assert (change["reason"], change["batch_id"]) == (verdict["explanation"], run.metadata("synced_fields")["batch"])
    assert change["snapshot_id"] == scenario.candidates()[0]["snapshot_id"]
    assert verdict["state"] == "applied"
    row = scenario.library.row(4)
    for column, value in change["new_values"].items():
        assert row[column] == (Decimal(value) if column == "vod_douban_score" else value)
    assert (row["vod_actor"], row["vod_content"]) == ("长河甲,长河乙,长河丙", "关于长河落日记事的故事。")
    assert change["old_values"]["vod_actor"] == "内详"
    state = scenario.library.state(4)
    assert (state["vod_douban_id"], state["douban_id_source"]) == (90_000_101, "ai_search")
    assert (state["douban_id_confidence"], state["douban_review_status"]) == (verdict["score"], "CONFIRMED")
    assert state["douban_next_sync_at"] > scenario.clock.now()
    assert scenario.task(4)["status"] == "SUCCESS"


def test_a_second_visit_writes_only_what_differs(stage):
    scenario = stage([linked(RIVER, 4), linked(WHALE, 5)], FILMS)
    assert scenario.play().metadata("synced_fields")["written"] == 2
    scenario.library.set_cms(5, vod_douban_score=Decimal("1.0"))
    scenario.clock.advance(days=5)
    before = scenario.library.row(4)
    run = scenario.play()
    found = run.metadata("synced_fields")
    assert (run.success, found["written"], found["unchanged"]) == (True, 1, 1)
    assert scenario.library.row(4) == before
    assert scenario.library.log()[-1]["new_values"] == {"vod_douban_score": "7.9"}
    assert len(scenario.library.log()) == 3


def test_the_constant_id_of_public_converters_is_found_out(stage):
    stranger = subject(CONSTANT_WRONG_ID, "某部毫不相干的电视剧", 2024, episodes=30)
    scenario = stage([row_of(RIVER, 4, vod_douban_id=CONSTANT_WRONG_ID), linked(WHALE, 5)], [*FILMS, stranger])
    before = scenario.library.row(4)
    run = scenario.play()
    assert (run.success, run.metadata("synced_fields")["sent_to_review"]) == (True, 1)
    assert scenario.library.row(4) == before
    state = scenario.library.state(4)
    assert state["douban_review_status"] == "REVIEW"
    assert state["douban_review_reason"].startswith(
        f"已有豆瓣 ID {CONSTANT_WRONG_ID}（某部毫不相干的电视剧）与影片不符：标题冲突：相似度"
    )
    assert [change["vod_id"] for change in scenario.library.log()] == [5]
    # Candidates are looked for at once, for a person to choose from.
    scenario.clock.advance(minutes=2)
    assert scenario.play(4).success
    assert telling(scenario.candidates(4), "douban_id") == [(90_000_101,)]
    assert scenario.library.state(4)["douban_review_reason"].endswith("匹配结果为 90000101，需人工确认")
    assert scenario.library.row(4) == before


@pytest.mark.parametrize("known", [FILMS, ()])
def test_a_doubtful_id_stays_with_a_person_when_nothing_else_is_found(stage, known):
    scenario = stage([video(4, vod_name="查无此片之谜", vod_douban_id=90_000_101)], known)
    assert scenario.play().success
    assert scenario.library.state(4)["douban_review_status"] == "REVIEW"
    scenario.clock.advance(minutes=2)
    assert scenario.play().metadata("scored_matches")["judged"] == 1
    state = scenario.library.state(4)
    assert (state["douban_review_status"], scenario.cms(4, "vod_douban_id")) == ("REVIEW", (90_000_101,))
    assert state["douban_review_reason"] == "CMS 中的豆瓣 ID 90000101 存疑；没有找到候选。"


@pytest.mark.parametrize("trust", [{"douban_id_source": "person"}, {"douban_id_source": "import"}])
def test_an_id_that_a_person_chose_is_not_questioned(stage, trust):
    scenario = stage([video(4, vod_name="同一部片的另一个名字", vod_year="1990", vod_douban_id=90_000_101)], FILMS)
    scenario.library.set_state(4, **trust)
    run = scenario.play()
    assert run.metadata("synced_fields")["written"] == 1
    assert scenario.cms(4, "vod_douban_id", "vod_director", "vod_name") == (
        90_000_101,
        "长河导",
        "同一部片的另一个名字",
    )
    assert scenario.library.state(4)["douban_review_status"] == "CONFIRMED"


def test_a_subject_that_douban_deleted_goes_to_a_person(stage):
    scenario = stage([linked(RIVER, 4), linked(WHALE, 5)], [WHALE])
    before = scenario.library.row(4)
    assert scenario.play().metadata("synced_fields")["written"] == 1
    state = scenario.library.state(4)
    assert (state["douban_review_status"], state["douban_review_reason"]) == ("REVIEW", "豆瓣条目 90000101 已不存在")
    assert scenario.library.row(4) == before
    assert state["douban_sync_fail_count"] == 0, "the source is well"


def test_a_dry_run_writes_nothing_and_says_what_it_would(stage):
    scenario = stage([row_of(RIVER, 4), linked(WHALE, 5), video(6, vod_name="查无此片之谜")], FILMS, dry_run=True)
    before = scenario.library.all_bytes()
    run = scenario.play()
    found = run.metadata("synced_fields")
    assert (run.success, run.failed_guards) == (True, set())
    assert (found["dry_run"], found["planned"], found["written"], found["linked"]) == (True, 2, 0, 1)
    assert (found["changes_logged"], scenario.library.log(), scenario.library.all_bytes()) == (0, [], before)
    reported = found["most_telling"].replace("\\", "")
    assert "演练（新关联）" in reported
    assert "vod_writer" in reported
    assert "演练模式：未写入" in reported
    assert telling(scenario.verdicts(4), "state") == [("dry_run",)]
    assert scenario.library.state(4)["douban_review_status"] == "NOT_FOUND"
    # A day later the site goes live: the same videos are written.
    scenario.clock.advance(days=1, minutes=1)
    assert scenario.under(dry_run=False).play().metadata("synced_fields")["written"] == 2
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)


def test_whether_locked_ids_are_synced_is_a_setting(stage):
    rows = [linked(RIVER, 4), linked(WHALE, 5)]
    scenario = stage(rows, FILMS, sync_locked_ids=False)
    scenario.library.set_state(4, douban_id_locked=True)
    run = scenario.play()
    assert (run.metadata("synced_fields")["written"], scenario.upstream.requests.count("douban")) == (1, 1)
    assert telling(scenario.library.log(), "vod_id") == [(5,)]
    assert (scenario.task(4)["status"], scenario.task(4)["last_error"]) == (
        "SKIP",
        "豆瓣 ID 已锁定，按设置不同步其他字段",
    )
    state = scenario.library.state(4)
    assert state["douban_next_sync_at"] - scenario.clock.now() > timedelta(days=2), "it is not due all the time"
    # What a person orders is done all the same.
    decide(scenario.library, 4, "sync_now", RIVER["id"])
    scenario.play()
    assert telling(scenario.library.log(), "vod_id", "action") == [(5, "sync"), (4, "sync")]
    scenario.clock.advance(days=100)
    assert scenario.under(sync_locked_ids=True).play().metadata("synced_fields")["handled"] == 2


def test_a_row_that_is_locked_in_the_cms_is_left_alone(stage):
    rows = [row_of(RIVER, 4, vod_lock=1), linked(WHALE, 5, vod_lock=1), row_of(TRAM, 6)]
    scenario = stage(rows, FILMS)
    before = scenario.library.row(4), scenario.library.row(5)
    run = scenario.play()
    assert (run.success, run.metadata("synced_fields")["written"]) == (True, 1)
    assert (scenario.library.row(4), scenario.library.row(5)) == before
    assert {task["vod_id"] for task in scenario.library.tasks()} == {6}, "nothing was asked for the other two"
    scenario.clock.advance(hours=2)
    assert scenario.play().metadata("due_videos")["due"] == 0
    # Unlocked, without a word of the CMS about it: looked at within a day.
    scenario.library.set_cms(4, vod_lock=0)
    scenario.clock.advance(days=1)
    assert scenario.play().success
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)
    # A person may have candidates of a locked row searched.
    scenario.library.set_cms(6, vod_lock=1)
    decide(scenario.library, 6, "rematch")
    scenario.play()
    scenario.clock.advance(minutes=1)
    scenario.play()
    matches = [task["vod_id"] for task in scenario.library.tasks() if task["task_type"] == "MATCH_DOUBAN_ID"]
    assert matches.count(6) == 2


def test_a_row_that_is_locked_after_its_video_got_due_is_not_asked_about(stage):
    scenario = stage([row_of(RIVER, 4), linked(WHALE, 5), row_of(TRAM, 6)], FILMS)
    scenario.play(steps=STEPS[:1])
    for vod_id in (4, 5):
        scenario.library.set_cms(vod_id, vod_lock=1)
    run = scenario.play(4, 5)
    assert (run.success, run.failed_guards) == (True, set())
    counts = {name: scenario.upstream.requests.count(name) for name in ("search", "douban")}
    assert (counts, scenario.verdicts()) == ({"search": 0, "douban": 0}, [])
    tasks = [(task["vod_id"], task["status"], task["last_error"]) for task in scenario.library.tasks()]
    assert tasks[:2] == [(vod_id, "SKIP", "影片已在 CMS 中锁定（vod_lock）") for vod_id in (4, 5)]
    in_a_day = scenario.clock.now() + timedelta(days=1)
    assert [scenario.library.state(vod_id)["douban_next_sync_at"] for vod_id in (4, 5)] == [in_a_day] * 2
    for vod_id in (4, 5):
        scenario.library.set_cms(vod_id, vod_lock=0)
    scenario.clock.advance(days=1)
    assert scenario.play().metadata("synced_fields")["written"] == 3, "unlocked: noticed within a day"


def test_a_site_may_have_locked_rows_written(stage):
    scenario = stage([row_of(RIVER, 4, vod_lock=1), linked(WHALE, 5, vod_lock=1)], FILMS)
    assert scenario.under(respect_vod_lock=False).play().metadata("synced_fields")["written"] == 2
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)


def test_what_somebody_changed_during_the_run_is_not_lost(stage):
    scenario = stage([linked(RIVER, 4), linked(WHALE, 5)], FILMS)
    meddle(scenario, lambda: scenario.library.set_cms(4, vod_writer="站长刚填的"))
    run = scenario.play()
    found = run.metadata("synced_fields")
    assert (run.success, found["refused"], found["written"]) == (True, 1, 1)
    assert scenario.cms(4, "vod_writer", "vod_tag") == ("站长刚填的", ""), "all of it or nothing"
    [refused] = [change for change in scenario.library.log() if change["state"] == "refused"]
    assert (refused["vod_id"], refused["state_reason"]) == (4, "读取之后 CMS 中的值已被改动：vod_writer")
    assert "vod\\_writer" in found["most_telling"]
    scenario.clock.advance(hours=2)
    assert scenario.play().metadata("synced_fields")["written"] == 1
    assert scenario.cms(4, "vod_writer", "vod_tag") == ("站长刚填的", "剧情")


@pytest.mark.parametrize("stands", [90_000_102, 0])
def test_an_id_that_was_changed_in_the_cms_is_not_synced_from_the_old_subject(stage, stands):
    scenario = stage([linked(RIVER, 4)], FILMS)
    scenario.library.set_cms(4, vod_douban_id=stands)  # a batch edit, which intake has not noticed yet
    before = scenario.library.row(4)
    run = scenario.play()
    assert (run.success, run.metadata("synced_fields")["refused"]) == (True, 1)
    assert scenario.library.row(4) == before
    assert scenario.library.log() == []
    assert f"CMS 中的豆瓣 ID 已变为 {stands}" in run.metadata("synced_fields")["most_telling"]
    scenario.library.intake.sweep(0, 1)
    assert scenario.library.state(4)["vod_douban_id"] == stands


def test_a_video_with_two_tasks_is_written_once(stage):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 5)], FILMS)
    assert scenario.play(steps=STEPS[:3]).success
    # The site's own people linked it since, so that it is due for a sync too.
    scenario.library.set_cms(4, vod_douban_id=90_000_101)
    scenario.library.intake.sweep(0, 1)
    run = scenario.play()
    assert (run.success, run.failed_guards) == (True, set())
    assert sorted(telling(scenario.library.log(), "vod_id", "action", "state")) == [
        (4, "sync", "applied"),
        (5, "link", "applied"),
    ]
    assert {task["open_key"] for task in scenario.library.tasks()} == {None}
    assert telling(scenario.verdicts(), "vod_id", "state") == [(4, "applied"), (5, "applied")]


def test_what_a_person_took_back_is_not_written_again(stage):
    scenario = stage([linked(RIVER, 4), row_of(WHALE, 5)], FILMS)
    before = scenario.library.all_bytes()
    batch = scenario.play().metadata("synced_fields")["batch"]
    revert = {
        "reviewer": "小王",
        "reason": "认错了",
        "dry_run": False,
        "change_ids": [],
        "batch_id": batch,
        "run_id": "",
    }
    assert scenario.launch("revert_changes", {"revert_writes": {"config": revert}}).success
    assert scenario.library.all_bytes() == before
    scenario.clock.advance(days=5)
    later = scenario.play()
    assert (later.success, later.failed_guards, scenario.library.all_bytes()) == (True, set(), before)
    assert later.metadata("synced_fields")["unchanged"] == 1
    [first, second] = scenario.verdicts(5)
    assert (first["verdict"], second["verdict"]) == ("CONFIRMED", "REVIEW")
    assert "REVERTED_BEFORE" in second["reasons"]


def test_one_run_over_several_shards_does_the_same_work_as_a_run_for_each(stage):
    rows = [
        row_of(entry, vod_id, vod_actor="内详") for entry, vod_id in ((RIVER, 4), (WHALE, 5), (TRAM, 6), (SNOW, 68))
    ]
    together, apart = stage(rows, FILMS), stage(rows, FILMS)
    run = together.run(4, 6)
    assert (run.success, run.total("synced_fields", "written")) == (True, 4)
    shown = [event.partition for event in run.result.all_events if event.is_step_materialization]
    assert sorted(shown) == sorted(["04", "05", "06"] * len(STEPS)), "every shard of the run counts as done"
    for shard, written in (("04", 2), ("05", 1), ("06", 1)):
        single = apart.launch(CHAIN, partition_key=shard)
        assert (single.success, single.metadata("synced_fields")["written"]) == (True, written)
    assert together.library.all_bytes() == apart.library.all_bytes()
    columns = ("vod_id", "verdict", "douban_id", "score", "lead", "reasons", "facts", "state")
    both = (together.verdicts(), apart.verdicts())
    first, second = (telling(sorted(found, key=lambda verdict: verdict["vod_id"]), *columns) for found in both)
    assert first == second


@pytest.mark.mariadb
def test_on_the_cms_s_real_tables(stage, mariadb_library):
    entry = subject(
        90_000_101, "长河落日记事", 2021, actors=["𠮷田", "张三"], summary="好看😀的'片'", writers=["O'Brien"]
    )
    rows = [
        row_of(entry, 4, vod_actor="张三", vod_content="", vod_director="内详"),
        row_of(WHALE, 5, vod_douban_id=90_000_102, vod_name="蓝鲸与灯塔守望者 "),
    ]
    scenario = stage(rows, [entry, WHALE], on=mariadb_library)
    before = scenario.library.all_bytes()
    run = scenario.run()
    assert (run.success, run.failed_guards, run.total("synced_fields", "written")) == (True, set(), 2)
    assert scenario.cms(4, "vod_douban_id", "vod_content") == (90_000_101, "好看的&#039;片&#039;")
    assert scenario.cms(4, "vod_writer", "vod_director", "vod_actor") == ("O&#039;Brien", "长河导", "张三")
    revert = {
        "reviewer": "小王",
        "reason": "试",
        "dry_run": False,
        "change_ids": [],
        "batch_id": "",
        "run_id": run.run_id,
    }
    assert scenario.launch("revert_changes", {"revert_writes": {"config": revert}}).success
    assert scenario.library.all_bytes() == before
    assert scenario.check().failed_guards == set()


def test_titles_of_subjects_are_recorded_when_they_are_new_or_change(stage):
    scenario = stage([row_of(RIVER, 4), linked(WHALE, 5), row_of(TRAM, 6)], FILMS)

    def titles() -> dict[int, tuple[str, object]]:
        rows = scenario.library.query(select(scenario.services.tables.subject))
        return {row["douban_id"]: (row["title"], row["changed_at"]) for row in rows}

    begun = scenario.clock.now()
    scenario.play()
    first = titles()
    assert {number: title for number, (title, _) in first.items()} == {
        each["id"]: each["title"] for each in (RIVER, WHALE, TRAM)
    }
    scenario.clock.advance(days=5)
    later = scenario.clock.now()
    assert note_titles(scenario.library.engine, scenario.services.tables, {RIVER["id"]: "长河落日"}, later) == 1
    scenario.play()
    second = titles()
    assert {number for number in second if second[number] == first[number]} == {WHALE["id"], TRAM["id"]}
    assert second[RIVER["id"]][0] == RIVER["title"], "as Douban calls it at the last sync"
    assert second[RIVER["id"]][1] >= later > begun


def test_a_dry_run_records_no_titles(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS, dry_run=True)
    scenario.play()
    assert scenario.library.query(select(scenario.services.tables.subject)) == []
