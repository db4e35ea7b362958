"""Our own state goes back with a change, and no video is forgotten over it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert import RevertedChange
from douban_pipeline_tests.douban.writes.reverting import changed, revert_writes, write
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(vod_id, vod_sub="别名 ", vod_actor="甲,乙") for vod_id in (7, 8, 9)])


def test_when_work_was_done_is_not_turned_back(library):
    library.clock.advance(days=1)
    due = library.clock.now() + timedelta(days=30)
    now = library.clock.now()
    state = {"douban_last_sync_at": now, "douban_next_sync_at": due, "douban_review_reason": ""}
    write(library, Change(7, "sync", {"vod_year": "2024"}, {"vod_year": "1994"}, state))
    library.clock.advance(days=1)
    revert_writes(library, batch_id="batch")
    state = library.state(7)
    assert (state["douban_last_sync_at"], state["douban_next_sync_at"]) == (now, due)


@pytest.mark.parametrize(
    ("before", "after", "visit"),
    [
        pytest.param({}, {"douban_review_status": "IGNORED", "douban_next_sync_at": None}, "now", id="ignored"),
        pytest.param(
            {"douban_review_status": "CONFIRMED"},
            {"douban_review_status": "IGNORED", "douban_next_sync_at": None},
            "now",
            id="ignored though linked",
        ),
        pytest.param({}, {"douban_review_status": "CONFIRMED"}, "now", id="open again"),
        pytest.param({"douban_review_status": "REVIEW"}, {"douban_review_status": "CONFIRMED"}, "now", id="in review"),
        pytest.param({}, {"douban_review_reason": "甲"}, "later", id="as open as before"),
        pytest.param({"douban_review_status": "CONFIRMED"}, {"douban_id_locked": True}, "later", id="a lock"),
        pytest.param(
            {"douban_review_status": "IGNORED"}, {"douban_review_status": "NOT_FOUND"}, "never", id="ignored again"
        ),
        pytest.param(
            {"douban_review_status": "IGNORED", "douban_ignore_until": START + timedelta(days=90)},
            {"douban_review_status": "NOT_FOUND", "douban_ignore_until": None},
            "until",
            id="ignored again for a time",
        ),
    ],
)
@pytest.mark.parametrize("recycled", [False, True])
def test_a_video_that_is_open_again_is_looked_at_again(library, before, after, visit, recycled):
    later = START + timedelta(days=30)
    library.set_state(7, **{**before, "douban_next_sync_at": later})
    change = Change(7, "act", {}, {}, {"douban_next_sync_at": later, **after}, operator="李", automatic=False)
    [change_id] = write(library, change)
    library.clock.advance(hours=1)
    if recycled:
        library.set_cms(7, vod_recycle_time=1)
    expected = {"now": library.clock.now(), "later": later, "never": None, "until": START + timedelta(days=90)}[visit]
    if recycled:
        expected = library.state(7)["douban_next_sync_at"]
    revert_writes(library, change_id)
    state = library.state(7)
    assert state["douban_next_sync_at"] == expected
    assert state["douban_review_status"] == before.get("douban_review_status", "NOT_FOUND")


def test_a_video_that_is_ignored_by_now_stays_so_when_its_link_goes(library):
    [change_id] = write(library, changed(library))
    library.set_state(7, douban_review_status="IGNORED", douban_next_sync_at=None)
    revert_writes(library, change_id)
    state = library.state(7)
    assert library.row(7)["vod_douban_id"] == 0
    assert (state["douban_review_status"], state["douban_next_sync_at"]) == ("IGNORED", None)


def lock_intro(library):
    text = library.row(7)["vod_content"]
    noted = {"vod_content": text}
    state = {"intro_locked": True, "intro_lock_time": library.clock.now()}
    return Change(7, "lock_intro", noted, noted, state, operator="李", automatic=False)


@pytest.mark.parametrize("edited", [False, True])
def test_a_lock_that_noted_the_text_goes_whatever_became_of_the_text(library, edited):
    [change_id] = write(library, lock_intro(library))
    if edited:
        library.set_cms(7, vod_content="站长写的")
    before = library.all_bytes()
    [undone] = revert_writes(library, change_id)
    assert (undone.skipped, undone.reason) == ((), "")
    assert set(undone.state) == {"intro_locked", "intro_lock_time"}
    assert (library.state(7)["intro_locked"], library.all_bytes()) == (False, before)
    assert library.log()[0]["state"] == "reverted"


def test_a_lock_comes_back_only_over_the_text_that_it_noted(library):
    [change_id] = write(library, lock_intro(library))
    revert_writes(library, change_id)
    library.set_cms(7, vod_content="站长写的")
    [redone] = revert_writes(library, batch_id="undo")
    assert (redone.restored, redone.skipped, redone.reason) == ((), ("vod_content",), "之后已被改动")
    assert library.state(7)["intro_locked"] is False
    library.set_cms(7, vod_content="<p>原有简介</p>")
    [redone] = revert_writes(library, batch_id="undo")
    assert (redone.skipped, library.state(7)["intro_locked"]) == ((), True)


def test_state_alone_that_moved_on_since_is_left_and_listed(library):
    [lock] = write(library, Change(7, "lock_id", {}, {}, {"douban_id_locked": True}, operator="李", automatic=False))
    write(library, Change(7, "unlock_id", {}, {}, {"douban_id_locked": False}, operator="李", automatic=False))
    assert revert_writes(library, lock) == [RevertedChange(lock, 7, (), ("douban_id_locked",), "之后已被改动")]
    assert [row["state"] for row in library.log()] == ["applied", "applied"]
