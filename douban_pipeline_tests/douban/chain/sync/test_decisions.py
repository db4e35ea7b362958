"""What a reviewer decides is applied by the next run, before anything automatic, and stays decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.refusals import OVERRIDE_CMS_LOCK
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.chain.sync.conftest import RIVAL
from douban_pipeline_tests.harness.fixtures.deciding import NOTE, decide, decisions
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, WHALE, row_of, telling

WRITING = STEPS[3:4]
"""The step that writes, alone: nothing is due or searched."""

ENTRIES = {film["id"]: film for film in (RIVER, RIVAL, TRAM)}


def run_decisions(scenario, *shards, steps=STEPS, **counts):
    """Play a run, and look at what it tells of decisions."""
    run = scenario.play(*shards, steps=steps)
    assert (run.success, run.failed_guards) == (True, set())
    metadata = run.metadata("synced_fields")
    expected = {"applied": 0, "refused": 0, "queued": 0, "waiting": 0, **counts}
    assert {name: metadata[f"decisions_{name}"] for name in expected} == expected
    return metadata


def changes_of(scenario, decision_id):
    return [change for change in scenario.library.log() if change["decision_id"] == decision_id]


@pytest.mark.parametrize(
    ("action", "douban_id", "lock", "locked"),
    [
        ("confirm_top1", RIVER["id"], False, False),
        ("choose", RIVAL["id"], False, False),
        ("choose", RIVAL["id"], True, True),
        ("set_id", RIVAL["id"], False, False),
        ("set_id", TRAM["id"], True, True),
        ("replace_and_lock", TRAM["id"], False, True),
    ],
)
def test_a_link_that_a_person_sets_is_written_and_synced_in_one_run(doubtful, action, douban_id, lock, locked):
    # What speaks against the other film is known: nothing is recorded before that was accepted.
    accepted = {"accept_conflicts": douban_id == TRAM["id"]}
    decision_id = decide(doubtful.library, 4, action, douban_id, lock=lock, **accepted)
    metadata = run_decisions(doubtful, applied=1)
    assert metadata["written"] == 1
    assert doubtful.cms(4, "vod_douban_id", "vod_director") == (douban_id, ENTRIES[douban_id]["directors"][0])
    link, sync = changes_of(doubtful, decision_id)
    assert (link["action"], link["operator"], link["reason"]) == (action, "小王", NOTE)
    assert link["new_values"] == {"vod_douban_id": douban_id}
    assert (sync["action"], sync["operator"], sync["run_id"]) == ("sync", "pipeline", link["run_id"])
    state = doubtful.library.state(4)
    assert (state["douban_review_status"], state["douban_id_source"]) == ("CONFIRMED", "person")
    assert (state["douban_id_locked"], state["douban_review_reason"]) == (locked, "")
    assert bool(state["douban_id_lock_time"]) is locked
    assert decisions(doubtful.library, "state", "state_reason", "pending_key", "task_id") == [
        ("applied", "", None, None)
    ]
    # A person's choice is not questioned later, whatever the subject says.
    doubtful.clock.advance(days=5)
    assert doubtful.play().metadata("synced_fields")["sent_to_review"] == 0
    assert doubtful.cms(4, "vod_douban_id") == (douban_id,)


def test_what_is_recorded_in_the_launchpad_is_what_is_applied(doubtful):
    requested = {"vod_id": 4, "action": "confirm_top1", "lock": True}
    config = {"reviewer": "小李", "note": "", "dry_run": False, "decisions": [requested]}
    before = doubtful.library.all_bytes()
    assert doubtful.launch("record_decisions", {"store_decisions": {"config": config}}).success
    assert doubtful.library.all_bytes() == before, "recording writes nothing"
    run_decisions(doubtful, applied=1)
    [top] = [row["douban_id"] for row in doubtful.candidates(4) if row["rank"] == 1]
    assert doubtful.cms(4, "vod_douban_id") == (top,)
    assert doubtful.library.state(4)["douban_id_locked"] is True
    assert telling(doubtful.library.log()[-2:], "operator", "reason")[0] == ("小李", "审核决定")


def test_reverting_a_decision_reverts_the_sync_that_followed(doubtful):
    before = doubtful.library.row(4)
    decision_id = decide(doubtful.library, 4, "set_id", RIVAL["id"], lock=True)
    run_decisions(doubtful, applied=1)
    assert doubtful.cms(4, "vod_director") == ("别人",)
    ids = tuple(change["change_id"] for change in changes_of(doubtful, decision_id))
    assert len(ids) == 2
    results = revert(
        doubtful.library.change_log("undo"), ChangeSelection(ids), operator="小李", reason="认错了", dry_run=False
    )
    assert not any(result.skipped for result in results)
    assert doubtful.library.row(4) == before
    state = doubtful.library.state(4)
    assert (state["douban_review_status"], state["douban_id_locked"], state["vod_douban_id"]) == ("REVIEW", False, 0)
    assert decisions(doubtful.library, "state") == ["reverted"]
    doubtful.clock.advance(minutes=5)
    run_decisions(doubtful)
    assert doubtful.cms(4, "vod_douban_id") == (0,), "it does not come back by itself"


def test_a_link_that_a_person_clears_does_not_come_back_by_itself(doubtful):
    assert doubtful.cms(5, "vod_douban_id") == (WHALE["id"],)
    decide(doubtful.library, 5, "clear_id")
    run_decisions(doubtful, applied=1)
    assert doubtful.cms(5, "vod_douban_id") == (0,)
    change = doubtful.library.log()[-1]
    assert (change["action"], change["old_values"], change["new_values"]) == (
        "clear_id",
        {"vod_douban_id": WHALE["id"]},
        {"vod_douban_id": 0},
    )
    # It is searched in the same run, for a person to choose.
    assert doubtful.library.state(5)["douban_review_status"] == "REVIEW"
    [verdict] = doubtful.verdicts(5)
    assert (verdict["verdict"], verdict["reasons"]) == ("REVIEW", ["REVERTED_BEFORE"])


def test_what_is_ignored_is_left_alone_until_it_is_matched_anew(doubtful):
    decide(doubtful.library, 4, "ignore")
    run_decisions(doubtful, applied=1)
    state = doubtful.library.state(4)
    assert (state["douban_review_status"], state["douban_review_reason"]) == ("IGNORED", NOTE)
    assert (state["douban_next_sync_at"], state["douban_ignore_until"]) == (None, None)
    doubtful.clock.advance(days=1000)
    assert doubtful.run(4, scope="everything", steps=STEPS[:1]).metadata("due_videos")["due"] == 0
    decide(doubtful.library, 4, "rematch")
    doubtful.play(4, steps=["synced_fields"])
    assert doubtful.library.state(4)["douban_review_status"] == "NOT_FOUND"
    assert doubtful.play(4).metadata("scored_matches")["judged"] == 1
    assert doubtful.library.state(4)["douban_review_status"] == "REVIEW"


@pytest.mark.parametrize(("vod_id", "awake"), [(4, "REVIEW"), (5, "CONFIRMED")])
def test_what_is_ignored_for_some_days_wakes_by_itself(doubtful, vod_id, awake):
    decide(doubtful.library, vod_id, "ignore", days=30, note="")
    run_decisions(doubtful, applied=1)
    until = doubtful.clock.now() + timedelta(days=30)
    state = doubtful.library.state(vod_id)
    assert (state["douban_review_status"], state["douban_review_reason"]) == ("IGNORED", "审核员选择忽略")
    assert (state["douban_ignore_until"], state["douban_next_sync_at"]) == (until, until)
    doubtful.clock.advance(days=29, hours=23)
    assert doubtful.run(vod_id, scope="everything", steps=STEPS[:1]).metadata("due_videos")["due"] == 0
    doubtful.clock.advance(hours=1)
    assert doubtful.play(vod_id).metadata("due_videos")["due"] == 1
    state = doubtful.library.state(vod_id)
    assert (state["douban_review_status"], state["douban_ignore_until"]) == (awake, None)


def test_locking_and_unlocking_the_id(doubtful):
    decide(doubtful.library, 5, "lock_id")
    before = doubtful.library.all_bytes()
    run_decisions(doubtful, applied=1)
    state = doubtful.library.state(5)
    assert (state["douban_id_locked"], state["douban_id_lock_time"]) == (True, doubtful.decisions()[0]["settled_at"])
    assert doubtful.library.all_bytes() == before
    # The lock holds against a verdict, and a person may still replace what is locked.
    doubtful.plant_verdict(5, TRAM["id"])
    doubtful.play(steps=["synced_fields"])
    assert doubtful.cms(5, "vod_douban_id") == (WHALE["id"],)
    decide(doubtful.library, 5, "replace_and_lock", TRAM["id"])
    run_decisions(doubtful, 5, applied=1)
    assert doubtful.cms(5, "vod_douban_id") == (TRAM["id"],)
    assert doubtful.library.state(5)["douban_id_locked"] is True
    doubtful.clock.advance(seconds=30)
    decide(doubtful.library, 5, "unlock_id")
    run_decisions(doubtful, 5, applied=1)
    state = doubtful.library.state(5)
    assert (state["douban_id_locked"], state["douban_id_lock_time"]) == (False, None)
    actions = [change["action"] for change in doubtful.library.log() if change["operator"] == "小王"]
    assert actions == ["lock_id", "replace_and_lock", "unlock_id"]


def test_locking_and_unlocking_the_synopsis(stage):
    reported = {**WHALE, "summary": "豆瓣的剧情"}
    rows = [row_of(WHALE, 5, vod_douban_id=WHALE["id"], vod_content="<p>站长写的</p>", vod_blurb="站长写的")]
    scenario = stage(rows, [reported], field_policies="vod_content=overwrite,vod_blurb=overwrite")
    decision_id = decide(scenario.library, 5, "lock_intro")
    before = scenario.library.row(5)
    run_decisions(scenario, 5, steps=WRITING, applied=1)
    [change] = changes_of(scenario, decision_id)
    # The text that is locked is in the log, for whoever finds another one in its place.
    text = {"vod_content": "<p>站长写的</p>", "vod_blurb": "站长写的"}
    assert (change["action"], change["old_values"], change["new_values"]) == ("lock_intro", text, text)
    state = scenario.library.state(5)
    assert (state["intro_locked"], state["intro_lock_time"]) == (True, scenario.decisions()[0]["settled_at"])
    assert scenario.library.row(5) == before
    run_decisions(scenario, 5)
    assert scenario.cms(5, "vod_content", "vod_writer") == ("<p>站长写的</p>", "蓝鲸编"), "the other fields are synced"
    scenario.clock.advance(minutes=1)
    decide(scenario.library, 5, "unlock_intro")
    run_decisions(scenario, 5, applied=1)
    state = scenario.library.state(5)
    assert (state["intro_locked"], state["intro_lock_time"]) == (False, None)
    scenario.clock.advance(days=100)
    run_decisions(scenario, 5)
    assert scenario.cms(5, "vod_blurb") == ("豆瓣的剧情",)


@pytest.mark.parametrize(("vod_id", "status"), [(4, "NOT_FOUND"), (5, "REVIEW")])
def test_a_person_may_ask_to_look_again(doubtful, vod_id, status):
    decide(doubtful.library, vod_id, "rematch")
    before = doubtful.library.all_bytes()
    run_decisions(doubtful, steps=WRITING, applied=1)
    state = doubtful.library.state(vod_id)
    assert (state["douban_review_status"], state["douban_review_reason"]) == (status, "审核员要求重新匹配")
    assert state["douban_next_sync_at"] <= doubtful.clock.now(), "at once"
    judged = len(doubtful.verdicts(vod_id))
    assert doubtful.play().success
    assert len(doubtful.verdicts(vod_id)) == judged + 1
    assert doubtful.cms(vod_id, "vod_douban_id")[0] == (0 if vod_id == 4 else WHALE["id"])
    assert vod_id == 5 or doubtful.library.all_bytes() == before


def test_a_locked_video_that_was_ignored_may_return_as_it_was(doubtful):
    doubtful.library.set_state(5, douban_id_locked=True, douban_review_status="IGNORED", douban_next_sync_at=None)
    decide(doubtful.library, 5, "rematch")
    run_decisions(doubtful, steps=WRITING, applied=1)
    assert doubtful.library.state(5)["douban_review_status"] == "CONFIRMED"
    assert doubtful.play(5).metadata("synced_fields")["handled"] == 1


@pytest.mark.parametrize("action", ["ignore", "set_id"])
def test_a_decision_ends_a_sync_that_waits_for_a_failing_source(stage, action):
    scenario = stage(
        [row_of(film, vod_id, vod_douban_id=film["id"]) for film, vod_id in ((RIVER, 4), (WHALE, 5))], FILMS
    )
    scenario.upstream.faults.add("douban", "captcha")
    assert scenario.play().metadata("synced_fields")["deferred"] == 2
    scenario.upstream.faults.clear()
    scenario.services.gate.close("douban")
    decide(scenario.library, 4, action, TRAM["id"] if action == "set_id" else 0)
    run_decisions(scenario, 4, applied=1)
    if action == "set_id":
        assert scenario.cms(4, "vod_douban_id", "vod_writer") == (TRAM["id"], "午夜编"), "not left for the gate's time"
    # An open task of an ignored video would fail the guard of every later run, on every shard.
    assert scenario.play(5).success
    assert not [task for task in scenario.library.tasks() if task["vod_id"] == 4 and task["open_key"]]


def test_a_dry_run_leaves_decisions_waiting(doubtful):
    decide(doubtful.library, 4, "set_id", RIVER["id"])
    decide(doubtful.library, 4, "lock_intro")
    before = doubtful.library.all_bytes()
    metadata = doubtful.under(dry_run=True).play().metadata("synced_fields")
    assert (metadata["decisions_waiting"], metadata["decisions_applied"]) == (2, 0)
    assert doubtful.library.all_bytes() == before
    assert decisions(doubtful.library, "state") == ["pending", "pending"]
    run_decisions(doubtful, applied=2)


def test_a_row_that_the_cms_locked_is_left_alone_by_people_too(stage):
    scenario = stage([video(4, vod_name="查无此片之谜", vod_lock=1)], FILMS)
    decide(scenario.library, 4, "set_id", RIVER["id"])
    decide(scenario.library, 4, "lock_intro")
    run_decisions(scenario, applied=1, refused=1)
    assert decisions(scenario.library, "action", "state", "state_reason") == [
        ("set_id", "refused", f"影片已在 CMS 中锁定（vod_lock），{OVERRIDE_CMS_LOCK}"),
        ("lock_intro", "applied", ""),
    ]
    assert scenario.cms(4, "vod_douban_id") == (0,)


def test_a_person_who_overrides_the_cms_lock_writes_the_id_and_automation_no_field(stage):
    scenario = stage([video(4, vod_name="查无此片之谜", vod_lock=1)], FILMS)
    decide(scenario.library, 4, "set_id", RIVER["id"], override_cms_lock=True)
    run_decisions(scenario, applied=1)
    assert scenario.cms(4, "vod_douban_id", "vod_writer") == (RIVER["id"], "")
    assert not [task for task in scenario.library.tasks() if task["task_type"] == "SYNC_DOUBAN"], "it could not write"


def test_a_sync_that_overrides_the_cms_lock_writes_the_fields(stage):
    scenario = stage([row_of(RIVER, 4, vod_douban_id=RIVER["id"])], FILMS)
    assert scenario.play().success
    scenario.library.set_cms(4, vod_lock=1, vod_writer="")
    scenario.clock.advance(minutes=1)
    decide(scenario.library, 4, "sync_now", RIVER["id"], override_cms_lock=True)
    scenario.play()
    assert scenario.cms(4, "vod_writer") != ("",)


def test_a_row_that_the_cms_locks_after_the_decision_was_checked_is_not_written(stage):
    """The write's own condition: nobody looks between the check and the UPDATE."""
    scenario = stage([video(4, vod_name="查无此片之谜", vod_lock=1)], FILMS)
    change = Change(4, "set_id", {"vod_douban_id": 0}, {"vod_douban_id": 5}, automatic=False, operator="小王")
    log = scenario.library.change_log()
    [outcome] = log.write([change])
    assert (outcome.state, outcome.reason) == ("refused", "影片已在 CMS 中锁定（vod_lock）")
    [outcome] = log.write([replace(change, override_cms_lock=True)])
    assert (outcome.state, scenario.cms(4, "vod_douban_id")) == ("applied", (5,))


