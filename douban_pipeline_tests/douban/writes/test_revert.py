"""What was written can be taken back, to the byte, and nothing that changed or was locked since is lost by it."""

from __future__ import annotations

import pytest

from douban_pipeline.core.database import reading
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert import ChangeSelection, RevertedChange, revert
from douban_pipeline_tests.douban.writes.reverting import FIELDS, altered, changed, revert_writes, write
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(vod_id, vod_sub="别名 ", vod_actor="甲,乙") for vod_id in (7, 8, 9)])


def test_a_change_is_taken_back_to_the_byte(library):
    before, state = library.all_bytes(), library.state(7)
    [change_id] = write(library, changed(library))
    assert library.all_bytes() != before
    library.clock.advance(hours=1)

    [undone] = revert_writes(library, change_id)
    assert (undone.change_id, undone.vod_id) == (change_id, 7)
    assert (sorted(undone.restored), undone.skipped, undone.reason) == (sorted(FIELDS), (), "")
    assert library.all_bytes() == before
    first, second = library.log()
    assert (first["state"], second["state"]) == ("reverted", "applied")
    assert (second["action"], second["reverts_change_id"], second["operator"]) == ("revert", change_id, "王")
    assert (second["batch_id"], second["old_values"], second["new_values"]) == (
        "undo",
        first["new_values"],
        first["old_values"],
    )
    after = library.state(7)
    # An automatic link that was wrong goes to a person, or the next run would link it again.
    assert after["douban_review_status"] == "REVIEW"
    assert after["douban_review_reason"] == "关联 1292052 已被撤销：认错了"
    assert after["douban_last_sync_at"] == START
    reported = {"douban_review_status", "douban_review_reason", "douban_last_sync_at"}
    assert {name: value for name, value in after.items() if name not in reported} == {
        name: value for name, value in state.items() if name not in reported
    }


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_row_that_the_site_locked_is_reverted_only_if_a_person_says_so(library, dry_run):
    before = library.all_bytes()
    [change_id] = write(library, changed(library))
    library.set_cms(7, vod_lock=1)
    locked = library.all_bytes()

    [left] = revert_writes(library, change_id, dry_run=dry_run)
    assert (left.restored, sorted(left.skipped)) == ((), sorted(FIELDS))
    assert left.reason == "影片已在 CMS 中锁定（vod_lock），请先在 CMS 中解锁；确认要写入请加 override_cms_lock: true"
    assert library.all_bytes() == locked

    [undone] = revert_writes(library, change_id, dry_run=dry_run, override_cms_lock=True)
    assert (sorted(undone.restored), undone.reason) == (sorted(FIELDS), "")
    library.set_cms(7, vod_lock=0)
    assert (library.all_bytes() == before) is not dry_run


def test_a_batch_a_run_and_chosen_changes_are_distinguished(library):
    one = write(library, changed(library, 7), run_id="r1", batch_id="b1")
    two = write(library, changed(library, 8), run_id="r1", batch_id="b2")
    three = write(library, changed(library, 9), run_id="r2", batch_id="b2")
    assert [undone.change_id for undone in revert_writes(library, batch_id="b2", dry_run=True)] == three + two
    assert [undone.change_id for undone in revert_writes(library, run_id="r1", dry_run=True)] == two + one
    assert [undone.change_id for undone in revert_writes(library, run_id="r1", batch_id="b2", dry_run=True)] == two
    assert [undone.change_id for undone in revert_writes(library, *one, *three, dry_run=True)] == three + one
    assert revert_writes(library, batch_id="b9") == []
    with pytest.raises(ValueError, match="name a change"):
        revert_writes(library)
    assert [row["state"] for row in library.log()] == ["applied"] * 3


