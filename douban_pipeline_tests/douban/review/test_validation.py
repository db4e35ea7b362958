"""Every row that cannot be recorded is refused with a sentence that says why and what to do instead."""

from __future__ import annotations

import pytest

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.review.world import (
    A,
    B,
    C,
    D,
    E,
    asking,
    decide,
    decision_on,
    furnish,
    only,
    reported,
)
from douban_pipeline_tests.harness.fixtures.library import Library

ACTIONS = {str(action) for action in DecisionAction}
NAMING = {"set_id", "replace_and_lock"}
LIST = "现有候选：1. 90000101《条目1》（2021）、2. 90000102《条目2》（2021）、3. 90000103《条目3》（2021）"
CHECK = "请核对；确认无误请加 accept_conflicts: true"
NO_ID = "影片没有豆瓣 ID，请先用 confirm_top1、choose 或 set_id 指定"
NO_LINK = "影片没有已确认的豆瓣关联，请先用 confirm_top1、choose 或 set_id 指定"
FREE = 90_000_200
"""A subject nobody has."""

ANSWERS = {
    90_000_404: SubjectMissing("douban", "no such subject"),
    90_000_500: SourceUnavailable("douban", "HTTP 500"),
    90_000_777: "与《别的片》（1999）对不上：年份冲突：差 22 年；导演冲突：本地 甲 / 豆瓣 乙",
}


@pytest.fixture(scope="module")
def library(shared_library: Library) -> Library:
    """The world; cases only look at it."""
    return furnish(shared_library)


def dry(library: Library, *requested):
    with asking(ANSWERS) as subjects:
        recording = decide(library, *requested, dry_run=True)
    return recording, subjects


BY_ITSELF = [
    *(
        (decision_on(4, action, A), f"{action} 不使用 douban_id，请改为 0，或改用 set_id")
        for action in sorted(ACTIONS - NAMING - {"choose", "redo_intro"})
    ),
    *((decision_on(4, action), f"{action} 需要 douban_id（10000 至 4294967295），现为 0") for action in sorted(NAMING)),
    (decision_on(4, "set_id", 9999), "set_id 需要 douban_id（10000 至 4294967295），现为 9999"),
    (decision_on(4, "set_id", 2**32), "set_id 需要 douban_id（10000 至 4294967295），现为 4294967296"),
    (decision_on(4, "set_id", -(2**70)), f"set_id 需要 douban_id（10000 至 4294967295），现为 {-(2**70)}"),
    *(
        (
            decision_on(4, action, FREE if action in NAMING else 0, rank=1),
            f"{action} 不使用 rank，请改为 0，或改用 choose",
        )
        for action in sorted(ACTIONS - {"choose", "redo_intro"})
    ),
    (decision_on(4, "choose"), "choose 需要 rank（第几个候选）或 douban_id（候选中的条目），请填写其一"),
    (decision_on(4, "choose", rank=-1), "rank 从 1 开始，现为 -1"),
    *(
        (
            decision_on(4, action, FREE if action in NAMING else 0, days=30, rank=action == "choose"),
            f"{action} 不使用 days，请改为 0",
        )
        for action in sorted(ACTIONS - {"ignore", "redo_intro"})
    ),
    (decision_on(4, "ignore", days=-3), "days 需在 0 至 36500 之间（0 为永久忽略），现为 -3"),
    (decision_on(4, "ignore", days=36_501), "days 需在 0 至 36500 之间（0 为永久忽略），现为 36501"),
    *(
        (decision_on(4, action, lock=True), f"{action} 不能同时锁定，请把 lock 改为 false")
        for action in ("unlock_id", "unlock_intro", "rematch")
    ),
    (decision_on(4, "set_id", FREE, verdict_id=-1), "verdict_id 不能为负数，现为 -1；不清楚时请填 0"),
    (decision_on(4, "ignore", note="长" * 501), "note 最多 500 字，现为 501 字，请缩短"),
    (decision_on(6, "redo_intro"), "AI 简介未开启：请先设置 DOUBAN_PIPELINE_AI_INTROS=true 和 OPENROUTER_API_KEY"),
    # All of it at once.
    (
        decision_on(404, "ignore", 7, rank=2, days=-1),
        "ignore 不使用 douban_id，请改为 0，或改用 set_id；ignore 不使用 rank，请改为 0，或改用 choose；"
        "days 需在 0 至 36500 之间（0 为永久忽略），现为 -1；没有这部影片，请把示例换成真实的 vod_id",
    ),
]

