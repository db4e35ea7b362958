"""What a reviewer decides is carried out by the next run, before anything automatic, and stays decided."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from douban_pipeline_tests.library import video
from douban_pipeline_tests.runs import STEPS
from douban_pipeline_tests.scenario import FILMS, RIVER, TRAM, WHALE, row_of, subject, telling

RIVAL = subject(90_000_203, "长河落日记事", 2021, directors=["别人"], actors=["子", "丑", "寅"])
NOTE = "海报和导演一致"


def decide(scenario, *decisions, reviewer="小王", note=NOTE):
    """Record decisions as a reviewer does, in Dagster's launchpad, some time after the last run."""
    scenario.clock.advance(seconds=30)
    rows = [{"vod_id": vod_id, "action": action, **more} for vod_id, action, more in decisions]
    config = {"reviewer": reviewer, "note": note, "dry_run": False, "decisions": rows}
    run = scenario.launch("record_decisions", {"store_decisions": {"config": config}})
    assert run.success, run.failure
    return run


def linked(entry, vod_id, **columns):
    return row_of(entry, vod_id, vod_douban_id=entry["id"], **columns)


@pytest.fixture
def doubtful(stage):
    """Video 4 waits for a person: two subjects carry its name. Video 5 is linked by the CMS."""
    poor = {"vod_director": "", "vod_actor": "", "vod_class": ""}
    scenario = stage([row_of(RIVER, 4, **poor), linked(WHALE, 5)], [RIVER, RIVAL, WHALE, TRAM])
    assert scenario.play().success
    assert scenario.library.state(4)["douban_review_status"] == "REVIEW"
    return scenario


@pytest.mark.parametrize(
    ("action", "more", "douban_id"),
    [
        ("confirm_top1", {}, None),
        ("set_id", {"douban_id": 90_000_203}, 90_000_203),
        ("set_id", {"douban_id": 90_000_103, "lock": True}, 90_000_103),
    ],
)
def test_a_link_that_a_person_sets_is_written_and_synced_in_one_run(doubtful, action, more, douban_id):
    top = next(row["douban_id"] for row in doubtful.candidates(4) if row["rank"] == 1)
    wanted = douban_id or top
    decide(doubtful, (4, action, more))
    assert doubtful.cms(4, "vod_douban_id") == (0,), "recording writes nothing"
    run = doubtful.play()
    found = run.metadata("synced_fields")
    assert (run.success, run.failed_guards, found["decisions_applied"], found["written"]) == (True, set(), 1, 1)
    entry = {film["id"]: film for film in (RIVER, RIVAL, TRAM)}[wanted]
    assert doubtful.cms(4, "vod_douban_id", "vod_director") == (wanted, entry["directors"][0])
    first, second = [change for change in doubtful.library.log() if change["vod_id"] == 4]
    assert (first["action"], first["operator"], first["reason"]) == (action, "小王", NOTE)
    assert (first["new_values"], first["decision_id"]) == (
        {"vod_douban_id": wanted},
        doubtful.decisions()[0]["decision_id"],
    )
    assert (second["action"], second["operator"], second["run_id"]) == ("sync", "pipeline", first["run_id"])
    state = doubtful.library.state(4)
    assert (state["douban_review_status"], state["douban_id_source"]) == ("CONFIRMED", "person")
    assert (state["douban_id_locked"], state["douban_review_reason"]) == (more.get("lock", False), "")
    assert telling(doubtful.decisions(), "state", "state_reason") == [("applied", "")]
    # A person's choice is not questioned later, whatever the subject says.
    doubtful.clock.advance(days=5)
    assert doubtful.play().metadata("synced_fields")["sent_to_review"] == 0
    assert doubtful.cms(4, "vod_douban_id") == (wanted,)


def test_a_link_that_a_person_clears_does_not_come_back_by_itself(doubtful):
    assert doubtful.cms(5, "vod_douban_id") == (90_000_102,)
    decide(doubtful, (5, "clear_id", {}))
    run = doubtful.play()
    assert (run.success, run.failed_guards) == (True, set())
    assert doubtful.cms(5, "vod_douban_id") == (0,)
    change = doubtful.library.log()[-1]
    assert (change["action"], change["old_values"], change["new_values"]) == (
        "clear_id",
        {"vod_douban_id": 90_000_102},
        {"vod_douban_id": 0},
    )
    assert doubtful.library.state(5)["douban_review_status"] == "NOT_FOUND"
    doubtful.clock.advance(minutes=1)
    later = doubtful.play()
    assert later.success
    assert doubtful.cms(5, "vod_douban_id") == (0,)
    [verdict] = doubtful.verdicts(5)
    assert (verdict["verdict"], verdict["reasons"]) == ("REVIEW", ["REVERTED_BEFORE"])


