"""A run may die between any two steps of a decision: the next one goes on, and nothing is done twice."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.chain.sync.writer import FieldWriter
from douban_pipeline.douban.decisions import application
from douban_pipeline.douban.decisions.subject_checks import SubjectChecks
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.chain.sync.test_decisions import changes_of, run_decisions
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.library import dead_owner
from douban_pipeline_tests.harness.fixtures.runs import new_run_id, play
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, TRAM, WHALE, row_of


class Killed(BaseException):
    """The process is gone: nothing that follows in it happens."""


def before(owner, name):
    def never(*_given, **_named):
        raise Killed

    return owner, name, never


def after(owner, name):
    real = getattr(owner, name)

    def last(*given, **named):
        real(*given, **named)
        raise Killed

    return owner, name, last


POINTS = [
    pytest.param(after(SubjectChecks, "_record_check"), id="checked"),
    pytest.param(after(ChangeLog, "_prepare"), id="logged"),
    pytest.param(after(ChangeLog, "_apply"), id="written"),
    pytest.param(after(ChangeLog, "_settle"), id="within what settles the change"),
    pytest.param(after(ChangeLog, "write"), id="settled"),
    pytest.param(before(application, "close_in_hand"), id="before what follows"),
    pytest.param(after(application, "order"), id="within what follows"),
    pytest.param(after(application._DecisionApplier, "_complete"), id="applied"),
    pytest.param(before(FieldWriter, "sync"), id="before its sync"),
    pytest.param(before(TaskQueue, "finish"), id="synced, not noted"),
]

ACTIONS = [
    ("set_id", TRAM["id"], {"lock": True}),
    ("clear_id", 0, {}),
    ("lock_intro", 0, {}),
    ("sync_now", 0, {"lock": True}),
    ("sync_now", 0, {}),
]


def a_linked_video(stage, server=None):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, on=server, videos_at_once=1)
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    return scenario


@pytest.fixture
def linked(stage):
    """Video 5 is linked, and its synopsis as the CMS brought it in."""
    return a_linked_video(stage)


def die(scenario, monkeypatch, point):
    """Let a run die at a point; say whether it came there. Its tasks and changes belong to nobody from then on."""
    with monkeypatch.context() as patch:
        patch.setattr(*point)
        run_id = new_run_id()
        patch.setattr("douban_pipeline_tests.harness.fixtures.runs.new_run_id", lambda: run_id)
        try:
            play(scenario.services, [5], ["synced_fields"])
            died = False
        except Killed:
            died = True
    tables = scenario.library.tables
    for table, column in ((tables.task, "lease_owner"), (tables.decision, "lease_owner"), (tables.log, "owner")):
        mine = table.c[column] == owner_name(run_id)
        scenario.library.execute(sa.update(table).where(mine).values({column: dead_owner(run_id)}))
    return died


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("action", "douban_id", "more"), ACTIONS)
def test_a_decision_is_applied_once(linked, monkeypatch, point, action, douban_id, more):
    unchecked = {"checked_at": None, "accept_conflicts": True} if action == "set_id" else {}
    decision_id = decide(linked.library, 5, action, douban_id, **unchecked, **more)
    died = die(linked, monkeypatch, point)
    assert died or action != "set_id", "a decision that does everything passes every point"
    linked.clock.advance(seconds=10)
    run = linked.play(5, steps=["synced_fields"])
    assert (run.success, run.failed_guards) == (True, set())
    assert decisions(linked.library, "state", "state_reason") == [("applied", "")]
    applied = [change for change in changes_of(linked, decision_id) if change["state"] == "applied"]
    written = [change for change in applied if change["action"] == action]
    assert len(written) == (0 if (action, more) == ("sync_now", {}) else 1)
    assert {change["state"] for change in linked.library.log()} <= {"applied", "abandoned"}
    state = linked.library.state(5)
    target = {"set_id": TRAM["id"], "clear_id": 0}.get(action, WHALE["id"])
    assert (state["vod_douban_id"], *linked.cms(5, "vod_douban_id")) == (target, target)
    assert state["douban_id_locked"] is more.get("lock", False)
    assert state["intro_locked"] is (action == "lock_intro")
    tasks = [task for task in linked.library.tasks() if (task["payload"] or {}).get("decision_id")]
    assert len(tasks) == (action in ("set_id", "sync_now")), "ordered once"
    assert not [task for task in linked.library.tasks() if task["open_key"]]
    assert len([change for change in applied if change["action"] == "sync"]) <= 1


@pytest.mark.mariadb
@pytest.mark.parametrize("point", [POINTS[2], POINTS[3], POINTS[6], POINTS[9]])
def test_a_decision_is_applied_once_on_the_cms_s_real_tables(stage, mariadb_library, monkeypatch, point):
    test_a_decision_is_applied_once(
        a_linked_video(stage, mariadb_library), monkeypatch, point, "set_id", TRAM["id"], {"lock": True}
    )


def test_what_was_reverted_before_it_was_settled_stays_reverted(linked, monkeypatch):
    decision_id = decide(linked.library, 5, "set_id", TRAM["id"])
    assert die(linked, monkeypatch, after(ChangeLog, "write"))
    [change] = changes_of(linked, decision_id)
    log = linked.library.change_log("undo")
    revert(log, ChangeSelection((change["change_id"],)), operator="小李", reason="认错了", dry_run=False)
    metadata = linked.play(5, steps=["synced_fields"]).metadata("synced_fields")
    assert (metadata["decisions_applied"], metadata["decisions_refused"]) == (0, 0)
    assert linked.cms(5, "vod_douban_id") == (WHALE["id"],)
    assert decisions(linked.library, "state", "state_reason") == [("reverted", "执行之后已被撤销")]


def test_what_changed_after_the_write_stops_nobody(linked, monkeypatch):
    """The rules were asked before the write; a run that goes on does not ask them of what the write made."""
    decide(linked.library, 5, "replace_and_lock", TRAM["id"])
    assert die(linked, monkeypatch, after(ChangeLog, "write"))
    linked.library.set_cms(5, vod_name="站长改了名")
    run_decisions(linked, 5, applied=1)
    assert linked.library.state(5)["douban_id_locked"] is True


@pytest.mark.parametrize("meanwhile", ["held", "taken over", "taken over, and left"])
def test_two_runs_at_once_apply_a_decision_once(linked, monkeypatch, meanwhile):
    """Another run leaves alone what one holds; a run that was silent for too long finds it done, or half done."""
    decision_id = decide(linked.library, 5, "set_id", TRAM["id"])
    real = ChangeLog.write
    turns = iter([True])

    def write(self, changes):
        if next(turns, False):
            monkeypatch.setattr(ChangeLog, "write", real)
            if meanwhile != "held":
                linked.library.execute("UPDATE mac_douban_decision SET lease_until = '2000-01-01 00:00:00.000000'")
            if meanwhile == "taken over, and left":
                assert die(linked, monkeypatch, before(application, "close_in_hand"))
            else:
                run_decisions(linked, 5, applied=int(meanwhile == "taken over"))
        return real(self, changes)

    monkeypatch.setattr(ChangeLog, "write", write)
    play(linked.services, [5], ["synced_fields"])
    linked.clock.advance(minutes=1)
    linked.play(5, steps=["synced_fields"])
    assert linked.cms(5, "vod_douban_id") == (TRAM["id"],)
    assert decisions(linked.library, "state", "state_reason") == [("applied", "")]
    applied = [change["action"] for change in changes_of(linked, decision_id) if change["state"] == "applied"]
    assert applied.count("set_id") == 1
    assert applied.count("sync") <= 1
    ordered = [task for task in linked.library.tasks() if (task["payload"] or {}).get("decision_id")]
    assert len(ordered) == 1
