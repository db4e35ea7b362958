"""What is written down of a launch: good rows and refused ones, once, in chunks, however often and by whomever."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.sync.guards import visit_not_ahead
from douban_pipeline.douban.review.records import record as recording_module
from douban_pipeline.douban.review.records.record import DecisionError
from douban_pipeline.douban.sources.errors import SubjectMismatch
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline_tests.douban.review.world import (
    E,
    asking,
    decide,
    decision_on,
    furnish,
    linked,
    only,
    reported,
    stored,
)
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.stand_ins.replay import ReplayServer

FREE = 90_000_200
"""A subject nobody has."""
LATER = timedelta(days=1)


@pytest.fixture
def library(shared_library: Library) -> Library:
    """The world, anew for each test."""
    return furnish(shared_library)


def telling(rows, *columns):
    return [tuple(row[column] for column in columns) for row in rows]


def test_a_visit_that_ends_while_decisions_wait_to_be_stored_lies_before_the_one_that_is_due(library, monkeypatch):
    """Else a guard stops the runs of the shard: a video that was visited must be visited again later than that."""
    insert, clock, video = recording_module.insert_missing, library.clock, library.tables.video

    def after_a_visit(connection, *args, **kwargs):
        clock.advance(seconds=5)
        visited = {"douban_last_sync_at": clock.now(), "douban_next_sync_at": clock.now() + LATER}
        connection.execute(video.update().where(video.c.vod_id == 4).values(visited))
        clock.advance(seconds=1)
        return insert(connection, *args, **kwargs)

    monkeypatch.setattr(recording_module, "insert_missing", after_a_visit)
    with asking():
        decide(library, decision_on(4, "set_id", FREE))
    [found] = library.query(sa.select(video).where(video.c.vod_id == 4))
    assert found["douban_last_sync_at"] < found["douban_next_sync_at"] <= clock.now()
    with reading(library.engine) as connection:
        assert not list(visit_not_ahead(library.services, connection))


# --- what is written --------------------------------------------------------------------------------------------------


def test_good_rows_are_recorded_and_bad_ones_with_their_reason(library):
    for vod_id in (4, 5, 6, 8):
        library.set_state(vod_id, douban_next_sync_at=None if vod_id == 8 else library.clock.now() + LATER)
    before = library.all_bytes()
    verdict_id = library.query("SELECT verdict_id FROM mac_douban_verdict WHERE vod_id = 4")[0]["verdict_id"]
    with asking() as subjects:
        recording = decide(
            library,
            decision_on(4, "set_id", FREE, lock=True, note="导演一致 "),
            decision_on(404, "set_id", FREE + 1),
            decision_on(6, "lock_intro"),
            decision_on(8, "ignore", days=30),
            decision_on(5, "confirm_top1"),
            decision_on(2**70, "set_id", 2**70, verdict_id=2**70),
            reviewer=" 小王 ",
        )
    assert subjects.asked == [(4, FREE)], "only what is named and not refused anyway"
    assert [item.status for item in recording.items] == [
        *("recorded", "refused", "recorded", "recorded", "refused", "refused")
    ]
    columns = ("vod_id", "shard", "action", "douban_id", "lock", "days", "note", "state", "verdict_id")
    assert sorted(telling(stored(library), *columns), key=str) == sorted(
        [
            (4, 4, "set_id", FREE, True, 0, "导演一致", "pending", verdict_id),
            (404, 20, "set_id", FREE + 1, False, 0, "海报一致", "refused", None),
            (5, 5, "confirm_top1", 0, False, 0, "海报一致", "refused", None),
            (0, 0, "set_id", 0, False, 0, "海报一致", "refused", None),
            (6, 6, "lock_intro", 0, False, 0, "海报一致", "pending", None),
            (8, 8, "ignore", 0, False, 30, "海报一致", "pending", None),
        ],
        key=str,
    )
    now = library.clock.now()
    for row in stored(library):
        assert (row["reviewer"], row["run_id"], row["batch_id"]) == ("小王", "run-1", recording.batch_id)
        assert (row["created_at"], row["run_after"], row["task_id"]) == (now, None, None)
        refused = row["state"] == "refused"
        assert (row["settled_at"], row["pending_key"] is None) == (now if refused else None, refused)
        assert row["checked_at"] == (now if row["vod_id"] == 4 else None)
        if row["vod_id"] in (4, 5, 6, 8):
            found = library.row(row["vod_id"])
            assert row["fingerprint"] == f"{found['vod_douban_id']}:{fingerprint(found)}"[:32]
    assert telling(stored(library, state="refused", vod_id=5), "state_reason") == [("没有候选条目，请改用 set_id",)]
    due = {vod_id: library.state(vod_id)["douban_next_sync_at"] for vod_id in (4, 5, 6, 8)}
    assert due == {4: now, 5: now + LATER, 6: now, 8: now}, "what was recorded is due at once, ignored or not"
    assert library.all_bytes() == before


def test_a_dry_run_records_nothing_at_all(library):
    before = library.states()
    with asking() as subjects:
        recording = decide(library, decision_on(4, "set_id", FREE), decision_on(404, "ignore"), dry_run=True)
    assert [item.status for item in recording.items] == ["checked", "refused"]
    assert subjects.asked == [(4, FREE)], "it is compared all the same"
    assert (stored(library), library.states()) == ([], before)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"reviewer": "  "}, "reviewer: 请填写审核员的名字"),
        ({"reviewer": "Pipeline"}, "reviewer: pipeline 代表自动写入，请填写审核员的名字"),
        ({"reviewer": "王" * 65}, "reviewer: 最多 64 字，现为 65 字"),
        ({"note": "长" * 501}, "note: 最多 500 字，现为 501 字"),
    ],
)
def test_a_launch_that_nobody_signs_records_nothing_and_tells_everything(library, given, sentence):
    with pytest.raises(DecisionError) as caught, asking() as subjects:
        decide(library, decision_on(4, "set_id", FREE), decision_on(404, "ignore"), **given)
    assert caught.value.problems == (
        sentence,
        "decisions 第 2 条（影片 404）：没有这部影片，请把示例换成真实的 vod_id",
    )
    assert (stored(library), subjects.asked) == ([], [])


def test_a_launch_of_a_thousand_nonsense_rows_that_nobody_signs_is_reported_in_short(library):
    with pytest.raises(DecisionError) as caught:
        decide(library, *(decision_on(1000 + number, "ignore") for number in range(60)), reviewer="")
    assert (len(caught.value.problems), caught.value.problems[-1]) == (52, "…… 另有 10 条有误")


def test_an_empty_launch_is_a_mistake(library):
    with pytest.raises(DecisionError, match=r"^decisions: 至少填写一条决定$"):
        decide(library)


def test_rows_are_reported_in_the_order_written_whatever_is_settled_first(library):
    with asking():
        recording = decide(
            library, decision_on(5, "sync_now"), decision_on(404, "ignore"), decision_on(5, "set_id", FREE)
        )
    assert [item.action for item in recording.items] == ["sync_now", "ignore", "set_id"]
    assert [item.where for item in recording.items] == [f"decisions 第 {number} 条" for number in (1, 2, 3)]
    # The link is recorded first: whoever needs one comes after it.
    assert telling(stored(library, state="pending"), "action") == [("set_id",), ("sync_now",)]


# --- the same again, and newer ones -----------------------------------------------------------------------------------


def test_the_same_launch_again_changes_nothing_that_waits(library):
    requested = [
        decision_on(4, "set_id", FREE),
        decision_on(4, "lock_intro"),
        decision_on(6, "ignore", days=3),
        decision_on(6, "ignore", days=3),
    ]
    with asking() as subjects:
        first = decide(library, *requested)
        rows, subjects.asked = stored(library), []
        library.clock.advance(minutes=1)
        again = decide(library, *requested, reviewer="小李", run_id="run-2")
    assert [item.status for item in first.items] == ["recorded", "recorded", "recorded", "known"]
    assert reported(again) == [
        (vod_id, "known", f"已有相同的决定（小王，批次 {first.batch_id}）") for vod_id in (4, 4, 6, 6)
    ]
    assert (stored(library), subjects.asked) == (rows, [])


def test_a_decision_that_a_task_carries_out_is_known_too(library):
    decide(library, decision_on(6, "sync_now"))
    library.execute("UPDATE mac_douban_decision SET state = 'queued', pending_key = NULL, task_id = 1")
    assert only(decide(library, decision_on(6, "sync_now"))).status == "known"
    # Once it is done, the same wish is a new one.
    library.execute("UPDATE mac_douban_decision SET state = 'applied'")
    assert only(decide(library, decision_on(6, "sync_now"))).status == "recorded"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (decision_on(4, "ignore"), decision_on(4, "confirm_top1")),
        (decision_on(4, "set_id", FREE), decision_on(4, "set_id", FREE + 1)),
        (decision_on(4, "set_id", FREE), decision_on(4, "set_id", FREE, lock=True)),
        (decision_on(4, "set_id", FREE), decision_on(4, "set_id", FREE, accept_conflicts=True)),
        (decision_on(4, "ignore", days=30), decision_on(4, "ignore", days=180)),
        (decision_on(7, "unlock_id"), decision_on(7, "replace_and_lock", FREE)),
        (decision_on(6, "rematch"), decision_on(6, "sync_now")),
        (decision_on(6, "ignore"), decision_on(6, "clear_id")),
    ],
    ids=lambda one: one.action,
)
def test_a_newer_decision_takes_the_place_of_one_it_contradicts(library, older, newer):
    with asking():
        decide(library, older, decision_on(5, "ignore"))
        library.clock.advance(minutes=1)
        assert only(decide(library, newer, reviewer="小李")).status == "recorded"
    replaced, current = stored(library, vod_id=older.vod_id)
    assert (replaced["state"], replaced["state_reason"]) == ("refused", "被更新的决定取代")
    assert (replaced["settled_at"], replaced["pending_key"]) == (library.clock.now(), None)
    assert (current["state"], current["reviewer"]) == ("pending", "小李")
    assert telling(stored(library, vod_id=5), "state") == [("pending",)]


def test_decisions_about_different_things_stand_together(library):
    with asking():
        for one in (
            decision_on(6, "sync_now"),
            decision_on(6, "lock_id"),
            decision_on(6, "lock_intro"),
            decision_on(6, "set_id", FREE),
        ):
            assert only(decide(library, one)).status == "recorded"
    assert Counter(row["state"] for row in stored(library)) == {"pending": 4}


def test_what_is_so_is_to_be_decided_when_something_else_waits(library):
    # 15 is linked by a person; somebody cleared it a moment ago, and that was a mistake.
    decide(library, decision_on(15, "unlock_id"))
    library.set_state(15, douban_id_locked=False)
    decide(library, decision_on(15, "clear_id"))
    with asking():
        assert only(decide(library, decision_on(15, "set_id", 90_000_115))).status == "recorded"
    assert telling(stored(library), "action", "state") == [
        ("unlock_id", "pending"),
        ("clear_id", "refused"),
        ("set_id", "pending"),
    ]


def test_what_was_decided_about_other_facts_is_decided_again(library):
    with asking():
        decide(library, decision_on(5, "set_id", FREE))
        library.set_cms(5, vod_year="1999")
        assert only(decide(library, decision_on(5, "set_id", FREE))).status == "recorded"
    old, new = stored(library)
    assert (old["state"], new["state"]) == ("refused", "pending")
    assert (
        new["fingerprint"].partition(":")[2] == fingerprint(library.row(5))[:30] != old["fingerprint"].partition(":")[2]
    )


def test_a_waiting_link_is_a_link_to_what_comes_after_it(library):
    with asking():
        assert only(decide(library, decision_on(5, "lock_id"))).status == "refused"
        decide(library, decision_on(5, "set_id", FREE))
        assert only(decide(library, decision_on(5, "lock_id"))).status == "recorded"
        decide(library, decision_on(6, "clear_id"))
        assert only(decide(library, decision_on(6, "lock_id"))).status == "refused"


def test_a_released_choice_is_no_news_but_one_that_binds_is(library):
    for outcome in ("already", "checked"):
        for action in ("clear_id", "unlock_id"):
            assert only(decide(library, decision_on(5, action), dry_run=True)).status == outcome
        # It was applied, and somebody emptied the id in the CMS's own form since: the choice still binds.
        with asking():
            decide(library, decision_on(5, "set_id", FREE))
        library.execute("UPDATE mac_douban_decision SET state = 'applied', pending_key = NULL")


def test_a_subject_that_waits_for_another_video_is_not_given_away_unnoticed(library):
    with asking():
        decide(library, decision_on(5, "set_id", FREE))
        refused = only(decide(library, decision_on(6, "set_id", FREE)))
        assert refused.reason == (
            f"待执行的决定把条目 {FREE} 给了影片 5《影片5》；请核对；确认无误请加 accept_conflicts: true"
        )
        assert only(decide(library, decision_on(6, "set_id", FREE, accept_conflicts=True))).status == "recorded"


def test_many_videos_of_one_subject_are_counted_not_listed(library):
    for vod_id in (4, 5, 8, 12, 16):
        linked(library, vod_id, 90_000_115)
    with asking():
        sentence = only(decide(library, decision_on(6, "set_id", 90_000_115), dry_run=True)).reason
        own = only(decide(library, decision_on(4, "set_id", 90_000_115, accept_conflicts=True), dry_run=True)).reason
    assert sentence.startswith("条目 90000115 已关联到影片 4《影片4》、影片 16《影片16》 等 6 部影片；")
    assert own == "已接受：条目 90000115 已关联到影片 16《影片16》 等 5 部影片", "it does not count as another"


def test_videos_that_are_gone_hold_no_subject(library):
    library.set_cms(7, vod_recycle_time=1)
    library.execute("DELETE FROM mac_vod WHERE vod_id = 13")
    library.set_state(6, douban_review_status="REVIEW")
    with asking():
        recording = decide(
            library,
            decision_on(4, "set_id", 90_000_104),
            decision_on(5, "set_id", E),
            decision_on(12, "set_id", 90_000_103),
        )
    assert {item.status for item in recording.items} == {"recorded"}


def test_intros_are_ordered_where_they_are_written_at_all(shared_library):
    library = furnish(
        shared_library, ai_intros=True, openrouter_api_key="k", included_type_ids="6", excluded_type_ids=""
    )
    assert only(decide(library, decision_on(6, "redo_intro"), dry_run=True)).status == "checked"
    assert (
        only(decide(library, decision_on(8, "redo_intro"), dry_run=True)).reason
        == "影片没有已确认的豆瓣关联，请先用 confirm_top1、choose 或 set_id 指定"
    )
    library.set_state(6, type_id=7)
    for action in ("redo_intro", "sync_now"):
        assert only(decide(library, decision_on(6, action), dry_run=True)).reason.startswith("分类 7 不在处理范围内")


# --- subjects ---------------------------------------------------------------------------------------------------------


def test_the_time_for_asking_is_limited(library, monkeypatch):
    def slowly(services, row, douban_id):
        library.clock.advance(seconds=100)
        return ""

    monkeypatch.setattr(recording_module, "conflicts_of", slowly)
    recording = decide(library, *(decision_on(vod_id, "set_id", FREE + vod_id) for vod_id in (4, 5, 6, 8, 12)))
    assert [item.unchecked for item in recording.items] == [False, False, False, True, True], "240 seconds"
    assert [item.status for item in recording.items] == ["recorded"] * 5
    assert recording.items[-1].reason == "条目尚未核对，执行时先核对：本次核对的时间已用完"
    assert [row["checked_at"] is None for row in stored(library)] == [False, False, False, True, True]


def test_a_closed_gate_is_not_waited_for(shared_library):
    with ReplayServer([]) as upstream:
        library = furnish(shared_library, douban_url=upstream.douban_url, douban_requests_per_minute=60_000)
        library.services.gate.open("douban", library.clock.now() + LATER, "测试")
        item = only(decide(library, decision_on(4, "set_id", FREE)))
        assert upstream.requests.count("douban") == 0
    assert (item.status, item.unchecked) == ("recorded", True)
    assert item.reason.startswith("条目尚未核对，执行时先核对：douban: ")
    assert telling(stored(library), "state", "checked_at") == [("pending", None)]


def test_an_answer_about_another_subject_is_not_waited_for(library):
    with asking({FREE: SubjectMismatch("douban", "asked for 90000200, answered 90000201")}):
        item = only(decide(library, decision_on(4, "set_id", FREE, accept_conflicts=True)))
    assert (item.status, item.reason) == (
        "refused",
        "核对条目 90000200 时得到另一个条目（douban: asked for 90000200, answered 90000201），"
        "它可能已并入别的条目，请改用新的 ID",
    )


def test_progress_is_reported_as_rows_are_settled(library):
    heard: list[int] = []
    with asking():
        decide(
            library,
            decision_on(6, "lock_intro"),
            decision_on(4, "set_id", FREE),
            decision_on(404, "ignore"),
            progress=heard.append,
        )
    assert heard == [0, 1, 2, 3]