ABOUT_THE_VIDEO = [
    *(
        (decision_on(vod_id, "ignore"), "没有这部影片，请把示例换成真实的 vod_id")
        for vod_id in (0, -4, 404, 2**32, 2**70)
    ),
    (decision_on(9, "ignore"), "影片在 CMS 的回收站里，请先在 CMS 中恢复它，或去掉这一条"),
    (decision_on(10, "rematch"), "影片已从 CMS 中删除，请去掉这一条"),
    (decision_on(11, "ignore"), "影片刚加入 CMS，流水线还没有收录，请过几分钟再试"),
]

ABOUT_CANDIDATES = [
    (decision_on(5, "confirm_top1"), "没有候选条目，请改用 set_id"),
    (decision_on(16, "confirm_top1"), "没有候选条目，请改用 set_id"),
    (decision_on(16, "choose", rank=1), "没有候选条目，请改用 set_id"),
    (decision_on(4, "choose", rank=7), f"没有第 7 个候选；{LIST}"),
    (decision_on(4, "choose", FREE), f"条目 90000200 不在候选中，要用它请改用 set_id；{LIST}"),
    (decision_on(4, "choose", C, rank=2), f"第 2 个候选不是 90000103，请只填 rank 或 douban_id；{LIST}"),
    *(
        (one, "候选已过时：影片资料在判定之后改变过，请等重新判定（或用 rematch）后再决定，或核对后改用 set_id")
        for one in (decision_on(12, "confirm_top1"), decision_on(12, "choose", rank=1))
    ),
    (
        decision_on(5, "set_id", FREE, verdict_id=77),
        "候选已过时：填写的判定是 77，最新的是 （无），请按最新的审核单重新决定",
    ),
]

LOCKED = [
    *(
        (one, "豆瓣 ID 90000104 已锁定，要换成 90000105 请用 replace_and_lock，或先用 unlock_id 解锁")
        for one in (decision_on(7, "choose", rank=2), decision_on(7, "set_id", E, accept_conflicts=True))
    ),
    (decision_on(7, "clear_id"), "豆瓣 ID 90000104 已锁定，请先用 unlock_id 解锁"),
    (decision_on(7, "rematch"), "豆瓣 ID 90000104 已锁定，不会重新匹配，请先用 unlock_id 解锁"),
]

UNLINKED = [
    *((decision_on(vod_id, "lock_id"), NO_ID) for vod_id in (4, 5, 8)),
    *((decision_on(vod_id, "sync_now"), NO_LINK) for vod_id in (4, 5, 8, 13)),
    *(
        (one, "CMS 中的豆瓣 ID 已由 90000106 变为 90000999，请核对后用 set_id 指定")
        for one in (
            decision_on(14, "sync_now"),
            decision_on(14, "lock_id"),
            decision_on(14, "clear_id"),
            decision_on(14, "ignore", lock=True),
        )
    ),
]

ABOUT_THE_SUBJECT = [
    (decision_on(4, "set_id", 90_000_404), "豆瓣没有条目 90000404，请核对 douban_id"),
    (decision_on(4, "set_id", 90_000_404, accept_conflicts=True), "豆瓣没有条目 90000404，请核对 douban_id"),
    (
        decision_on(4, "replace_and_lock", 90_000_777),
        f"条目 90000777 与《别的片》（1999）对不上：年份冲突：差 22 年；导演冲突：本地 甲 / 豆瓣 乙；{CHECK}",
    ),
    (decision_on(4, "set_id", D), f"条目 90000104 已关联到影片 7《影片7》；{CHECK}"),
    (decision_on(4, "choose", rank=3), f"条目 90000103 已关联到影片 6《影片6》；{CHECK}"),
]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [*BY_ITSELF, *ABOUT_THE_VIDEO, *ABOUT_CANDIDATES, *LOCKED, *UNLINKED, *ABOUT_THE_SUBJECT],
    ids=lambda value: None if isinstance(value, str) else f"{value.vod_id}-{value.action}",
)
def test_what_is_refused(library, asked, sentence):
    recording, _ = dry(library, asked)
    assert reported(recording) == [(asked.vod_id, "refused", sentence)]
    title = f"《影片{asked.vod_id}》" if asked.vod_id in {*range(4, 20)} - {10} else ""
    assert only(recording).sentence == f"decisions 第 1 条（影片 {asked.vod_id}{title}）：{sentence}"