def test_what_is_ignored_rests_until_it_is_matched_anew(doubtful):
    decide(doubtful, (4, "ignore", {}))
    assert doubtful.play().metadata("synced_fields")["decisions_applied"] == 1
    state = doubtful.library.state(4)
    assert (state["douban_review_status"], state["douban_review_reason"]) == ("IGNORED", NOTE)
    assert state["douban_next_sync_at"] is None
    doubtful.clock.advance(days=100)
    assert doubtful.run(4, scope="everything", steps=STEPS[:1]).metadata("due_videos")["due"] == 0
    decide(doubtful, (4, "rematch", {}))
    assert doubtful.play(4).success
    assert doubtful.library.state(4)["douban_review_status"] == "NOT_FOUND"
    assert doubtful.play(4).metadata("scored_matches")["judged"] == 1
    assert doubtful.library.state(4)["douban_review_status"] == "REVIEW"


def test_locking_and_unlocking(doubtful):
    decide(doubtful, (5, "lock_id", {}))
    before = doubtful.library.all_bytes()
    assert doubtful.play().success
    state = doubtful.library.state(5)
    assert (state["douban_id_locked"], state["douban_id_lock_time"]) == (True, doubtful.decisions()[0]["settled_at"])
    assert doubtful.library.all_bytes() == before
    # The lock holds against a verdict, and a person may still choose.
    doubtful.plant_verdict(5, 90_000_103)
    doubtful.play(steps=["synced_fields"])
    assert doubtful.cms(5, "vod_douban_id") == (90_000_102,)
    decide(doubtful, (5, "set_id", {"douban_id": 90_000_103}))
    assert doubtful.play(5).success
    assert doubtful.cms(5, "vod_douban_id") == (90_000_103,)
    assert doubtful.library.state(5)["douban_id_locked"] is True
    decide(doubtful, (5, "unlock_id", {}))
    assert doubtful.play(5).success
    state = doubtful.library.state(5)
    assert (state["douban_id_locked"], state["douban_id_lock_time"]) == (False, None)
    actions = [change["action"] for change in doubtful.library.log() if change["operator"] == "小王"]
    assert actions == ["lock_id", "set_id", "unlock_id"]


@pytest.mark.parametrize(("vod_id", "status"), [(4, "NOT_FOUND"), (5, "REVIEW")])
def test_a_person_may_ask_to_look_again(doubtful, vod_id, status):
    decide(doubtful, (vod_id, "rematch", {}))
    before = doubtful.library.all_bytes()
    assert doubtful.play().success
    state = doubtful.library.state(vod_id)
    assert (state["douban_review_status"], state["douban_review_reason"]) == (status, "审核员要求重新匹配")
    assert state["douban_next_sync_at"] <= doubtful.clock.now(), "at once"
    judged = len(doubtful.verdicts(vod_id))
    assert doubtful.play().success
    assert len(doubtful.verdicts(vod_id)) == judged + 1
    assert doubtful.cms(vod_id, "vod_douban_id")[0] == (0 if vod_id == 4 else 90_000_102)
    assert vod_id == 5 or doubtful.library.all_bytes() == before


def test_the_newest_word_counts_and_the_oldest_decision_comes_first(doubtful):
    decide(doubtful, (5, "set_id", {"douban_id": 90_000_103}))
    decide(doubtful, (4, "set_id", {"douban_id": 90_000_203}), reviewer="小李")
    decide(doubtful, (4, "set_id", {"douban_id": 90_000_101}), reviewer="小张")
    assert doubtful.play().metadata("synced_fields")["decisions_applied"] == 2
    assert telling(doubtful.decisions(), "vod_id", "reviewer", "state", "state_reason") == [
        (5, "小王", "applied", ""),
        (4, "小李", "refused", "被更新的决定取代"),
        (4, "小张", "applied", ""),
    ]
    changes = [change for change in doubtful.library.log() if change["decision_id"]]
    assert telling(changes, "vod_id", "operator") == [(5, "小王"), (4, "小张")]
    assert doubtful.cms(4, "vod_douban_id") == (90_000_101,)


