"""What a person said of a link after it was written holds against taking that one write back."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.douban.writes.reverting import changed, revert_writes, write
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video

LINK = {"vod_douban_id": 1292052}


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(7)])


def confirmation(library):
    state = {
        "vod_douban_id": 1292052,
        "douban_review_status": "CONFIRMED",
        "douban_id_source": "person",
        "douban_id_confidence": None,
    }
    return Change(7, "confirm_top1", {}, {}, state, operator="李", automatic=False)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_link_that_a_person_confirmed_since_stays(library, dry_run):
    [linked] = write(library, changed(library, new=LINK | {"vod_year": "1994"}))
    write(library, confirmation(library), batch_id="people")
    before = library.state(7)
    [result] = revert_writes(library, linked, dry_run=dry_run)
    assert (result.restored, result.skipped, result.reason) == (("vod_year",), ("vod_douban_id",), "之后已由人确认")
    assert library.row(7)["vod_douban_id"] == 1292052
    assert library.state(7) == before
    assert not result.to_review


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_confirmed_link_goes_once_the_confirmation_is_taken_back_with_it(library, dry_run):
    linked, confirmed = write(library, changed(library, new=LINK), confirmation(library))
    results = revert_writes(library, linked, confirmed, dry_run=dry_run)
    assert [result.skipped for result in results] == [(), ()]
    assert library.row(7)["vod_douban_id"] == (1292052 if dry_run else 0)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_lock_set_anew_since_is_not_the_one_that_the_change_set(library, dry_run):
    def locks(locked):
        at = library.clock.now() if locked else None
        return {"douban_id_locked": locked, "douban_id_lock_time": at}

    chosen = changed(library, new=LINK, operator="李", automatic=False)
    [linked] = write(library, Change(**{**_fields(chosen), "state": {**chosen.state, **locks(True)}}))
    library.clock.advance(hours=1)
    write(library, Change(7, "unlock_id", {}, {}, locks(False), operator="李", automatic=False))
    library.clock.advance(hours=1)
    write(library, Change(7, "lock_id", {}, {}, locks(True), operator="张", automatic=False))
    before = library.state(7)
    [result] = revert_writes(library, linked, dry_run=dry_run)
    assert (result.restored, result.skipped, result.reason) == ((), ("vod_douban_id",), "之后已被锁定")
    assert (library.row(7)["vod_douban_id"], library.state(7)) == (1292052, before)


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_intro_lock_set_anew_since_holds_too(library, dry_run):
    def locks(locked):
        return {"intro_locked": locked, "intro_lock_time": library.clock.now() if locked else None}

    text = {"vod_content": "<p>新简介</p>"}
    old = {"vod_content": library.row(7)["vod_content"]}
    [written] = write(library, Change(7, "intro", old, text, locks(True)))
    library.clock.advance(hours=1)
    write(library, Change(7, "unlock_intro", {}, {}, locks(False), operator="李", automatic=False))
    library.clock.advance(hours=1)
    write(library, Change(7, "lock_intro", text, text, locks(True), operator="张", automatic=False))
    before = library.state(7)
    [result] = revert_writes(library, written, dry_run=dry_run)
    assert (result.restored, result.skipped, result.reason) == ((), ("vod_content",), "之后已被锁定")
    assert (library.row(7)["vod_content"], library.state(7)) == ("<p>新简介</p>", before)


@pytest.mark.parametrize("lock", ["douban_id", "intro"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_of_two_locks_the_later_one_stays_when_the_earlier_is_taken_back(library, lock, dry_run):
    def locks(locked):
        return {f"{lock}_locked": locked, f"{lock}_lock_time": library.clock.now() if locked else None}

    [first] = write(library, Change(7, "lock", {}, {}, locks(True), operator="李", automatic=False))
    library.clock.advance(hours=1)
    write(library, Change(7, "unlock", {}, {}, locks(False), operator="李", automatic=False))
    library.clock.advance(hours=1)
    write(library, Change(7, "lock", {}, {}, locks(True), operator="张", automatic=False))
    before = library.state(7)
    [result] = revert_writes(library, first, dry_run=dry_run)
    assert (set(result.skipped), result.state) == ({f"{lock}_locked", f"{lock}_lock_time"}, ())
    assert library.state(7) == before


def test_a_lock_that_lasts_to_the_microsecond_is_its_changes_own(library):
    library.clock.advance(microseconds=123_456)
    locked = {"douban_id_locked": True, "douban_id_lock_time": library.clock.now()}
    chosen = changed(library, new=LINK, operator="李", automatic=False)
    [linked] = write(library, Change(**{**_fields(chosen), "state": {**chosen.state, **locked}}))
    library.clock.advance(hours=1)
    [result] = revert_writes(library, linked)
    assert (result.restored, result.skipped) == (("vod_douban_id",), ())
    assert library.state(7)["douban_id_locked"] is False


@pytest.mark.parametrize(
    "word",
    [
        {"douban_id_locked": True, "douban_id_lock_time": START},
        {"intro_locked": True, "intro_lock_time": START},
        {"douban_id_source": "person"},
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_a_word_of_the_last_moment_is_heard(library, word, alone):
    state = {"douban_review_status": "REVIEW", "douban_review_reason": "甲"}
    alike = Change(7, "rematch", {}, {}, state, operator="李", automatic=False)
    [change_id] = write(library, alike if alone else changed(library, new=LINK))
    before = library.state(7)

    class Overtaken(ChangeLog):
        def _apply(self, change, own_id):
            library.set_state(7, **word)
            return super()._apply(change, own_id)

    [undone] = revert_writes(library, change_id, log=library.change_log("undo", kind=Overtaken))
    assert (undone.restored, undone.state, bool(undone.skipped)) == ((), (), True)
    assert undone.reason == "读取之后影片被锁定、解锁或另有决定"
    assert library.row(7)["vod_douban_id"] == (0 if alone else 1292052)
    assert library.state(7) == {**before, **word}
    assert [row["state"] for row in library.log()] == ["applied", "refused"]


def _fields(change):
    return {name: getattr(change, name) for name in Change.__dataclass_fields__}
