"""What events do to a section, on real databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from douban_pipeline.comments.review import SafetyReview, WordLists
from douban_pipeline.comments.store.comment_lists import CommentPlace, Order, list_roots, preview_replies, votes_of
from douban_pipeline.comments.store.events import EventInput, append, of_requests
from douban_pipeline.comments.text_pieces import mentions
from douban_pipeline.comments.types import Attribute, CommentStatus, EventKind, SectionStatus, Vote
from douban_pipeline.core.database import reading
from douban_pipeline_tests.comments.stage import AUDIT, AUTOMATION, OPERATOR, OWNER, Stage, stage, user

NORMAL, REVIEW, DELETED = CommentStatus


@pytest.fixture
def place(any_database_url: str) -> Iterator[Stage]:
    with stage(any_database_url, reports_to_review=2) as found:
        yield found
        assert found.differences() == []


@pytest.fixture
def alone(sqlite_url: str) -> Iterator[Stage]:
    with stage(sqlite_url, reports_to_review=2) as found:
        yield found
        assert found.differences() == []


def counts(place: Stage) -> tuple[int, ...]:
    found = place.section()
    return tuple(found[f"{name}_count"] for name in ("total", "root", "visible", "hidden"))


def test_comments_get_floors_threads_and_counters(place):
    first = place.publish(user(2), "一楼 🎬")
    reply = place.publish(user(3), "回一楼", first)
    deeper = place.publish(user(2), "再回", reply)
    other = place.publish(user(3), "也回一楼", first)
    assert place.work() == 4
    shown = {number: place.comment(number) for number in (first, reply, deeper, other)}
    assert [comment.floor for comment in shown.values()] == [1, 2, 3, 4]
    assert [comment.root_id for comment in shown.values()] == [0, first, first, first]
    assert [comment.dialog_id for comment in shown.values()] == [0, reply, reply, other]
    assert shown[first].content == "一楼 🎬"
    assert shown[first].child_visible == 3
    assert place.replies(first) == [reply, deeper, other]
    assert counts(place) == (4, 1, 4, 0)


def test_a_root_takes_its_shown_replies_with_it_and_brings_the_same_back(place):
    root = place.publish(user(2), "根")
    replies = [place.publish(user(number), f"回 {number}", root) for number in (3, 4, 5)]
    kept = place.publish(user(2), "另一根")
    place.work()
    place.set_status(user(3), replies[0], DELETED)
    place.work()
    before = counts(place)
    assert before == (5, 2, 4, 1)
    place.set_status(OPERATOR, root, DELETED)
    place.work()
    assert counts(place) == (5, 1, 1, 4)
    assert place.roots() == [kept]
    place.publish(user(6), "来晚了", root)
    place.vote(user(6), replies[1], 1)
    place.set_status(user(4), replies[1], DELETED)
    place.undo(user(4), replies[1])
    place.undo(OPERATOR, root)
    place.work()
    assert counts(place) == before
    assert place.refusals() == ["所回复的评论不存在", "评论不存在"]


def test_a_vote_is_one_a_person_and_can_be_taken_back(place):
    root = place.publish(user(2), "根")
    for value in (1, 1, -1, 0, 1):
        place.vote(user(3), root, value)
    place.vote(user(4), root, -1)
    place.vote(OWNER, root, 1)
    place.work()
    found = place.comment(root)
    assert (found.like_count, found.dislike_count) == (2, 1)
    assert found.attributes & Attribute.OWNER_LIKED
    with reading(place.engine) as connection:
        assert votes_of(connection, "u:3", [root]) == {root: Vote.LIKE}
    place.vote(OWNER, root, 0)
    place.work()
    assert not place.comment(root).attributes & Attribute.OWNER_LIKED
    with reading(place.engine) as connection:
        assert connection.exec_driver_sql("SELECT SUM(liked) FROM cmt_impression").scalar() == 1


def test_enough_reports_send_a_comment_to_a_person_whose_word_stands(alone):
    root = alone.publish(user(2), "根")
    for number in (3, 3, 4):
        alone.send(user(number), EventKind.REPORT, root, reason="spam")
    alone.work()
    found = alone.comment(root)
    assert (found.status, found.report_count) == (REVIEW, 2)
    alone.set_status(OPERATOR, root, NORMAL)
    alone.send(user(4), EventKind.WITHDRAW_REPORT, root)
    for number in (5, 6, 7):
        alone.send(user(number), EventKind.REPORT, root)
    alone.work()
    found = alone.comment(root)
    assert (found.status, found.report_count) == (NORMAL, 4)


@pytest.mark.parametrize(
    ("first", "then", "stands"),
    [
        (AUDIT, OPERATOR, True),
        (AUDIT, AUTOMATION, True),
        (OPERATOR, AUTOMATION, True),
        (OPERATOR, AUDIT, False),
        (AUTOMATION, OPERATOR, False),
        (OPERATOR, user(2), True),
        (OPERATOR, OWNER, True),
    ],
    ids=lambda value: getattr(value, "key", value),
)
def test_a_decision_is_never_undone_by_a_lower_rank(first, then, stands, alone):
    root = alone.publish(user(2), "根")
    alone.work()
    alone.set_status(first, root, DELETED)
    alone.set_status(then, root, NORMAL)
    if stands:
        alone.undo(then, root)
    alone.work()
    assert (alone.comment(root).status == DELETED) is stands


def test_what_a_higher_rank_let_pass_is_not_hidden_by_a_lower_one_but_its_author_may_go(alone):
    root = alone.publish(user(2), "根")
    alone.work()
    alone.set_status(AUDIT, root, NORMAL)
    alone.set_status(OPERATOR, root, DELETED)
    alone.work()
    assert alone.comment(root).status == NORMAL
    alone.set_status(user(3), root, DELETED)
    alone.set_status(user(2), root, DELETED)
    alone.work()
    assert alone.comment(root).status == DELETED
    alone.undo(user(3), root)
    alone.undo(user(2), root)
    alone.work()
    found = alone.comment(root)
    assert (found.status, found.status_actor) == (NORMAL, "audit:wang")
    assert len(alone.refusals()) == 3


def test_a_pinned_comment_that_is_hidden_gives_its_place_to_another_one(alone):
    roots = [alone.publish(user(number), f"根 {number}") for number in range(2, 7)]
    for root in roots[:3]:
        alone.send(OWNER, EventKind.PIN, root, on=True)
    alone.set_status(OPERATOR, roots[1], DELETED)
    alone.work()
    assert roots[1] in alone.section()["pinned"], "while nobody needs its place, it is pinned again once it is shown"
    for root in roots[3:]:
        alone.send(OWNER, EventKind.PIN, root, on=True)
        alone.work()
    assert alone.section()["pinned"] == [roots[3], roots[2], roots[0]]
    assert not alone.comment(roots[1]).attributes & Attribute.PINNED
    assert alone.refusals() == ["最多置顶 3 条"]


def test_pins_features_and_a_closed_section(alone):
    roots = [alone.publish(user(number), f"根 {number}") for number in range(2, 7)]
    alone.work()
    for root in roots[:4]:
        alone.send(OWNER, EventKind.PIN, root, on=True)
    alone.send(OWNER, EventKind.PIN, roots[0], on=False)
    alone.send(user(2), EventKind.PIN, roots[4], on=True)
    alone.send(OPERATOR, EventKind.FEATURE, roots[4], on=True)
    alone.work()
    assert alone.section()["pinned"] == [roots[2], roots[1]]
    assert alone.comment(roots[4]).attributes == Attribute.FEATURED
    alone.send(OWNER, EventKind.SET_SECTION, status=SectionStatus.CLOSED)
    late = alone.publish(user(9), "关了吗")
    alone.vote(user(9), roots[0], 1)
    alone.send(user(9), EventKind.REPORT, roots[0], reason="spam")
    alone.work()
    assert not alone.exists(late)
    assert alone.comment(roots[0]).report_count == 1, "what is shown can be reported"
    assert alone.refusals() == ["最多置顶 3 条", "没有权限", "评论区已关闭", "评论区已关闭"]


def test_pages_follow_each_other_in_every_order_without_gap_or_double(place):
    roots = [place.publish(user(number), f"根 {number}") for number in range(2, 33)]
    place.work()
    replies = [place.publish(user(number), f"回 {number}", roots[1]) for number in range(4, 9)]
    place.work()
    for reply in (replies[3], replies[1]):
        place.vote(user(2), reply, 1)
    place.vote(user(3), replies[1], 1)
    for root in roots[::3]:
        place.vote(user(90), root, 1)
    place.set_status(OPERATOR, roots[5], DELETED)
    place.work()
    with place.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE cmt_score SET heat = 7 WHERE comment_id IN ({', '.join(map(str, roots[4:9]))})"
        )
    for order in Order:
        pages: list[CommentPlace] = []
        with reading(place.engine) as connection:
            while page := list_roots(connection, place.section_id, order, pages[-1] if pages else None, 4):
                pages += page
        listed = [found.comment_id for found in pages]
        assert sorted(listed) == sorted(set(roots) - {roots[5]}), order
        assert listed == place.roots(order)
    with reading(place.engine) as connection:
        found = preview_replies(connection, place.section_id, roots[:3])
    below = {root: [view.comment_id for view in views] for root, views in found.items()}
    assert below == {roots[1]: [replies[1], replies[3], replies[4]]}
    assert place.roots(Order.FLOOR) == place.roots(Order.NEW)[::-1]
    assert place.roots(Order.LIKES)[:2] == [roots[30], roots[27]]
    assert place.roots(Order.HEAT)[:4] == [roots[8], roots[7], roots[6], roots[4]]


def test_texts_are_reviewed_before_they_are_shown(sqlite_url):
    words = WordLists(masked=("坏词",), reviewed=("赌博",), refused_ips=frozenset({"192.0.2.1"}))
    with stage(sqlite_url, review=SafetyReview(words, per_minute=5, links=2)) as place:
        masked = place.publish(user(2), "一个坏\u200b词")
        waits = place.publish(user(2), "来ＤＵ赌博")
        links = place.publish(user(2), "看 https://a.example 和 www.b.example")
        double = place.publish(user(2), " 一个坏词 ")
        refused = place.publish(user(3), "你好", ip="192.0.2.1")
        place.work()
        assert place.comment(masked).content == "一个**"
        assert place.comment(masked).attributes & Attribute.MASKED
        assert [place.comment(number).status for number in (waits, links)] == [REVIEW, REVIEW]
        assert place.comment(waits).meta["reasons"] == ["含词语“赌博”"]
        assert not place.exists(double)
        assert not place.exists(refused)
        many = [place.publish(user(4), f"第 {number} 条") for number in range(7)]
        place.work()
        assert [place.exists(number) for number in many] == [True] * 5 + [False] * 2
        assert list(place.roots()) == [*many[4::-1], masked]
        place.set_status(OPERATOR, waits, NORMAL)
        place.work()
        assert waits in place.roots()
        assert place.differences() == []
        assert place.section()["floor_seq"] == 8, "what is refused gets no floor"


def test_a_section_may_show_nothing_before_a_person_has_read_it(sqlite_url):
    with stage(sqlite_url, settings={"review_first": True}) as place:
        number = place.publish(user(2), "先审")
        trusted = place.publish(OPERATOR, "公告")
        place.work()
        assert place.comment(number).status == REVIEW
        assert place.roots() == [trusted]


def test_the_same_request_twice_is_one_event(alone):
    number = alone.ids.next()
    event = EventInput(alone.section_id, EventKind.PUBLISH, user(2), "again", number, {"content": "一次"})
    for _ in range(2):
        with alone.engine.begin() as connection:
            append(connection, [event], alone.clock.now())
    assert alone.work() == 1
    with reading(alone.engine) as connection:
        found = of_requests(connection, ["again", "never"])
        assert {key: row.comment_id for key, row in found.items()} == {"again": number}


@pytest.mark.parametrize("content", ["@甲:9999999999999999999 好看", "@甲:0 @乙:9223372036854775808"])
def test_a_mention_of_a_number_that_is_no_user_tells_nobody(content, place):
    root = place.publish(user(2), content, mentions=mentions(content))
    assert place.work() == 1
    assert place.roots() == [root]


def test_an_event_that_the_database_refuses_is_refused_and_the_others_are_applied(place):
    first = place.publish(user(2), "一楼")
    broken = place.publish(user(3), "坏的", mentions=[10**30])
    place.send(user(3), EventKind.VOTE, first, value="many")
    last = place.publish(user(4), "二楼")
    place.vote(user(5), first, 1)
    assert place.work() == 5
    assert place.roots(Order.FLOOR) == [first, last]
    assert not place.exists(broken)
    assert place.comment(first).like_count == 1
    assert [refusal.partition("：")[0] for refusal in place.refusals()] == ["无法处理", "无法处理"]


def test_an_author_edits_for_some_minutes_and_what_was_there_is_kept(sqlite_url):
    words = WordLists(masked=("坏词",), reviewed=("赌博",))
    with stage(sqlite_url, review=SafetyReview(words)) as place:
        number = place.publish(user(2), "第一稿")
        place.work()
        place.send(user(2), EventKind.EDIT, number, content="第二稿，没有坏词")
        place.send(user(3), EventKind.EDIT, number, content="别人的")
        place.work()
        edited = place.comment(number)
        assert edited.content == "第二稿，没有**"
        assert edited.meta["edited"]
        assert edited.attributes & Attribute.MASKED
        place.send(user(2), EventKind.EDIT, number, content="来赌.博")
        place.work()
        assert place.comment(number).status == REVIEW
        assert place.differences() == []
        place.clock.advance(minutes=16)
        place.send(user(2), EventKind.EDIT, number, content="太晚")
        place.work()
        assert place.comment(number).content == "来赌.博"
        assert place.refusals() == ["只能编辑自己的评论", "已经过了可以编辑的时间"]
        with reading(place.engine) as connection:
            kept = connection.exec_driver_sql("SELECT content FROM cmt_edit ORDER BY edit_id").scalars().all()
        assert kept == ["第一稿", "第二稿，没有**"]
