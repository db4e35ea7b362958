"""Locked values are put back where that is wanted: once a run, over nobody's lock, logged, and to be taken back."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.undo.drift import drifts, restore
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.fixtures.library import unix, video

LOCKED = 1292052


@pytest.fixture
def library(shared_library):
    """Video 7 is locked with its id and its synopsis, as people locked them."""
    library = shared_library.renewed([video(vod_id, vod_content="旧简介") for vod_id in (7, 8)])
    now = library.clock.now()
    linked = {"vod_douban_id": LOCKED, "douban_review_status": "CONFIRMED", "douban_id_source": "person"}
    lock = {"douban_id_locked": True, "douban_id_lock_time": now}
    write(library, Change(7, "set_id", {"vod_douban_id": 0}, {"vod_douban_id": LOCKED}, {**linked, **lock}))
    noted = {"vod_content": "旧简介", "vod_blurb": ""}
    write(library, Change(7, "lock_intro", noted, noted, {"intro_locked": True, "intro_lock_time": now}))
    library.clock.advance(minutes=1)
    return library


def write(library, change, **given):
    log = library.change_log("deciding")
    [outcome] = log.write([Change(**{**_fields(change), "operator": "李", "automatic": False, **given})])
    assert outcome.state is ChangeState.APPLIED
    return outcome.change_id


def _fields(change):
    return {name: getattr(change, name) for name in change.__dataclass_fields__}


def restore_all(library, *, log=None):
    log = log or library.change_log("restoring", batch_id="restored")
    return {key: reported for look in drifts(library.services) for key, reported in restore(log, look.found).items()}


def current_values(library):
    row = library.row(7)
    return row["vod_douban_id"], row["vod_content"]


def newest(library):
    return library.log()[-1]


def test_locked_values_are_restored_through_the_log(library):
    before = library.all_bytes()
    library.set_cms(7, vod_douban_id=5, vod_content="新简介")
    reported = restore_all(library)
    change = newest(library)
    assert reported == dict.fromkeys(
        ((7, "vod_content"), (7, "vod_douban_id")), f"已恢复（变更 {change['change_id']}）"
    )
    assert library.all_bytes() == before
    assert (change["action"], change["operator"], change["batch_id"], change["state"]) == (
        *("restore", "pipeline", "restored"),
        "applied",
    )
    linked, locked = (row["change_id"] for row in library.log()[:2])
    by_whom = "看来是其他程序直接改库或批量编辑；恢复锁定值"
    assert change["reason"].split("；锁定的") == [
        f"锁定的简介（由变更 {locked} 写入，已锁定）在 CMS 中被改动，{by_whom}",
        f"豆瓣 ID（由变更 {linked} 写入，已锁定）在 CMS 中被改为 5，{by_whom}",
    ]


def test_an_id_locked_as_the_cms_had_it_is_not_put_down_to_an_earlier_write(library):
    """Somebody typed another id than was written, a person locked that, and an old form brings the first one back."""
    typed = 26752088
    library.set_cms(7, vod_douban_id=typed)
    locked = {"vod_douban_id": typed, "douban_id_source": "cms", "douban_id_lock_time": library.clock.now()}
    library.set_state(7, **locked)
    library.clock.advance(minutes=1)
    library.set_cms(7, vod_douban_id=LOCKED, vod_time=unix(library.clock.now()))
    restore_all(library)
    assert current_values(library) == (typed, "旧简介")
    assert newest(library)["reason"] == (
        f"锁定的豆瓣 ID（已锁定）在 CMS 中被改为 {LOCKED}，看来是过期的后台表单；恢复锁定值"
    )


def test_a_second_time_there_is_nothing_to_do(library):
    library.set_cms(7, vod_douban_id=5)
    assert restore_all(library)
    log = library.log()
    assert restore_all(library) == {}
    assert library.log() == log


def test_what_intake_noted_of_a_changed_id_is_gone_with_it(library):
    library.set_cms(7, vod_douban_id=5, vod_time=unix(library.clock.now()))
    library.intake.changes()
    assert library.state(7)["douban_review_reason"] == f"锁定的豆瓣 ID {LOCKED} 在 CMS 中被改为 5"
    restore_all(library)
    assert library.state(7)["douban_review_reason"] == ""
    library.set_state(7, douban_review_reason="别的原因")
    library.set_cms(7, vod_douban_id=5)
    restore_all(library)
    assert library.state(7)["douban_review_reason"] == "别的原因"


def test_of_a_changed_text_alone_the_state_says_what_it_said(library):
    library.set_state(7, douban_review_reason="锁定的豆瓣 ID 之外的话")
    library.set_cms(7, vod_content="新简介")
    restore_all(library)
    assert library.state(7)["douban_review_reason"] == "锁定的豆瓣 ID 之外的话"


@pytest.mark.parametrize(
    ("hold", "why"),
    [
        (lambda lib: lib.set_cms(7, vod_lock=1), "未恢复：影片已在 CMS 中锁定（vod_lock）"),
        (lambda lib: lib.set_state(7, douban_review_status="IGNORED"), "未恢复：影片已被忽略"),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_the_sites_own_lock_and_being_ignored_are_respected(library, hold, why, late):
    """``late``: only when the write is about to be done."""
    library.set_cms(7, vod_douban_id=5)

    class Late(ChangeLog):
        def _apply(self, change, change_id):
            hold(library)
            return super()._apply(change, change_id)

    if not late:
        hold(library)
    reported = restore_all(library, log=library.change_log("restoring", kind=Late))
    assert reported == {(7, "vod_douban_id"): why}
    assert current_values(library) == (5, "旧简介")
    assert newest(library)["state"] == ("refused" if late else "applied")


def test_where_the_sites_lock_is_not_respected_it_does_not_hold(library):
    library.set_cms(7, vod_douban_id=5, vod_lock=1)
    free = library.renewed([video(7)], respect_vod_lock=False)
    write(
        free,
        Change(
            7,
            "set_id",
            {"vod_douban_id": 0},
            {"vod_douban_id": LOCKED},
            {"vod_douban_id": LOCKED, "douban_id_locked": True},
        ),
    )
    free.set_cms(7, vod_douban_id=5, vod_lock=1)
    restore_all(free, log=free.change_log("restoring", respect_vod_lock=False))
    assert free.row(7)["vod_douban_id"] == LOCKED


@pytest.mark.parametrize(
    ("interfere", "why"),
    [
        (lambda lib: lib.set_cms(7, vod_douban_id=6), "未恢复：读取之后 CMS 中的值已被改动：vod_douban_id"),
        (lambda lib: lib.set_state(7, douban_id_locked=False), "未恢复：豆瓣 ID 已不再这样锁定"),
        (lambda lib: lib.set_state(7, vod_douban_id=6), "未恢复：豆瓣 ID 已不再这样锁定"),
    ],
)
def test_it_takes_effect_only_where_value_and_lock_still_stand(library, interfere, why):
    library.set_cms(7, vod_douban_id=5)

    class Overtaken(ChangeLog):
        def _apply(self, change, change_id):
            interfere(library)
            return super()._apply(change, change_id)

    reported = restore_all(library, log=library.change_log("restoring", kind=Overtaken))
    assert reported == {(7, "vod_douban_id"): why}
    assert library.row(7)["vod_douban_id"] != LOCKED


def test_a_text_whose_lock_is_taken_off_at_the_last_moment_stays(library):
    library.set_cms(7, vod_content="新简介")

    class Overtaken(ChangeLog):
        def _apply(self, change, change_id):
            library.set_state(7, intro_locked=False)
            return super()._apply(change, change_id)

    reported = restore_all(library, log=library.change_log("restoring", kind=Overtaken))
    assert reported == {(7, "vod_content"): "未恢复：简介已不再锁定"}
    assert library.row(7)["vod_content"] == "新简介"


def test_a_decision_that_waits_comes_first(library):
    library.set_cms(7, vod_douban_id=5)
    row = {"vod_id": 7, "shard": 7, "action": "unlock_id", "reviewer": "李", "state": "pending", "run_id": "r"}
    library.execute(library.tables.decision.insert().values({**row, "created_at": library.clock.now()}))
    assert restore_all(library) == {(7, "vod_douban_id"): "未恢复：有尚未执行的决定"}


def test_only_what_is_locked_is_restored(library):
    write(library, Change(8, "sync", {"vod_year": "2024"}, {"vod_year": "1994"}))
    library.set_cms(8, vod_year="2024")
    assert restore_all(library) == {}
    assert library.row(8)["vod_year"] == "2024"


def test_a_lock_on_nothing_keeps_it_nothing(library):
    state = {"douban_id_locked": True, "douban_id_lock_time": library.clock.now()}
    write(library, Change(8, "clear_id", {}, {}, state))
    library.set_cms(8, vod_douban_id=5)
    restore_all(library)
    assert library.row(8)["vod_douban_id"] == 0


def revert_writes(library, dry_run=False):
    chosen = ChangeSelection(batch_id="restored")
    return revert(library.change_log("undo"), chosen, operator="王", reason="现值才对", dry_run=dry_run)


def test_a_restore_can_be_reverted_and_is_not_done_again(library):
    library.set_cms(7, vod_douban_id=5, vod_content="新简介")
    edited = library.all_bytes()
    restore_all(library)
    library.clock.advance(minutes=1)
    state = library.state(7)
    [planned] = revert_writes(library, dry_run=True)
    [undone] = revert_writes(library)
    assert (planned, undone.skipped, undone.to_review) == (undone, (), False)
    assert library.all_bytes() == edited
    assert library.state(7) == state, "the locks stand"
    reported = restore_all(library)
    assert reported == {
        (7, "vod_douban_id"): f"未恢复：变更 {newest(library)['change_id']} 撤销了恢复；请解锁，或重新指定",
    }, "the text that a person put back is the locked one now"
    assert library.all_bytes() == edited


def test_what_was_locked_after_the_restore_stays_when_that_is_reverted(library):
    library.set_cms(7, vod_douban_id=5)
    restore_all(library)
    library.clock.advance(minutes=1)
    library.set_state(7, douban_id_lock_time=library.clock.now())
    [undone] = revert_writes(library)
    assert (undone.restored, undone.skipped, undone.reason) == ((), ("vod_douban_id",), "之后已被锁定")
    assert library.row(7)["vod_douban_id"] == LOCKED