GOOD = [
    (decision_on(4, "confirm_top1"), A),
    (decision_on(4, "choose", rank=2), B),
    (decision_on(4, "choose", B), B),
    (decision_on(4, "choose", B, rank=2), B),
    (decision_on(17, "confirm_top1"), B),  # an old verdict without a fingerprint
    (decision_on(12, "set_id", FREE), FREE),  # names a subject: no candidate is stale
    (decision_on(4, "set_id", FREE, lock=True), FREE),
    (decision_on(7, "set_id", D), D),  # what is locked is what is asked for; a person says so now
    (decision_on(7, "replace_and_lock", FREE), FREE),
    (decision_on(8, "set_id", FREE), FREE),  # ends being ignored
    (decision_on(8, "rematch"), 0),
    (decision_on(8, "ignore", days=30), 0),  # not for ever any more
    (decision_on(14, "set_id", FREE), FREE),
    # About the id that stands: it is noted, and another is another matter.
    (decision_on(6, "clear_id", lock=True), C),
    (decision_on(4, "clear_id"), 0),  # takes it out of review
    (decision_on(4, "ignore", days=36_500), 0),
    (decision_on(6, "sync_now", lock=True), C),
    (decision_on(6, "lock_id"), C),
    (decision_on(13, "lock_id"), E),  # in review, and meant to stay
    (decision_on(7, "unlock_id"), 0),
    (decision_on(5, "lock_intro"), 0),
    (decision_on(15, "unlock_intro"), 0),
    (decision_on(5, "rematch"), 0),
    # Meaningless, and harmless.
    (decision_on(5, "lock_intro", lock=True, accept_conflicts=True, verdict_id=99), 0),
]


@pytest.mark.parametrize(("asked", "douban_id"), GOOD, ids=lambda value: getattr(value, "action", None))
def test_what_is_not_refused(library, asked, douban_id):
    recording, _ = dry(library, asked)
    item = only(recording)
    assert (item.status, item.douban_id, item.reason, item.unchecked) == ("checked", douban_id, "", False)


SO_ALREADY = [
    decision_on(15, "set_id", 90_000_115),
    decision_on(15, "set_id", 90_000_115, lock=True),
    decision_on(15, "replace_and_lock", 90_000_115),
    decision_on(15, "lock_id"),
    decision_on(15, "lock_intro"),
    decision_on(6, "unlock_id"),
    decision_on(6, "unlock_intro"),
    decision_on(8, "ignore"),
    decision_on(5, "clear_id"),
]


@pytest.mark.parametrize("asked", SO_ALREADY, ids=lambda asked: asked.action)
def test_what_is_so_already_needs_no_decision_and_no_request(library, asked):
    recording, subjects = dry(library, asked)
    assert reported(recording) == [(asked.vod_id, "already", "已经如此，无需记录")]
    assert subjects.asked == []


def test_the_verdict_that_was_looked_at_must_be_the_newest(library):
    [newest] = library.query("SELECT verdict_id FROM mac_douban_verdict WHERE vod_id = 4")
    verdict_id = newest["verdict_id"]
    for action, douban_id in (("confirm_top1", 0), ("set_id", FREE), ("replace_and_lock", FREE)):
        recording, _ = dry(library, decision_on(4, action, douban_id, verdict_id=verdict_id))
        assert only(recording).status == "checked"
        recording, _ = dry(library, decision_on(4, action, douban_id, verdict_id=verdict_id + 900))
        assert only(recording).reason == (
            f"候选已过时：填写的判定是 {verdict_id + 900}，最新的是 {verdict_id}，请按最新的审核单重新决定"
        )
    # Whoever looked at a verdict about other facts did not look at this video, whatever was decided from it.
    [stale] = library.query("SELECT verdict_id FROM mac_douban_verdict WHERE vod_id = 12")
    recording, _ = dry(library, decision_on(12, "set_id", FREE, verdict_id=stale["verdict_id"]))
    assert only(recording).reason.startswith("候选已过时：影片资料在判定之后改变过")