def test_a_decision_comes_before_what_automation_had_in_hand(stage):
    scenario = stage([row_of(RIVER, 4)], [RIVER, TRAM])
    assert scenario.play(steps=STEPS[:3]).success
    assert telling(scenario.verdicts(), "verdict", "state") == [("CONFIRMED", "pending")]
    decide(scenario, (4, "set_id", {"douban_id": 90_000_103}))
    run = scenario.play()
    assert (run.success, run.failed_guards) == (True, set())
    assert scenario.cms(4, "vod_douban_id") == (90_000_103,)
    closed, synced = scenario.library.tasks()
    assert (closed["task_type"], closed["status"], closed["last_error"]) == ("MATCH_DOUBAN_ID", "SKIP", "审核决定优先")
    assert (synced["task_type"], synced["status"]) == ("SYNC_DOUBAN", "SUCCESS")
    assert telling(scenario.verdicts(), "state", "state_reason") == [("superseded", "审核决定优先")]


@pytest.mark.parametrize("action", ["ignore", "set_id"])
def test_a_decision_ends_a_sync_that_waits_for_an_ill_source(stage, action):
    scenario = stage([linked(RIVER, 4), linked(WHALE, 5)], FILMS)
    scenario.upstream.faults.add("douban", "captcha")
    assert scenario.play().metadata("synced_fields")["deferred"] == 2
    scenario.upstream.faults.clear()
    scenario.services.gate.close("douban")
    decide(scenario, (4, action, {"douban_id": 90_000_103} if action == "set_id" else {}))
    run = scenario.play(4)
    assert (run.success, run.failed_guards) == (True, set())
    if action == "set_id":
        assert scenario.cms(4, "vod_douban_id", "vod_writer") == (90_000_103, "午夜编"), "not left for the gate's time"
    # An open task of an ignored video would fail the guard of every later run, on every shard.
    assert scenario.play(5).success
    assert not [task for task in scenario.library.tasks() if task["vod_id"] == 4 and task["open_key"]]


def test_a_decision_that_cannot_be_carried_out_is_refused_with_its_reason(doubtful):
    decide(doubtful, (4, "set_id", {"douban_id": 90_000_101}), (5, "lock_id", {}))
    vod = doubtful.library.cms.vod
    doubtful.library.execute(sa.delete(vod).where(vod.c.vod_id == 4))
    found = doubtful.play().metadata("synced_fields")
    assert (found["decisions_applied"], found["decisions_refused"]) == (1, 1)
    assert telling(doubtful.decisions(), "vod_id", "state", "state_reason") == [
        (4, "refused", "影片已从 CMS 中删除"),
        (5, "applied", ""),
    ]
    assert doubtful.play().metadata("synced_fields")["decisions_refused"] == 0, "once"


def test_a_run_carries_out_the_decisions_of_its_own_shards(doubtful):
    decide(doubtful, (4, "ignore", {}), (5, "lock_id", {}))
    assert doubtful.play(5).metadata("synced_fields")["decisions_applied"] == 1
    assert telling(doubtful.decisions(), "vod_id", "state") == [(4, "pending"), (5, "applied")]


def test_a_dry_run_leaves_decisions_waiting(doubtful):
    decide(doubtful, (4, "set_id", {"douban_id": 90_000_101}))
    before = doubtful.library.all_bytes()
    found = doubtful.under(dry_run=True).play().metadata("synced_fields")
    assert (found["decisions_waiting"], found["decisions_applied"]) == (1, 0)
    assert doubtful.library.all_bytes() == before
    assert telling(doubtful.decisions(), "state") == [("pending",)]
    assert doubtful.play().metadata("synced_fields")["decisions_applied"] == 1


def test_a_person_may_write_a_row_that_the_cms_locked(stage):
    scenario = stage([video(4, vod_name="查无此片之谜", vod_lock=1)], FILMS)
    decide(scenario, (4, "set_id", {"douban_id": 90_000_101}))
    run = scenario.play()
    assert run.success
    assert scenario.cms(4, "vod_douban_id") == (90_000_101,)
    assert run.metadata("synced_fields")["refused"] == 1, "the fields are automation's, which the lock forbids"
    assert scenario.cms(4, "vod_writer") == ("",)
