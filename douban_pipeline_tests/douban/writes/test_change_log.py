"""Every write to the CMS is logged before it happens, and happens only where nothing forbids it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import Change, decode
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import build_library, video

LINK = {"vod_douban_id": 1292052}


def link(vod_id=7, **given):
    change = {"action": "link", "old": {"vod_douban_id": 0}, "new": LINK, "state": LINK, "reason": "片名与导演一致"}
    return Change(vod_id, **{**change, **given})


def synced(column, old, new, **given):
    return Change(7, "sync", {column: old}, {column: new}, **given)


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(7), video(8)])


def test_a_write_leaves_the_row_the_log_and_the_state_in_agreement(library):
    library.clock.advance(minutes=1)
    state = {
        "vod_douban_id": 1292052,
        "douban_review_status": ReviewStatus.CONFIRMED,
        "douban_id_source": "auto",
        "douban_id_confidence": 96.5,
        "douban_last_sync_at": library.clock.now(),
        "douban_id_locked": True,
    }
    change = link(state=state, score=96.5, task_id=3, verdict_id=4, snapshot_id=5)
    log = library.change_log("run-9", batch_id="batch-2")
    [outcome] = log.write([change])

    assert (outcome.state, outcome.reason) == (ChangeState.APPLIED, "")
    assert library.row(7)["vod_douban_id"] == 1292052
    assert library.row(8)["vod_douban_id"] == 0
    stored = library.state(7)
    assert {name: stored[name] for name in state} == state
    [row] = library.log()
    assert row["change_id"] == outcome.change_id
    now = START + timedelta(minutes=1)
    assert (row["state"], row["prepared_at"], row["applied_at"]) == ("applied", now, now)
    assert (row["old_values"], row["new_values"]) == ({"vod_douban_id": 0}, LINK)
    before = decode(row["state_old"])
    assert before["douban_review_status"] == "NOT_FOUND"
    assert before["douban_id_locked"] is False
    assert before["douban_last_sync_at"] is None
    assert decode(row["state_new"]) == state
    assert (row["run_id"], row["batch_id"], row["rule_version"], row["operator"]) == (
        "run-9",
        "batch-2",
        "test",
        "pipeline",
    )
    assert (row["score"], row["task_id"], row["verdict_id"], row["snapshot_id"]) == (96.5, 3, 4, 5)
    assert (row["reason"], row["shard"]) == ("片名与导演一致", 7)


def test_the_log_knows_of_a_write_before_the_cms_does(library):
    seen = []

    class Watched(ChangeLog):
        def _apply(self, change, change_id):
            rows = library.query("SELECT change_id, state FROM mac_douban_log")
            seen.append((rows, library.row(7)["vod_douban_id"]))
            outcome = super()._apply(change, change_id)
            seen.append((library.query("SELECT change_id, state FROM mac_douban_log"), library.row(7)["vod_douban_id"]))
            return outcome

    [outcome] = library.change_log(kind=Watched).write([link()])
    prepared = [{"change_id": outcome.change_id, "state": "prepared"}]
    assert seen == [(prepared, 0), (prepared, 1292052)]


@pytest.mark.parametrize(
    ("column", "current", "read"),
    [
        ("vod_name", "Léon", "Leon"),
        ("vod_name", "Léon", "léon"),
        ("vod_name", "Leon ", "Leon"),
        ("vod_name", "Leon", "Leon "),
        ("vod_actor", "宮崎駿", "宫崎骏"),
        ("vod_content", "<p>ABC</p>", "<p>abc</p>"),
        ("vod_year", "", "0"),
        ("vod_douban_score", Decimal("8.1"), Decimal("8.2")),
        ("vod_total", 12, 13),
    ],
)
def test_a_row_that_differs_in_a_single_byte_is_left_alone(library, column, current, read):
    library.set_cms(7, **{column: current})
    before = library.all_bytes()
    new = "新" if isinstance(read, str) else type(read)(9)
    [outcome] = library.change_log().write([synced(column, read, new, state={"douban_id_source": "auto"})])
    assert outcome.state is ChangeState.REFUSED
    assert outcome.reason == f"读取之后 CMS 中的值已被改动：{column}"
    assert library.all_bytes() == before
    assert library.state(7)["douban_id_source"] == ""
    [row] = library.log()
    assert (row["state"], row["applied_at"], row["state_reason"]) == ("refused", None, outcome.reason)


@pytest.mark.parametrize("known", [None, 90.5])
@pytest.mark.parametrize("current", [None, 90.5])
def test_each_write_of_a_call_is_held_to_its_own_values(library, known, current):
    """Both go through one statement if their values are alike in what is NULL, and through two if not."""
    library.set_state(7, douban_id_source="manual", douban_id_confidence=None)
    library.set_state(8, douban_id_source="manual", douban_id_confidence=current)
    seen = {"douban_id_source": "manual", "douban_id_confidence": None}
    other = {**seen, "douban_id_confidence": known}
    first, second = library.change_log().write(
        [link(7, new={"vod_douban_id": 5}, seen=seen), link(8, new={"vod_douban_id": 6}, seen=other)]
    )
    agree = known == current
    assert (first.state, second.state) == (ChangeState.APPLIED, ChangeState.APPLIED if agree else ChangeState.REFUSED)
    assert (library.row(7)["vod_douban_id"], library.row(8)["vod_douban_id"]) == (5, 6 if agree else 0)


ID, SYNOPSIS, YEAR = ({"vod_douban_id": 5}, {"vod_content": "<p>新</p>"}, {"vod_year": "2023"})


@pytest.mark.parametrize(
    ("lock", "new", "refusal"),
    [
        ({"douban_id_locked": True}, ID, "豆瓣 ID 已锁定"),
        ({"douban_id_locked": True}, YEAR, ""),
        ({"douban_id_locked": True}, SYNOPSIS, ""),
        ({"intro_locked": True}, SYNOPSIS, "简介已锁定"),
        ({"intro_locked": True}, {"vod_blurb": "新"}, "简介已锁定"),
        ({"intro_locked": True}, ID, ""),
        ({"douban_review_status": "IGNORED"}, YEAR, "影片已被忽略"),
        ({"vod_lock": 1}, YEAR, "影片已在 CMS 中锁定（vod_lock）"),
    ],
    ids=str,
)
def test_our_locks_hold_against_automation_and_the_cms_s_against_everybody_who_does_not_override_it(
    library, lock, new, refusal
):
    (library.set_cms if "vod_lock" in lock else library.set_state)(7, **lock)
    library.set_cms(8, vod_lock=0)
    old = {column: library.row(7)[column] for column in new}
    [outcome] = library.change_log().write([Change(7, "sync", old, new)])
    assert (outcome.state, outcome.reason) == ((ChangeState.REFUSED, refusal) if refusal else (ChangeState.APPLIED, ""))
    current = library.row(7)
    assert {column: current[column] for column in new} == (old if refusal else new)

    change = Change(7, "set_id", {c: current[c] for c in new}, new, operator="王", automatic=False)
    if "vod_lock" in lock:
        [by_hand] = library.change_log().write([change])
        assert (by_hand.state, by_hand.reason) == (ChangeState.REFUSED, refusal)
    [by_hand] = library.change_log().write([replace(change, override_cms_lock="vod_lock" in lock)])
    assert by_hand.state is ChangeState.APPLIED
    assert {column: library.row(7)[column] for column in new} == new


def test_a_lock_set_after_the_last_look_still_holds(library):
    class LockedMeanwhile(ChangeLog):
        def _apply(self, change, change_id):
            library.set_state(7, douban_id_locked=True)
            return super()._apply(change, change_id)

    [outcome] = library.change_log(kind=LockedMeanwhile).write([link()])
    assert (outcome.state, outcome.reason) == (ChangeState.REFUSED, "豆瓣 ID 已锁定")
    assert library.row(7)["vod_douban_id"] == 0


def test_a_deleted_video_is_refused(library):
    library.execute("DELETE FROM mac_vod WHERE vod_id = 7")
    [outcome] = library.change_log().write([link()])
    assert (outcome.state, outcome.reason) == (ChangeState.REFUSED, "影片已从 CMS 中删除")


@pytest.mark.parametrize(
    "bad",
    [
        synced("vod_play_url", "a", "b"),
        synced("vod_time", 1, 2),
        synced("vod_remarks", "HD", "TS"),
        synced("vod_lock", 0, 1),
        synced("vod_id", 7, 9),
        Change(7, "sync", {"vod_year": "2024"}, {}),
        Change(7, "sync", {}, {"vod_year": "2024"}),
    ],
    ids=lambda change: str(sorted({*change.new, *change.old})),
)
def test_a_column_that_is_not_ours_stops_the_call_before_anything_is_written(library, bad):
    before = library.all_bytes()
    with pytest.raises(ValueError, match="video 7: "):
        library.change_log().write([link(8), bad])
    assert library.all_bytes() == before
    assert library.log() == []


def test_two_changes_of_a_video_are_two_calls(library):
    with pytest.raises(ValueError, match="video 7: two changes in one call"):
        library.change_log().write([link(7), link(8), link(7)])
    assert library.log() == []


def test_a_write_that_changes_state_alone_touches_no_cms_row(library):
    before = library.all_bytes()
    library.set_state(7, douban_id_locked=True)
    change = Change(7, "unlock_id", {}, {}, {"douban_id_locked": False}, operator="王", automatic=False)
    [outcome] = library.change_log().write([change])
    assert outcome.state is ChangeState.APPLIED
    assert library.state(7)["douban_id_locked"] is False
    assert library.all_bytes() == before


VALUES = {
    "vod_name": "Ocean&#039;s &quot;11&quot; \\ % _ :x {y} %(z)s",
    "vod_content": "<p>" + "长" * 30_000 + "\r\n\t</p>",
    "vod_actor": "Penélope Cruz,ﾊﾝｶｸ,한국,עברית",
    "vod_douban_score": Decimal("9.7"),
    "vod_score": Decimal("0.0"),
    "vod_total": 16_777_215,
    "vod_douban_id": 4_294_967_295,
    "vod_year": "0",
    "vod_sub": " 前后有空格 ",
}


@pytest.mark.parametrize("column", VALUES)
def test_values_come_back_as_they_were_written(library, column):
    value, before = VALUES[column], library.row(7)[column]
    there = synced(column, before, value)
    back = synced(column, value, before)
    outcomes = [library.change_log().write([change])[0] for change in (there, back, there)]
    assert [outcome.reason for outcome in outcomes] == ["", "", ""]
    assert library.row(7)[column] == value
    assert [decode(row["new_values"])[column] for row in library.log()] == [value, before, value]


def test_the_log_keeps_characters_that_the_cms_cannot(library):
    [outcome] = library.change_log().write([link(reason="𠮷野家 🎬", state={"douban_review_reason": "🎬"})])
    assert outcome.state is ChangeState.APPLIED
    assert library.log()[0]["reason"] == "𠮷野家 🎬"
    assert library.state(7)["douban_review_reason"] == "🎬"


TOO_MUCH = {"vod_name": "电影🎬", "vod_lang": "一二三四五六七八九十十一", "vod_total": 99_999_999}


@pytest.mark.mariadb
@pytest.mark.parametrize("mode", ["", "STRICT_TRANS_TABLES"])
def test_a_value_that_does_not_fit_is_refused_whatever_the_mode_and_the_rest_goes_on(mariadb_url, mode):
    with build_library(mariadb_url, [video(vod_id) for vod_id in (7, 8, 9, 10)]) as library:

        @sa.event.listens_for(library.engine, "connect", insert=True)
        def _servers_mode(connection, _record):
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_mode = %s", (mode,))

        library.engine.dispose()
        before = library.row(7)
        changes = [
            Change(vod_id, "sync", {column: before[column]}, {column: value})
            for vod_id, (column, value) in enumerate(TOO_MUCH.items(), start=7)
        ]
        outcomes = library.change_log().write([*changes, link(10)])
        assert [outcome.state for outcome in outcomes] == [ChangeState.REFUSED] * 3 + [ChangeState.APPLIED]
        for outcome, (column, _) in zip(outcomes, TOO_MUCH.items(), strict=False):
            assert column in outcome.reason
            assert library.row(outcome.change.vod_id)[column] == before[column]
        assert [row["state"] for row in library.log()] == ["refused"] * 3 + ["applied"]


@pytest.mark.parametrize(("form", "prefix"), [("head", ""), ("classic", "x_")])
def test_both_forms_of_the_cms_and_any_prefix_are_written_alike(database_url, form, prefix):
    with build_library(database_url, [video(7)], form=form, prefix=prefix) as library:
        [outcome] = library.change_log().write([link()])
        assert outcome.state is ChangeState.APPLIED
        assert library.row(7)["vod_douban_id"] == 1292052
        assert library.state(7)["vod_douban_id"] == 1292052


def test_many_changes_are_each_settled_on_their_own(sqlite_url):
    with build_library(sqlite_url, [video(vod_id) for vod_id in range(1, 251)]) as library:
        for vod_id in range(10, 251, 10):
            library.set_cms(vod_id, vod_douban_id=1)
        outcomes = library.change_log().write([link(vod_id) for vod_id in range(1, 251)])
        assert [outcome.change.vod_id for outcome in outcomes] == list(range(1, 251))
        refused = [outcome.change.vod_id for outcome in outcomes if outcome.state is ChangeState.REFUSED]
        assert refused == list(range(10, 251, 10))
        assert [row["vod_id"] for row in library.log() if row["state"] == "refused"] == refused
        assert {library.state(vod_id)["vod_douban_id"] for vod_id in range(1, 10)} == {1292052}


def test_of_two_runs_that_write_the_same_row_exactly_one_wins(library):
    outcomes, barrier = [], threading.Barrier(4)

    def run(douban_id):
        log = library.change_log(f"run-{douban_id}")
        barrier.wait(timeout=30)
        for vod_id in (7, 8):
            new = {"vod_douban_id": douban_id}
            outcomes.extend(log.write([link(vod_id, new=new, state=new)]))

    threads = [threading.Thread(target=run, args=(100 + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for vod_id in (7, 8):
        winners = [
            outcome.change.new
            for outcome in outcomes
            if outcome.change.vod_id == vod_id and outcome.state is ChangeState.APPLIED
        ]
        assert winners == [{"vod_douban_id": library.row(vod_id)["vod_douban_id"]}]
        assert winners == [{"vod_douban_id": library.state(vod_id)["vod_douban_id"]}]
    assert sorted(row["state"] for row in library.log()) == ["applied"] * 2 + ["refused"] * 6


def test_a_persons_decision_between_the_update_and_its_record_stays(library):
    """Otherwise a locked id would be ours again, and the next restore would write it over the person's."""
    chosen = {"vod_douban_id": 26752088}
    decided = {**chosen, "douban_id_source": "person", "douban_id_locked": True}

    class Slow(ChangeLog):
        def _record(self, outcomes):
            library.clock.advance(seconds=1)
            person = Change(7, "replace_and_lock", LINK, chosen, decided, operator="王", automatic=False)
            library.change_log("lane").write([person])
            super()._record(outcomes)

    state = {**LINK, "douban_id_source": "auto", "douban_id_confidence": 96.5}
    [outcome] = library.change_log("slow", kind=Slow).write([link(state=state)])
    assert outcome.state is ChangeState.APPLIED
    assert library.row(7)["vod_douban_id"] == 26752088
    stored = library.state(7)
    assert {name: stored[name] for name in decided} == decided
    assert stored["douban_id_confidence"] == 96.5, "what the person did not decide on is recorded"


