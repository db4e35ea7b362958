"""What people write and call themselves, as pages show it; and what holds a flood of it back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.comments.operations import OPERATIONS
from douban_pipeline.comments.review import GUESTS_AT_ONCE, GUESTS_WITHIN, SafetyReview
from douban_pipeline.comments.store.moderator_tables import address
from douban_pipeline.comments.types import Actor, CommentStatus
from douban_pipeline.comments.word_forms import clean
from douban_pipeline_tests.comments.serving import ADMIN, Served, served
from douban_pipeline_tests.comments.stage import stage, user

CODE = "`foo<bar>` 和 <script>alert(1)</script> & a<b"
EMOJI = (
    "👀 ⚡\ufe0f 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 👨\u200d👩\u200d👧\u200d👦 👍\U0001f3fd"
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("written"), guests=True) as found:
        yield found


@pytest.mark.parametrize(
    ("name", "content", "shown_name", "shown"),
    [
        ("阿明\u202eihsoM", "hello\u202e!", "阿明ihsoM", "hello!"),
        ("<img src=x onerror=alert(1)>", "x", "<img src=x onerror=alert(1)>", "x"),
        ("", EMOJI, "游客", EMOJI),
        ("小明", CODE, "小明", CODE),
        (
            "a" + "\u0301\u0302" * 20,
            "z" + "\u0300" * 20 + "a" + "\u0321" * 50,
            None,
            "z" + "\u0300" * 3 + "a" + "\u0321" * 3,
        ),
    ],
)
def test_a_guest_is_shown_as_written_without_what_reaches_beyond(shared, name, content, shown_name, shown):
    film = shared.section()
    given = {"content": content, "name": name}
    sent = shared.call("POST", f"/sections/1/{film}/comments", json=given).json()
    shared.work()
    (item,) = shared.page(film)["items"]
    for each in (sent, item):
        assert "".join(piece["text"] for piece in each["pieces"]) == shown
        assert each["author"]["name"] == (clean(name) if shown_name is None else shown_name)
    assert len(item["author"]["name"]) < 31


def test_code_stays_as_typed_when_it_is_edited(shared):
    film = shared.section()
    number = shared.publish(2, film, CODE)
    shared.work()
    shared.call("PATCH", f"/comments/{number}", 2, json={"content": f"{CODE}！"})
    shared.work()
    assert shared.page(film)["items"][0]["pieces"] == [{"text": f"{CODE}！"}]


@pytest.mark.parametrize("zone", ["Australia/Sydney", "UTC"])
def test_times_are_those_of_writing_wherever_the_server_stands(shared, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        film, written = shared.section(), shared.clock.now()
        held = shared.publish(2, film, "https://a.example https://b.example")
        shared.work()
        shared.clock.advance(hours=3)
        decision = {"ids": [held], "status": 0, "reason": "无害", "dry_run": False}
        assert shared.call("POST", "/admin/moderate", ADMIN, json=decision).status_code == 202
        shared.work()
        (item,) = shared.page(film, **{"from": "groupmessage"})["items"]
        assert datetime.fromisoformat(item["at"]) - written < timedelta(seconds=1)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("می\u200cخواهم", None),
        ("خانه\u200c\u0654", None),
        ("کتابِ\u200cمن", None),
        ("می\u200c", "می"),
        ("a\u200cb", "ab"),
        ("ที่นี่ ปั๊ม น้ำ", None),
        ("ကြွေးတွေ့", None),
        ("བསྒྲུབས", None),
        ("Việt Nam ở", None),
        ("1\ufe0f\u20e3", None),
        ("ด" + "\u0e49" * 40, "ด" + "\u0e49" * 3),
        ("क" + "\u093c\u200c" * 40 + "क", "क\u093c\u200c\u093c\u200c\u093c\u200cक"),
    ],
)
def test_letters_keep_their_joints_and_at_most_three_marks(text, kept):
    assert clean(text) == (text if kept is None else kept)


@pytest.mark.parametrize("cursor", ["--5.1", "-.1", "5.-1", "٣.1", "5.1.1", "5", f"{2**63}.1"])
def test_a_cursor_that_is_none_is_refused_in_a_sentence(shared, cursor):
    refused = shared.call("GET", f"/sections/1/{shared.section()}/page", params={"cursor": cursor})
    assert (refused.status_code, refused.json()["detail"]) == (400, "游标无效")


def test_of_what_is_gone_nobody_may_have_an_opinion(shared):
    film = shared.section()
    root = shared.publish(2, film, "根")
    reply = shared.publish(3, film, "回", root)
    shared.work()
    shared.call("PUT", f"/comments/{reply}/vote", 4, json={"value": 1})
    shared.call("POST", f"/comments/{reply}/report", 5, json={})
    shared.call("DELETE", f"/comments/{root}", 2)
    shared.work()
    for number in (root, reply):
        assert shared.call("PUT", f"/comments/{number}/vote", 6, json={"value": 1}).status_code == 404
        assert shared.call("POST", f"/comments/{number}/report", 6, json={}).status_code == 404
        assert (
            shared.call("PATCH", f"/comments/{number}", 2 + (number == reply), json={"content": "改"}).status_code
            == 404
        )
    assert shared.call("PUT", f"/comments/{reply}/vote", 4, json={"value": 0}).status_code == 202, (
        "what one has may be taken back"
    )
    assert shared.call("DELETE", f"/comments/{reply}/report", 5).status_code == 202
    shared.work()
    assert shared.differences() == []


def test_a_link_of_a_guest_waits_and_one_of_a_user_does_not(sqlite_url):
    guest = Actor("g:1")
    with stage(sqlite_url, review=SafetyReview(links=2, guest_links=1)) as place:
        linked = place.publish(guest, "便宜 https://shop.example/1", ip="192.0.2.1")
        plain = place.publish(guest, "好看", ip="192.0.2.1")
        known = place.publish(user(2), "出处 https://a.example/", ip="192.0.2.2")
        place.work()
        assert place.comment(linked).status == CommentStatus.REVIEW
        assert place.comment(linked).meta["reasons"] == ["含 1 个链接"]
        assert place.roots() == [known, plain]


@pytest.mark.parametrize(("last", "warned"), [("10.0.0.1", True), ("192.0.2.9", False)])
def test_the_check_says_that_all_visitors_have_one_address(tmp_path, last, warned):
    with served(tmp_path, guests=True) as place:
        film = place.section()
        for n in range(5):
            given = {"content": f"第 {n} 条"}
            place.call("POST", f"/sections/1/{film}/comments", json=given, headers={"User-Agent": f"browser {n}"})
        place.publish(2, film, "我是用户")
        place.work()
        with place.services.engine.begin() as connection:
            connection.execute(sa.update(address).values(address="10.0.0.1"))
            newest = sa.select(sa.func.max(address.c.comment_id)).scalar_subquery()
            connection.execute(sa.update(address).where(address.c.comment_id == newest).values(address=last))
        found = [each for each in OPERATIONS.checks(place.services) if each.name == "addresses"]
    assert [(each.state, "SERVE_PROXIES" in each.remedy) for each in found] == [("warn", True)] * warned


def test_a_flood_of_guests_from_everywhere_waits_and_users_do_not(sqlite_url):
    def flood(beginning: int, number: int) -> list[int]:
        return [
            place.publish(Actor(f"g:{n}"), f"第 {n} 条", ip=f"198.51.{n // 200}.{n % 200}")
            for n in range(beginning, beginning + number)
        ]

    with stage(sqlite_url, review=SafetyReview()) as place:
        sent = flood(0, 300)
        known = place.publish(user(2), "我是用户", ip="192.0.2.2")
        place.work()
        assert place.roots()[::-1] == [*sent[:GUESTS_AT_ONCE], known]
        place.clock.advance(seconds=GUESTS_WITHIN.total_seconds() / 2)
        (late,) = flood(300, 1)
        place.work()
        assert place.comment(late).status == CommentStatus.REVIEW
        assert place.comment(late).meta["reasons"] == [
            f"游客发言突增，{GUESTS_WITHIN.seconds // 60} 分钟内超过 {GUESTS_AT_ONCE} 条"
        ]
        place.clock.advance(seconds=GUESTS_WITHIN.total_seconds())
        (calm,) = flood(400, 1)
        place.work()
        assert place.roots()[0] == calm
        assert place.differences() == []
