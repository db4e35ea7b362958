"""What moderators set and see over real HTTP: sessions, trust and bans, words, rules, the log, films and filters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import httpx
import pytest
import sqlalchemy as sa

from douban_pipeline.comments.api.sessions import COOKIE
from douban_pipeline.comments.trust import subject_of, subjects_of
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline_tests.comments.serving import ADMIN, AUDIT, Served, served
from douban_pipeline_tests.harness.fixtures.scripted_source import Source

OURS = {"X-Operator": "page"}
LINKS = "看 https://a.example https://b.example"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("moderators"), guests=True) as found:
        yield found


@pytest.fixture
def place(shared: Served) -> Iterator[Served]:
    yield shared
    shared.work()
    assert shared.differences() == []


def admin(place: Served, method: str, path: str, body: object = None, status: int = 200) -> dict[str, object]:
    answer = place.call(method, f"/admin{path}", ADMIN, json=body, headers={"X-Operator": "wang"})
    assert answer.status_code == status, answer.text
    found: dict[str, object] = answer.json() if answer.content else {}
    return found


def test_a_session_lasts_until_it_is_ended_and_is_no_visitor_s_on_the_site_s_pages(place):
    film = place.section()
    root = place.publish(2, film, "根")
    place.work()
    refused = place.call("POST", "/admin/session", "not-the-token-0123456789", json={"name": "小王"})
    assert refused.status_code == 401
    begun = place.call("POST", "/admin/session", AUDIT, json={"name": "小 王!", "remember": True})
    assert begun.json() == {"key": "audit:小王", "name": "小王", "audit": True}
    assert "HttpOnly" in begun.headers["set-cookie"]
    assert "SameSite=strict" in begun.headers["set-cookie"]
    value = begun.cookies[COOKIE]
    place.client.cookies.clear()
    with httpx.Client(base_url=place.base, cookies={COOKIE: value}, trust_env=False) as browser:
        pin = f"/comments/v1/comments/{root}/pin"
        assert browser.get("/comments/v1/admin/session").json()["key"] == "audit:小王"
        assert browser.get("/comments/v1/me").json()["me"]["name"] == ""
        assert browser.put(pin, json={"on": True}).status_code == 403
        assert browser.put(pin, json={"on": True}, headers=OURS).status_code == 202
        assert browser.delete("/comments/v1/admin/session").status_code == 401, "a page of another site has no header"
        assert browser.delete("/comments/v1/admin/session", headers=OURS).status_code == 204
        for stale in (value, value[:-1] + "x"):
            browser.cookies = {COOKIE: stale}
            assert browser.get("/comments/v1/admin/session").status_code == 401
    place.work()
    (entry,) = (each for each in admin(place, "GET", "/log")["entries"] if each["action"] == "pin")
    assert (entry["actor"], entry["about"], entry["text"]) == ("audit:小王", f"comment:{root}", "根")


def test_who_is_banned_is_told_why_and_until_when_and_may_still_take_back(place):
    film = place.section()
    own, other = place.publish(31, film, "我的"), place.publish(32, film, "别人的")
    place.work()
    until = place.clock.now() + timedelta(days=1)
    ban = {"kind": "user", "subject": "31", "level": "banned", "reason": "刷屏"}
    assert "已经过去" in str(admin(place, "POST", "/trust", {**ban, "until": "2020-01-01T00:00:00Z"}, 400))
    made = admin(place, "POST", "/trust", {**ban, "until": until.isoformat()}, 201)
    refused = place.call("POST", f"/sections/1/{film}/comments", 31, json={"content": "又来"})
    assert refused.status_code == 403
    assert "刷屏" in refused.json()["detail"]
    assert f"{until:%Y-%m-%d}" in refused.json()["detail"]
    assert place.call("PUT", f"/comments/{other}/vote", 31, json={"value": 1}).status_code == 403
    assert place.call("POST", f"/comments/{other}/report", 31, json={}).status_code == 403
    assert place.call("DELETE", f"/comments/{own}", 31).status_code == 202
    assert [each["subject"] for each in admin(place, "GET", "/trust")["levels"]] == ["31"]
    assert admin(place, "DELETE", f"/trust/{made['id']}", status=204) == {}
    place.publish(31, film, "回来了")
    admin(place, "POST", "/trust", {**ban, "until": until.isoformat()}, 201)
    place.clock.advance(days=2)
    place.publish(31, film, "时候到了")
    network = {"kind": "address", "subject": "127.0.0.0/24", "level": "banned", "reason": "代理网段"}
    made = admin(place, "POST", "/trust", network, 201)
    assert place.call("POST", f"/sections/1/{film}/comments", json={"content": "游客"}).status_code == 403
    trusted = admin(place, "POST", "/trust", {**ban, "level": "trusted"}, 201)
    place.publish(31, film, f"本人可信 {LINKS}")
    place.work()
    for each in (made, trusted):
        admin(place, "DELETE", f"/trust/{each['id']}", status=204)
    assert len(place.listed(film)) == 4, "links of who is trusted do not wait"


def test_newcomers_wait_and_known_users_may_link(place):
    film = place.section()
    assert admin(place, "GET", "/trust")["defaults"] == {"newcomers": 0, "trusted_after": 50}
    admin(place, "PUT", "/trust/rules", {"newcomers": 1, "trusted_after": 2}, 204)
    first = place.publish(41, film, "头一条")
    place.call("POST", f"/sections/1/{film}/comments", json={"content": "游客"})
    place.work()
    assert place.listed(film) == []
    found = admin(place, "GET", "/search?status=1&reason=newcomer&user=41")["items"]
    assert [each["id"] for each in found] == [first]
    assert found[0]["reasons"] == ["新用户的前 1 条评论"]
    admin(place, "POST", "/moderate", {"ids": [first], "status": 0, "reason": "无害", "dry_run": False}, 202)
    place.work()
    place.publish(41, film, LINKS)
    second = place.publish(41, film, "再一条")
    place.work()
    linked = place.publish(41, film, f"{LINKS} 多看")
    place.work()
    assert place.listed(film, sort="floor") == [first, second, linked]
    admin(place, "PUT", "/trust/rules", {"newcomers": 0, "trusted_after": 50}, 204)


def test_words_hold_from_the_next_comment_on(place):
    film = place.section()
    shown = []
    for number, change in enumerate(
        (None, {"add": ["代练上分"]}, {"add": ["代练上分"], "consequence": "mask"}, {"remove": ["代练上分"]})
    ):
        if change:
            admin(place, "PATCH", "/words", change, 204)
        place.publish(51, film, f"{number} 代-练-上-分")
        place.work()
        shown.append([item["pieces"][0]["text"] for item in place.page(film, sort="new")["items"]][:1])
    assert shown == [["0 代-练-上-分"], ["0 代-练-上-分"], ["2 *******"], ["3 代-练-上-分"]]
    assert admin(place, "GET", "/words") == {"mask": [], "review": []}


def test_a_rule_is_seen_before_it_is_in_force(place):
    film = place.section()
    roots = [place.publish(60 + number, film, "长" * (number + 1)) for number in range(4)]
    place.work()
    section = admin(place, "GET", f"/comments/{roots[0]}")["section"]
    rule = {"section": section, "name": "short", "expression": "length < 2", "decision": "sink", "amount": 5}
    before = place.listed(film, sort="heat")
    found = admin(place, "POST", "/rules/preview", rule)
    assert (found["hits"], found["comments"]) == (1, 4)
    assert found["first"][-1]["id"] == roots[0]
    assert found["first"][-1]["after"] == 4
    assert "lenth" in str(admin(place, "POST", "/rules/preview", {**rule, "expression": "lenth < 2"}, 400))
    admin(place, "POST", "/rules", rule, 400)
    assert place.listed(film, sort="heat") == before
    assert admin(place, "POST", "/rules", {**rule, "reason": "太短"}, 201) == {"revision": 1}
    assert [each["sections"] for each in admin(place, "GET", "/rules")["rules"]] == [[section]]
    admin(place, "DELETE", "/rules/short", status=204)
    assert "没有启用中的规则" in str(admin(place, "DELETE", "/rules/short", status=400))


def test_rows_say_where_from_why_and_what_they_said_before_and_are_found_by_it(place):
    film = place.section(title="站点的片名")
    root = place.publish(71, film, "原来的话")
    place.work()
    place.call("PATCH", f"/comments/{root}", 71, json={"content": "改后的话"})
    place.call("POST", f"/comments/{root}/report", 72, json={"reason": "spam"})
    place.work()
    for asked, count in (
        ("address=127.0.0.1", 1),
        ("address=127.0.0.0/24", 1),
        ("address=127.0.0.0/16", 1),
        ("address=10.0.0.1", 0),
        ("reason=spam", 1),
        ("reason=abuse", 0),
        ("reason=words", 0),
    ):
        items = admin(place, "GET", f"/search?type=1&object={film}&{asked}")["items"]
        assert len(items) == count, asked
    (item,) = admin(place, "GET", f"/search?type=1&object={film}")["items"]
    assert (item["address"], item["reported"], item["edits"]) == ("127.0.0.1", {"spam": 1}, 1)
    assert item["object"]["title"] == "站点的片名"
    assert [each["content"] for each in admin(place, "GET", f"/comments/{root}")["edits"]] == ["原来的话"]
    admin(place, "GET", "/search?address=nowhere", status=400)


def test_the_log_has_batches_once_and_what_of_them_was_undone(place):
    film = place.section()
    roots = [place.publish(80 + number, film, f"第 {number}") for number in range(3)]
    place.work()
    given = {"ids": roots, "status": 2, "reason": "清理", "dry_run": False}
    batch = admin(place, "POST", "/moderate", given, 202)["batch"]
    place.work()
    admin(place, "POST", "/undo", {"ids": roots[:1], "reason": "误删"}, 202)
    place.work()
    entries = [each for each in admin(place, "GET", "/log?actor=ops:wang")["entries"] if each["batch"] == batch]
    assert [(each["action"], each["comments"], each["undone"]) for each in entries] == [("deleted", 3, 1)]
    assert admin(place, "GET", "/log?actor=nobody")["entries"] == []


def test_a_film_has_its_name_and_poster_from_the_cms(tmp_path):
    library = f"sqlite:///{tmp_path / 'library.sqlite'}"
    engine = sa.create_engine(library)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE mac_vod (vod_id int, vod_name text, vod_pic text)")
        connection.exec_driver_sql("INSERT INTO mac_vod VALUES (100, '长河&amp;落日', 'a.png'), (101, '无图', '')")
    engine.dispose()
    own, site, png = f"sqlite:///{tmp_path / 'comments.sqlite'}", Source(), b"\x89PNG\r\n\x1a\n..."
    site.says(png)
    given = {"library_url": library, "database_url": own, "site_url": site.url.rpartition("/")[0]}
    with closing(site), served(tmp_path, **given) as place:
        first, second = place.section(title=""), place.section(title="")
        for film in (first, second):
            place.publish(2, film, "好看")
        place.work()
        items = {each["object"]["id"]: each["object"] for each in admin(place, "GET", "/search")["items"]}
        assert {name: (each["title"], each["poster"]) for name, each in items.items()} == {
            "100": ("长河&落日", True),
            "101": ("无图", False),
        }
        answer = place.call("GET", "/admin/films/100/poster", ADMIN)
        assert (answer.headers["content-type"], answer.content) == ("image/png", png)
        assert site.asked[0][0] == "/a.png"
        assert place.call("GET", "/admin/films/101/poster", ADMIN).status_code == 404
        assert place.page(first)["section"]["title"] == "长河&落日"
        assert place.call("GET", "/admin/films/100/poster").status_code == 401


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [
        ("user", " 0012 ", "12"),
        ("address", "192.0.2.7", "192.0.2.7"),
        ("address", "192.0.2.7/24", "192.0.2.0/24"),
        ("address", "2001:db8::7", "2001:db8::/64"),
        ("address", "2001:db8:1:2::/48", "2001:db8:1::/48"),
    ],
)
def test_who_a_level_is_for_is_stored_in_one_form(kind, given, stored):
    assert subject_of(kind, given) == stored
    if kind == "address":
        assert stored in subjects_of(stored.partition("/")[0])


@pytest.mark.parametrize(
    ("kind", "given"), [("user", "x"), ("user", "0"), ("address", "1.2.3"), ("address", "1.2.3.0/25")]
)
def test_who_is_nobody_is_refused(kind, given):
    with pytest.raises(ProblemsError):
        subject_of(kind, given)
