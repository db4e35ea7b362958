"""A run may die at any moment: nothing it wrote is lost or doubled, and the log says what stands in the CMS."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import timedelta
from multiprocessing.connection import Connection

import pytest

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.writes.change_log import LOST_AFTER, ChangeLog
from douban_pipeline.douban.writes.changes import Change, ReconciledChange
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.fixtures.library import Library, dead_owner, processes, video


class Killed(BaseException):
    """Stands for SIGKILL where the test wants to look at what is left."""


class DiesPrepared(ChangeLog):
    """Dies once the change is in the log."""

    def _apply(self, change, change_id):
        raise Killed


class DiesWritten(ChangeLog):
    """Dies once the CMS row is written."""

    def _settle(self, connection, outcome):
        raise Killed


def link(vod_id=7, douban_id=1292052, **given):
    new = {"vod_douban_id": douban_id}
    state = {**new, "douban_review_status": "CONFIRMED"}
    return Change(vod_id, "link", **{"old": {"vod_douban_id": 0}, "new": new, "state": state, **given})


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(7), video(8)])


def die(library, kind, *changes, **options):
    options = {"owner": dead_owner(), **options}
    with pytest.raises(Killed):
        library.change_log("dead", kind=kind, **options).write(changes or [link()])


def settled(library):
    return [(row["vod_id"], row["state"]) for row in library.log()]


def test_a_run_that_died_before_the_update_did_nothing(library):
    die(library, DiesPrepared, link(7), link(8))
    before = library.all_bytes()
    reconciled = library.change_log("next").reconcile()
    assert [(change.vod_id, change.state) for change in reconciled] == [
        (7, ChangeState.ABANDONED),
        (8, ChangeState.ABANDONED),
    ]
    assert settled(library) == [(7, "abandoned"), (8, "abandoned")]
    assert library.all_bytes() == before
    assert library.state(7)["vod_douban_id"] == 0
    [outcome] = library.change_log("next").write([link()])
    assert outcome.state is ChangeState.APPLIED


def test_a_run_that_died_after_the_update_is_completed(library):
    die(library, DiesWritten)
    assert (library.row(7)["vod_douban_id"], library.state(7)["vod_douban_id"]) == (1292052, 0)
    library.clock.advance(minutes=3)
    [change] = library.change_log("next").reconcile()
    assert change == ReconciledChange(library.log()[0]["change_id"], 7, ChangeState.APPLIED)
    assert library.state(7)["vod_douban_id"] == 1292052
    assert library.state(7)["douban_review_status"] == "CONFIRMED"
    assert library.log()[0]["applied_at"] == library.clock.now()


def test_what_somebody_else_wrote_during_the_run_is_reported_and_left_alone(library):
    die(library, DiesPrepared, link(7), link(8))
    library.set_cms(7, vod_douban_id=26752088)
    library.execute("DELETE FROM mac_vod WHERE vod_id = 8")
    before = library.all_bytes()
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "conflict"), (8, "conflict")]
    assert "他人改动" in library.log()[0]["state_reason"]
    assert "删除" in library.log()[1]["state_reason"]
    assert library.all_bytes() == before
    assert library.state(7)["vod_douban_id"] == 0


def test_a_difference_only_a_byte_shows_is_a_difference(library):
    library.set_cms(7, vod_name="leon")
    die(library, DiesPrepared, Change(7, "sync", {"vod_name": "leon"}, {"vod_name": "Léon"}))
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "abandoned")]


def test_a_dead_run_that_only_meant_to_change_state_is_completed(library):
    die(library, DiesPrepared, Change(7, "lock_id", {}, {}, {"douban_id_locked": True}, operator="王"))
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "applied")]
    assert library.state(7)["douban_id_locked"] is True


@pytest.mark.parametrize("values", [{}, {"vod_content": "旧"}], ids=["state alone", "text noted"])
def test_a_decision_that_died_before_our_state_was_written_is_left_to_whoever_applies_it(library, values):
    """It may have been withdrawn or replaced by the time anybody knows that the run is dead."""
    library.set_cms(7, vod_content="旧")
    decided = Change(7, "ignore", values, values, {"douban_review_status": "IGNORED"}, operator="王", decision_id=3)
    die(library, DiesPrepared, decided, owner="run@another-machine:17")
    library.clock.advance(seconds=LOST_AFTER.total_seconds())
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "abandoned")]
    assert library.state(7)["douban_review_status"] == "NOT_FOUND"


def test_what_a_person_decided_since_stays_when_an_old_write_is_completed(library):
    die(library, DiesWritten, owner="run@another-machine:17")
    library.clock.advance(minutes=30)
    ignored = {"douban_review_status": "IGNORED", "douban_review_reason": "不看"}
    library.change_log("lane").write([Change(7, "ignore", {}, {}, ignored, operator="王")])
    library.clock.advance(minutes=30)
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "applied"), (7, "applied")]
    state = library.state(7)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (1292052, "IGNORED")
    assert state["douban_review_reason"] == "不看"


def test_a_revert_that_died_half_way_is_completed(library):
    [linked] = library.change_log("first").write([link()])

    class Dies(DiesWritten):
        """Dies in the revert."""

    log = library.change_log("dead", kind=Dies, owner=dead_owner())
    with pytest.raises(Killed):
        revert(log, ChangeSelection(change_ids=(linked.change_id,)), operator="王", reason="认错了", dry_run=False)
    assert settled(library) == [(7, "applied"), (7, "prepared")]
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "reverted"), (7, "applied")]
    assert (library.row(7)["vod_douban_id"], library.state(7)["douban_review_status"]) == (0, "REVIEW")


def test_what_a_living_run_has_in_hand_is_left_to_it_until_it_must_be_lost(library):
    elsewhere = "run@another-machine:17"
    die(library, DiesWritten, owner=elsewhere)
    assert not is_dead(elsewhere)
    library.clock.advance(seconds=LOST_AFTER.total_seconds() - 1)
    assert library.change_log("next").reconcile() == []
    assert settled(library) == [(7, "prepared")]
    library.clock.advance(seconds=1)
    library.change_log("next").reconcile()
    assert settled(library) == [(7, "applied")]


def test_two_runs_that_reconcile_at_once_settle_a_row_once(library):
    die(library, DiesWritten)
    cms = library.cms

    class Overtaken(Cms):
        """Between look and settling, another run settles the row and a person acts on it."""

        def rows(self, connection, vod_ids):
            found = super().rows(connection, vod_ids)
            assert len(library.change_log("other").reconcile()) == 1
            library.set_state(7, douban_review_status="IGNORED")
            library.clock.advance(minutes=1)
            return found

    log = library.change_log("next")
    log.cms = Overtaken(cms.vod, cms.type, cms.widths, cms.utf8mb3)
    log.reconcile()
    assert library.state(7)["douban_review_status"] == "IGNORED"
    assert library.log()[0]["applied_at"] == library.clock.now() - timedelta(minutes=1)
    assert library.change_log("next").reconcile() == []


def missing(library):
    """Return the videos that a run still has to link, as it would find them."""
    return [
        row["vod_id"] for row in library.query("SELECT vod_id FROM mac_vod WHERE vod_douban_id = 0 ORDER BY vod_id")
    ]


def work(library, log):
    """Link what is not linked yet, four videos a call."""
    todo = missing(library)
    for start in range(0, len(todo), 4):
        yield log.write([link(vod_id, 10_000 + vod_id) for vod_id in todo[start : start + 4]])


def child(url: str, pipe: Connection, ahead: int) -> None:
    """Do `work` and say so after every step, never more than ``ahead`` steps before one is answered."""
    steps = itertools.count(1)

    def tell() -> None:
        pipe.send("step")
        if next(steps) > ahead:
            pipe.recv()

    class Told(ChangeLog):
        def _prepare(self, changes):
            prepared = super()._prepare(changes)
            tell()
            return prepared

        def _apply(self, change, change_id):
            outcome = super()._apply(change, change_id)
            tell()
            return outcome

    with Library(url, clock=SystemClock()) as library:
        for _ in work(library, library.change_log("child", kind=Told)):
            tell()


def killed_after(url, steps, *, ahead):
    """Run `child` and kill it with SIGKILL once it has told of ``steps`` steps."""
    context = processes()
    ours, its = context.Pipe()
    process = context.Process(target=child, args=(url, its, ahead))
    process.start()
    its.close()
    for step in range(steps):
        assert ours.poll(60), "the child is stuck"
        ours.recv()
        if step < steps - 1:
            ours.send("go on")
    process.kill()
    process.join(timeout=60)
    assert process.exitcode == -9
    process.close()
    ours.close()


def assert_in_agreement(library):
    """The log, our state and the CMS tell one story."""
    states, applied = library.states(), Counter()
    for row in library.log():
        assert row["state"] in ("applied", "abandoned")
        if row["state"] == "applied":
            applied[row["vod_id"]] += 1
            assert row["new_values"] == {"vod_douban_id": 10_000 + row["vod_id"]}
    for vod_id, state in states.items():
        written = 10_000 + vod_id if applied[vod_id] else 0
        assert (library.row(vod_id)["vod_douban_id"], state["vod_douban_id"]) == (written, written)
    assert set(applied.values()) <= {1}


@pytest.mark.parametrize(("kills", "ahead"), [(range(1, 8), 0), ((1, 2, 3, 5, 8), 3)], ids=["at", "amid"])
def test_a_run_killed_at_any_point_loses_and_doubles_nothing(shared_library, kills, ahead):
    """``at``: right after each step of a call. ``amid``: wherever it is by the time the signal arrives."""
    videos = [video(vod_id) for vod_id in range(1, 41)]
    library = shared_library.renewed(videos)
    before = library.all_bytes()
    states = Counter()
    for steps in kills:
        killed_after(library.url, steps, ahead=ahead)
        for change in library.change_log("next").reconcile():
            states[change.state] += 1
        assert_in_agreement(library)
    if not ahead:
        # Of a call of four: killed with 0, 1, 2, 3, 4 written, then after it was settled, then in the next one.
        assert states == {ChangeState.ABANDONED: 4 + 3 + 2 + 1 + 0 + 4, ChangeState.APPLIED: 0 + 1 + 2 + 3 + 4}
    assert missing(library)

    list(work(library, library.change_log("last")))
    assert_in_agreement(library)
    assert missing(library) == []
    for row in library.query("SELECT DISTINCT run_id FROM mac_douban_log"):
        revert(
            library.change_log("undo"),
            ChangeSelection(run_id=row["run_id"]),
            operator="王",
            reason="演习",
            dry_run=False,
        )
    assert library.all_bytes() == before
