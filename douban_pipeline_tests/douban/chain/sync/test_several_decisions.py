"""Several decisions about one video stand together: the link first, and none undoes what another ordered."""

from __future__ import annotations

from decimal import Decimal

import sqlalchemy as sa

from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline_tests.douban.chain.sync.test_decisions import changes_of, run_decisions
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, TRAM, WHALE


def test_the_link_comes_first_whatever_was_recorded_first(doubtful):
    library = doubtful.library
    library.set_cms(5, vod_douban_score=Decimal("1.0"))
    given = ("sync_now", 0), ("lock_intro", 0), ("lock_id", 0), ("set_id", TRAM["id"])
    ids = [decide(library, 5, action, douban_id, accept_conflicts=douban_id > 0) for action, douban_id in given]
    run_decisions(doubtful, 5, applied=4)
    by_person = [change["action"] for change in library.log() if change["operator"] == "小王"]
    assert by_person == ["set_id", "lock_id", "lock_intro"]
    state = library.state(5)
    assert (state["vod_douban_id"], state["douban_id_locked"], state["intro_locked"]) == (TRAM["id"], True, True)
    # The sync that the person ordered takes the place of the one that follows a link.
    [sync] = changes_of(doubtful, ids[0])
    assert (sync["action"], sync["new_values"]) == ("sync", {"vod_douban_score": "7.9"})
    assert doubtful.upstream.requests.keys("douban").count(str(TRAM["id"])) == 1


def test_videos_take_turns_by_their_oldest_decision(doubtful):
    for vod_id, action, douban_id in ((5, "lock_intro", 0), (4, "set_id", RIVER["id"]), (5, "set_id", TRAM["id"])):
        decide(doubtful.library, vod_id, action, douban_id)
    run_decisions(doubtful, applied=3)
    reported = [
        (change["vod_id"], change["action"]) for change in doubtful.library.log() if change["operator"] == "小王"
    ]
    assert reported == [(5, "set_id"), (5, "lock_intro"), (4, "set_id")]


def test_what_depends_on_a_link_is_refused_with_it(doubtful):
    library = doubtful.library
    decide(library, 5, "set_id", TRAM["id"], fingerprint="0" * 32)
    for action in ("lock_id", "sync_now", "lock_intro"):
        decide(library, 5, action)
    decide(library, 4, "lock_intro")
    metadata = run_decisions(doubtful, applied=2, refused=3)
    assert doubtful.cms(5, "vod_douban_id") == (WHALE["id"],)
    state = library.state(5)
    assert (state["douban_id_locked"], state["intro_locked"]) == (False, True), "the text is another matter"
    fallen = "同时记录的“指定豆瓣 ID”未能执行"
    assert [reason for reason in decisions(library, "state_reason") if reason == fallen] == [fallen] * 2
    assert metadata["refused_decisions"].count(fallen) == 2


def test_what_was_recorded_at_another_time_is_another_matter(doubtful):
    decide(doubtful.library, 5, "set_id", TRAM["id"], fingerprint="0" * 32)
    decide(doubtful.library, 5, "lock_id", batch_id="later")
    run_decisions(doubtful, applied=1, refused=1)
    state = doubtful.library.state(5)
    assert (state["vod_douban_id"], state["douban_id_locked"]) == (WHALE["id"], True)


def test_each_decision_ends_only_the_work_it_is_about(doubtful):
    """A decision about the link ends everything; the others end what they are about themselves."""
    library, kinds = doubtful.library, (TaskType.MATCH_DOUBAN_ID, TaskType.SYNC_DOUBAN, TaskType.AI_INTRO)
    ended = {
        "set_id": set(kinds),
        "clear_id": set(kinds),
        "ignore": set(kinds),
        "rematch": set(kinds),
        "lock_id": {TaskType.MATCH_DOUBAN_ID},
        "unlock_id": set(),
        "lock_intro": {TaskType.AI_INTRO},
        "unlock_intro": {TaskType.AI_INTRO},
        "sync_now": {TaskType.SYNC_DOUBAN},
    }
    task = library.tables.task
    for number, (action, expected) in enumerate(ended.items(), start=1):
        # Before the next run, so that nothing but the decision can close them.
        until = doubtful.clock.now().replace(year=2030)
        library.execute(sa.delete(task))
        library.enqueue(library.queue("planted"), [NewTask(5, kind, TaskStage.SYNC) for kind in kinds])
        library.execute(sa.update(task).values(run_after=until))
        # A person's, or it would be asked why it is there again after it was cleared.
        library.set_state(5, vod_douban_id=WHALE["id"], douban_id_source="person")
        library.set_state(5, douban_review_status="CONFIRMED", douban_id_locked=False)
        library.set_cms(5, vod_douban_id=WHALE["id"])
        decide(library, 5, action, WHALE["id"] if action == "set_id" else 0, pending_key=str(number))
        assert doubtful.play(5, steps=["synced_fields"]).metadata("synced_fields")["decisions_applied"] == 1, action
        rows = library.query(sa.select(task).where(task.c.run_after == until))
        closed = {row["task_type"] for row in rows if row["status"] == "SKIP"}
        assert closed == expected, action
        assert {row["last_error"] for row in rows if row["status"] == "SKIP"} <= {"审核决定优先"}


def test_a_later_order_takes_the_place_of_one_that_waits(doubtful):
    library = doubtful.library
    doubtful.upstream.faults.add("douban", "captcha")
    decide(library, 5, "sync_now")
    run_decisions(doubtful, 5, queued=1)
    doubtful.upstream.faults.clear()
    doubtful.services.gate.close("douban")
    decide(library, 5, "ignore", batch_id="later")
    run_decisions(doubtful, 5, applied=1)
    assert decisions(library, "action", "state", "state_reason") == [
        ("sync_now", "refused", "被更新的决定取代"),
        ("ignore", "applied", ""),
    ]