def test_an_ignore_that_was_prepared_first_and_recorded_in_between_stays(library):
    ignored = {"douban_review_status": ReviewStatus.IGNORED}
    lane = library.change_log("lane")
    change = Change(7, "ignore", {}, {}, ignored, operator="王")
    [change_id] = lane._prepare([change])
    library.clock.advance(seconds=1)

    class Slow(ChangeLog):
        def _record(self, outcomes):
            library.clock.advance(seconds=1)
            lane._record([lane._apply(change, change_id)])
            super()._record(outcomes)

    state = {**LINK, "douban_review_status": ReviewStatus.CONFIRMED}
    [outcome] = library.change_log("slow", kind=Slow).write([link(state=state)])
    assert outcome.state is ChangeState.APPLIED
    stored = library.state(7)
    assert (stored["vod_douban_id"], stored["douban_review_status"]) == (1292052, ReviewStatus.IGNORED)


@pytest.fixture
def unique_names(library):
    """A key that some sites add to the CMS's table."""
    library.execute("CREATE UNIQUE INDEX site_names ON mac_vod (type_id, vod_name)")
    yield
    library.execute("DROP INDEX site_names" + (" ON mac_vod" if library.mysql else ""))


@pytest.mark.usefixtures("unique_names")
def test_a_unique_key_of_the_sites_own_refuses_one_write_and_no_other(library):
    old = {vod_id: library.row(vod_id)["vod_name"] for vod_id in (7, 8)}
    changes = [
        Change(7, "sync", {"vod_name": old[7]}, {"vod_name": old[8]}),
        Change(8, "sync", {"vod_content": library.row(8)["vod_content"]}, {"vod_content": "新"}),
    ]
    refused, applied = library.change_log().write(changes)
    assert (refused.state, applied.state) == (ChangeState.REFUSED, ChangeState.APPLIED)
    assert "CMS 容纳不下要写入的值" in refused.reason
    assert library.row(7)["vod_name"] == old[7]
    assert [row["state"] for row in library.log()] == ["refused", "applied"]