def test_the_fields_of_a_category_out_of_scope_are_left_alone(doubtful):
    scenario = doubtful.under(excluded_type_ids="6")
    decide(scenario.library, 4, "set_id", RIVER["id"])
    run_decisions(scenario, applied=1)
    assert scenario.cms(4, "vod_douban_id", "vod_writer") == (RIVER["id"], "")
    assert not [task for task in scenario.library.tasks() if task["open_key"]]


@pytest.mark.mariadb
def test_every_action_on_the_cms_s_real_tables(stage, mariadb_library):
    films = dict(zip(range(4, 16), [*FILMS, *FILMS], strict=False))
    rows = [row_of(films[vod_id], vod_id, vod_douban_id=films[vod_id]["id"]) for vod_id in range(6, 16)]
    rows += [row_of(films[vod_id], vod_id, vod_director="", vod_actor="", vod_year="") for vod_id in (4, 5)]
    scenario = stage(rows, FILMS, on=mariadb_library)
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    library = scenario.library
    decide(library, 4, "confirm_top1", films[4]["id"])
    decide(library, 5, "choose", films[5]["id"], lock=True)
    decide(library, 6, "set_id", films[7]["id"], checked_at=None, accept_conflicts=True)
    decide(library, 7, "replace_and_lock", films[6]["id"])
    decide(library, 8, "clear_id")
    decide(library, 9, "ignore", days=30)
    decide(library, 10, "lock_id")
    decide(library, 11, "unlock_id")
    decide(library, 12, "lock_intro")
    decide(library, 13, "unlock_intro")
    decide(library, 14, "rematch")
    decide(library, 15, "sync_now")
    decide(library, 15, "lock_intro", pending_key="15")
    decide(library, 14, "redo_intro")
    metadata = run_decisions(scenario, applied=13, refused=1)
    assert "AI 简介未开启" in metadata["refused_decisions"]
    stands = {vod_id: library.row(vod_id)["vod_douban_id"] for vod_id in films}
    expected = {vod_id: film["id"] for vod_id, film in films.items()}
    assert stands == {**expected, 6: films[7]["id"], 7: films[6]["id"], 8: 0}
    states = library.states()
    assert {n for n, state in states.items() if state["douban_id_locked"]} == {5, 7, 10}
    assert {n for n, state in states.items() if state["intro_locked"]} == {12, 15}
    assert {n for n, state in states.items() if state["douban_id_source"] == "person"} == {4, 5, 6, 7}
    assert states[9]["douban_ignore_until"] == states[9]["douban_next_sync_at"]
    log = library.log()
    ids = [row["decision_id"] for row in scenario.decisions()]
    # The order to sync and the one that was refused write nothing that is theirs.
    assert {change["decision_id"] for change in log if change["operator"] == "小王"} == {*ids[:11], ids[12]}
    # Taken back together, everything is as it was, but for the rematch: the video was judged again in the same run.
    scenario.clock.advance(minutes=1)
    ids = tuple(change["change_id"] for change in log if change["decision_id"])
    results = revert(library.change_log("undo"), ChangeSelection(ids), operator="小李", reason="试", dry_run=False)
    assert {result.vod_id for result in results if result.skipped} == {14}
    assert {n: library.row(n)["vod_douban_id"] for n in films} == {**expected, 4: 0, 5: 0}
    assert scenario.check().failed_guards == {"decisions_accepted"}, "it warns of the one that was refused"


def test_a_video_that_is_gone_is_reported(doubtful):
    decide(doubtful.library, 4, "set_id", RIVER["id"])
    decide(doubtful.library, 5, "lock_id")
    vod = doubtful.library.cms.vod
    doubtful.library.execute(sa.delete(vod).where(vod.c.vod_id == 4))
    metadata = run_decisions(doubtful, applied=1, refused=1)
    assert decisions(doubtful.library, "vod_id", "state", "state_reason") == [
        (4, "refused", "影片已从 CMS 中删除"),
        (5, "applied", ""),
    ]
    assert metadata["refused_decisions"].startswith("1. **4**")
    assert "决定：指定豆瓣 ID" in metadata["refused_decisions"]
    assert "refused_decisions" not in run_decisions(doubtful), "once"