def test_several_changes_of_a_video_are_taken_back_the_newest_first(library):
    before = library.all_bytes()
    write(library, changed(library))
    write(library, changed(library, new={"vod_name": "十一罗汉", "vod_total": 0}))
    write(library, changed(library, new={"vod_name": "盗梦空间"}))
    planned = revert_writes(library, batch_id="batch", dry_run=True)
    assert revert_writes(library, batch_id="batch") == planned
    assert [undone.skipped for undone in planned] == [(), (), ()]
    assert library.all_bytes() == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_large_batch_with_several_changes_of_each_video(shared_library, dry_run):
    library = shared_library.renewed([video(vod_id) for vod_id in range(1, 121)])
    before, log = library.all_bytes(), library.change_log(batch_id="batch")
    for old, new in (("2024", "2001"), ("2001", "2002"), ("2002", "2003")):
        changes = [Change(vod_id, "sync", {"vod_year": old}, {"vod_year": new}) for vod_id in range(1, 121)]
        assert {outcome.state for outcome in log.write(changes)} == {ChangeState.APPLIED}
    library.set_cms(50, vod_year="1999")
    undone = revert_writes(library, batch_id="batch", dry_run=dry_run)
    assert [change.change_id for change in undone] == [row["change_id"] for row in library.log()[359::-1]]
    assert [change.vod_id for change in undone if change.skipped] == [50, 50, 50]
    library.set_cms(50, vod_year="2024")
    assert (library.all_bytes() == before) is not dry_run


def test_a_change_that_a_later_one_covers_is_not_dug_out_from_under_it(library):
    [first] = write(library, changed(library, new={"vod_name": "甲", "vod_year": "1999"}))
    write(library, changed(library, new={"vod_name": "乙"}))
    [undone] = revert_writes(library, first)
    assert (undone.restored, undone.skipped, undone.reason) == (("vod_year",), ("vod_name",), "之后已被改动")
    assert (library.row(7)["vod_name"], library.row(7)["vod_year"]) == ("乙", "2024")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_value_that_a_later_change_wrote_again_is_not_the_one_of_the_first(library, dry_run):
    both = {"vod_douban_id": 1, "vod_year": "1994"}
    [first] = write(library, changed(library, new=both, operator="李", automatic=False))
    write(library, changed(library, new={"vod_douban_id": 0}, operator="王", automatic=False), batch_id="others")
    write(library, changed(library, new={"vod_douban_id": 1}, operator="王", automatic=False), batch_id="others")
    before, state = library.row(7), library.state(7)

    [undone] = revert_writes(library, first, dry_run=dry_run)
    assert (undone.restored, undone.skipped, undone.reason) == (("vod_year",), ("vod_douban_id",), "之后已被改动")
    assert library.row(7) == before | ({} if dry_run else {"vod_year": "2024"})
    assert library.state(7)["vod_douban_id"] == state["vod_douban_id"] == 1

    # Once the later ones are reverted, it is the last that wrote the value.
    results = revert_writes(library, batch_id="others", dry_run=dry_run)
    assert [result.skipped for result in results] == [(), ()]
    [undone] = revert_writes(library, first)
    assert undone.restored == (("vod_year",) if dry_run else ("vod_douban_id",))


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_somebody_changed_since_is_left_and_listed(library, dry_run):
    [change_id] = write(library, changed(library))
    library.set_cms(7, vod_name="站长改的", vod_area="美国 ", vod_total=13)
    before = library.all_bytes()
    [undone] = revert_writes(library, change_id, dry_run=dry_run)
    assert sorted(undone.skipped) == ["vod_area", "vod_name", "vod_total"]
    assert sorted(undone.restored) == ["vod_content", "vod_douban_id", "vod_douban_score", "vod_year"]
    assert undone.reason == "之后已被改动"
    row = library.row(7)
    assert (row["vod_name"], row["vod_area"], row["vod_total"]) == ("站长改的", "美国 ", 13)
    assert (library.all_bytes() == before) is dry_run
    assert (row["vod_douban_id"] == 1292052) is dry_run


@pytest.mark.parametrize(
    ("lock", "kept"),
    [
        ({"douban_id_locked": True}, {"vod_douban_id"}),
        ({"intro_locked": True}, {"vod_content"}),
        ({"douban_id_locked": True, "intro_locked": True}, {"vod_douban_id", "vod_content"}),
    ],
)
def test_what_was_locked_since_is_left_and_listed(library, lock, kept):
    [change_id] = write(library, changed(library))
    library.set_state(7, **lock)
    state = library.state(7)
    [undone] = revert_writes(library, change_id)
    assert (set(undone.skipped), set(undone.restored)) == (kept, set(FIELDS) - kept)
    assert undone.reason == "之后已被锁定"
    row = library.row(7)
    assert {column for column in FIELDS if row[column] == FIELDS[column]} == kept
    if "vod_douban_id" in kept:
        assert library.state(7) == state