def test_rows_that_contradict_each_other_are_all_refused(library):
    recording, subjects = dry(
        library,
        decision_on(4, "set_id", FREE),
        decision_on(5, "lock_intro"),
        decision_on(4, "ignore"),
        decision_on(4, "lock_intro", where="第 9 行"),
        decision_on(5, "unlock_intro", 12),
    )
    assert reported(recording) == [
        (4, "refused", "与 decisions 第 3 条（忽略）矛盾，请只留下一条"),
        (5, "refused", "与 decisions 第 5 条（解锁简介）矛盾，请只留下一条"),
        (4, "refused", "与 decisions 第 1 条（指定豆瓣 ID）矛盾，请只留下一条"),
        (4, "checked", ""),
        (
            5,
            "refused",
            "unlock_intro 不使用 douban_id，请改为 0，或改用 set_id；"
            "与 decisions 第 2 条（锁定简介）矛盾，请只留下一条",
        ),
    ]
    assert subjects.asked == []


def test_rows_that_say_the_same_in_other_words_do_not_contradict(library):
    recording, _ = dry(
        library,
        decision_on(4, "choose", rank=2),
        decision_on(4, "choose", B),
        decision_on(4, "choose", B, rank=2, note="又"),
    )
    assert reported(recording) == [
        (4, "checked", ""),
        (4, "known", "与 decisions 第 1 条 相同"),
        (4, "known", "与 decisions 第 1 条 相同"),
    ]
    # The best candidate by another name is another decision: which of them was meant, a person says.
    recording, _ = dry(library, decision_on(4, "choose", rank=1), decision_on(4, "confirm_top1"))
    assert {item.status for item in recording.items} == {"refused"}


def test_a_subject_is_given_to_one_video_unless_it_is_meant(library):
    recording, _ = dry(
        library, decision_on(4, "set_id", FREE), decision_on(5, "set_id", FREE), decision_on(6, "set_id", FREE + 1)
    )
    assert reported(recording) == [
        (4, "refused", f"decisions 第 2 条 把条目 90000200 给了影片 5《影片5》；{CHECK}"),
        (5, "refused", f"decisions 第 1 条 把条目 90000200 给了影片 4《影片4》；{CHECK}"),
        (6, "checked", ""),
    ]
    recording, _ = dry(library, decision_on(4, "set_id", FREE, accept_conflicts=True), decision_on(5, "set_id", FREE))
    assert [item.status for item in recording.items] == ["checked", "refused"]
    assert recording.items[0].reason == "已接受：decisions 第 2 条 把条目 90000200 给了影片 5《影片5》"
    # A row that is refused anyway gives nothing to anybody.
    recording, _ = dry(
        library, decision_on(4, "set_id", FREE), decision_on(9, "set_id", FREE), decision_on(7, "set_id", FREE)
    )
    assert [item.status for item in recording.items] == ["checked", "refused", "refused"]


def test_everything_that_speaks_against_a_subject_is_said_before_it_can_be_accepted(library):
    one = decision_on(4, "set_id", D)
    with asking({D: "与《雪》（2018）对不上：年份冲突：差 3 年"}):
        refused = only(decide(library, one, dry_run=True)).reason
        accepted = only(decide(library, decision_on(4, "set_id", D, accept_conflicts=True), dry_run=True))
    both = "条目 90000104 与《雪》（2018）对不上：年份冲突：差 3 年；条目 90000104 已关联到影片 7《影片7》"
    assert refused == f"{both}；{CHECK}"
    assert (accepted.status, accepted.reason) == ("checked", f"已接受：{both}")


def test_links_that_are_decided_with_it_are_links(library):
    for action, why in (("lock_id", NO_ID), ("sync_now", NO_LINK)):
        recording, _ = dry(library, decision_on(5, action), decision_on(5, "set_id", FREE))
        assert [item.status for item in recording.items] == ["checked", "checked"]
        # … unless the link itself is refused, whichever row comes first.
        recording, _ = dry(library, decision_on(5, action), decision_on(5, "set_id", 90_000_404))
        assert [item.status for item in recording.items] == ["refused", "refused"]
        assert recording.items[0].reason == why
    recording, _ = dry(library, decision_on(6, "lock_id"), decision_on(6, "clear_id"))
    assert reported(recording) == [(6, "refused", NO_ID), (6, "checked", "")]


def test_what_cannot_be_asked_now_is_checked_later(library):
    recording, _ = dry(library, decision_on(4, "set_id", 90_000_500))
    item = only(recording)
    assert (item.status, item.unchecked) == ("checked", True)
    assert item.reason == "条目尚未核对，执行时先核对：douban: HTTP 500"