def test_a_lock_that_the_change_itself_set_goes_with_it(library):
    change = changed(library, operator="李", automatic=False)
    locking = altered(change, state={**change.state, "douban_id_locked": True})
    [change_id] = write(library, locking)
    [undone] = revert_writes(library, change_id)
    assert undone.skipped == ()
    assert (library.row(7)["vod_douban_id"], library.state(7)["douban_id_locked"]) == (0, False)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_lock_set_by_a_later_change_of_the_same_batch_goes_first(library, dry_run):
    write(library, changed(library, new={"vod_douban_id": 5}))
    write(library, Change(7, "lock_id", {}, {}, {"douban_id_locked": True}, operator="李", automatic=False))
    undone = revert_writes(library, batch_id="batch", dry_run=dry_run)
    assert [(change.restored, change.skipped) for change in undone] == [((), ()), (("vod_douban_id",), ())]
    assert library.row(7)["vod_douban_id"] == (5 if dry_run else 0)
    assert library.state(7)["douban_id_locked"] is dry_run


def test_what_a_revert_had_to_leave_can_be_taken_back_later(library):
    before = library.all_bytes()
    [change_id] = write(library, changed(library))
    library.set_cms(7, vod_area="法国")
    [undone] = revert_writes(library, change_id)
    assert undone.skipped == ("vod_area",)
    library.set_cms(7, vod_area=FIELDS["vod_area"])
    [rest] = revert_writes(library, change_id)
    assert rest.restored == ("vod_area",)
    assert library.all_bytes() == before


def test_a_deleted_video_is_listed(library):
    [change_id] = write(library, changed(library, new={"vod_name": "甲"}))
    library.execute("DELETE FROM mac_vod WHERE vod_id = 7")
    assert revert_writes(library, change_id) == [RevertedChange(change_id, 7, (), ("vod_name",), "影片已不存在")]


def test_a_row_that_changes_at_the_last_moment_is_left_alone(library):
    [change_id] = write(library, changed(library, new={"vod_name": "甲"}))

    class Overtaken(ChangeLog):
        def _apply(self, change, own_id):
            library.set_cms(7, vod_name="站长改的")
            return super()._apply(change, own_id)

    [undone] = revert_writes(library, change_id, log=library.change_log("undo", kind=Overtaken))
    assert (undone.restored, undone.skipped) == ((), ("vod_name",))
    assert "vod_name" in undone.reason
    assert library.row(7)["vod_name"] == "站长改的"
    assert [row["state"] for row in library.log()] == ["applied", "refused"]


def test_a_revert_can_itself_be_taken_back_and_so_on(library):
    original = library.all_bytes()
    [change_id] = write(library, changed(library))
    written, linked = library.all_bytes(), library.state(7)
    for times in range(1, 4):
        library.clock.advance(hours=1)
        undoing = library.change_log(f"undo-{times}", batch_id=f"undo-{times}")
        chosen = {"batch_id": f"undo-{times - 1}"} if times > 1 else {"change_ids": (change_id,)}
        [undone] = revert(undoing, ChangeSelection(**chosen), operator="王", reason="再想想", dry_run=False)
        assert undone.skipped == ()
        assert library.all_bytes() == (original if times % 2 else written)
        assert library.log()[0]["state"] == ("reverted" if times % 2 else "applied")
        if not times % 2:
            assert library.state(7) == linked
    assert revert_writes(library, change_id) == []


def test_what_was_taken_back_is_known_until_that_too_is_taken_back(library):
    def undone_ids():
        with reading(library.engine) as connection:
            found = library.change_log().undone_values(connection, [7, 8, 9])
        return {vod_id: values.get("vod_douban_id") for vod_id, values in found.items()}

    assert undone_ids() == {}
    [change_id] = write(library, changed(library, new={"vod_douban_id": 5}))
    assert undone_ids() == {}
    revert_writes(library, change_id)
    assert undone_ids() == {7: [5]}
    write(library, changed(library, 8, new={"vod_douban_id": 6}))
    cleared = changed(library, 8, new={"vod_douban_id": 0}, operator="李", automatic=False)
    write(library, altered(cleared, action="clear_id"))
    assert undone_ids() == {7: [5], 8: [6]}
    revert_writes(library, library.log()[1]["change_id"])
    assert 5 not in undone_ids()[7]
