"""The comment service over real HTTP: what visitors, operators and other servers get, and what they never get."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import pytest
from starlette.requests import Request

from douban_pipeline.comments import explanations, identity
from douban_pipeline.comments.settings import load_settings
from douban_pipeline.comments.text_pieces import mentions, pieces
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline_tests.comments.serving import ADMIN, AUDIT, KEY, Served, served


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("comments")) as found:
        yield found


@pytest.fixture
def place(shared: Served) -> Iterator[Served]:
    yield shared
    shared.work()
    assert shared.differences() == []


def test_a_page_comes_in_one_call_with_replies_and_own_opinions(place):
    film = place.section()
    root = place.publish(2, film, "好看 [em:3] @三:3 https://a.example/x。")
    place.work()
    replies = [place.publish(user, film, f"回 {user}", root) for user in range(3, 8)]
    place.call("PUT", f"/comments/{root}/vote", 1, json={"value": 1})
    place.call("PUT", f"/comments/{replies[4]}/vote", 2, json={"value": 1})
    place.work()
    page = place.page(film, user=2)
    (item,) = page["items"]
    assert page["section"]["count"] == 6
    assert (item["id"], item["floor"], item["likes"], item["replies"]) == (root, 1, 1, 5)
    assert item["labels"] == ["owner_liked"]
    assert [reply["id"] for reply in item["preview"]] == [replies[4], replies[3], replies[2]]
    assert item["author"] == {"id": "2", "name": "用户2", "level": 0}
    assert item["pieces"] == [
        {"text": "好看 "},
        {"emoji": 3},
        {"text": " "},
        {"at": "三", "user": "3"},
        {"text": " "},
        {"link": "https://a.example/x", "host": "a.example"},
        {"text": "。"},
    ]
    assert page["votes"] == {replies[4]: 1}
    assert page["me"] == {"id": "2", "name": "用户2"}
    assert page["degraded"] == []
    listed = place.call("GET", f"/comments/{root}/replies", params={"size": 3}).json()
    assert [reply["id"] for reply in listed["items"]] == replies[:3]
    rest = place.call("GET", f"/comments/{root}/replies", params={"size": 3, "cursor": listed["next"]}).json()
    assert [reply["id"] for reply in rest["items"]] == replies[3:]
    assert rest["next"] is None


def test_pages_follow_each_other_to_the_end(place):
    film = place.section()
    roots = [place.publish(user, film, f"根 {user}") for user in range(2, 9)]
    place.work()
    for sort in ("new", "floor", "likes", "heat"):
        found, cursor = [], None
        for _ in range(9):
            page = place.page(film, sort=sort, size=3, **({"cursor": cursor} if cursor else {}))
            found += [item["id"] for item in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert sorted(found) == sorted(roots), sort


@pytest.mark.parametrize("sort", ["new", "floor", "likes", "heat"])
def test_pinned_comments_are_before_the_first_page_and_in_no_page(place, sort):
    film = place.section(owner_id=1)
    roots = [place.publish(user, film, f"根 {user}") for user in range(2, 9)]
    place.work()
    for pinned in (roots[0], roots[3], roots[6]):
        place.call("PUT", f"/comments/{pinned}/pin", 1, json={"on": True})
    place.work()
    pages, cursor = [], None
    while not pages or cursor is not None:
        pages.append(place.page(film, sort=sort, size=2, **({"cursor": cursor} if cursor else {})))
        cursor = pages[-1]["next"]
    assert [[item["id"] for item in page["pinned"]] for page in pages] == [[roots[6], roots[3], roots[0]], []]
    assert [len(page["items"]) for page in pages] == [2, 2], "pages are full"
    listed = [item["id"] for page in pages for item in page["items"]]
    assert sorted(listed) == sorted({*roots} - {roots[0], roots[3], roots[6]})


def test_a_comment_of_ones_own_is_deleted_and_restored_before_it_is_applied(place):
    film = next(place.objects)
    root = place.publish(2, film, "写错了")
    reply = place.publish(3, film, "回复", root)
    assert place.call("DELETE", f"/comments/{root}", 3).status_code == 403
    assert place.call("DELETE", f"/comments/{root}", 2).status_code == 202
    assert place.call("DELETE", f"/comments/{reply}", 3).status_code == 202
    assert place.call("POST", f"/comments/{reply}/undo", 3).status_code == 202
    place.work()
    assert place.listed(film) == []
    place.call("POST", f"/comments/{root}/undo", 2)
    place.work()
    assert place.listed(film) == [root]
    assert place.page(film)["section"]["count"] == 2


def test_a_deleted_comment_is_gone_from_every_path_and_comes_back(place):
    film = place.section()
    root = place.publish(2, film, "根")
    place.work()
    reply = place.publish(3, film, "回", root)
    place.work()
    assert place.call("GET", f"/comments/{reply}/dialog").json()["items"][0]["id"] == reply
    assert place.call("DELETE", f"/comments/{root}", 4).status_code == 403
    assert place.call("DELETE", f"/comments/{root}", 2).status_code == 202
    place.work()
    assert place.page(film)["section"]["count"] == 0
    for sort in ("new", "floor", "likes", "heat"):
        assert place.listed(film, sort=sort) == []
    for path in (f"/comments/{root}/replies", f"/comments/{reply}/dialog"):
        assert place.call("GET", path).status_code == 404
    served_to_servers = place.call("GET", "/server/comments", KEY, params={"ids": f"{root},{reply}"})
    assert served_to_servers.json() == {"comments": []}
    place.call("POST", f"/comments/{root}/undo", 2)
    place.work()
    assert place.listed(film) == [root]
    assert place.page(film)["section"]["count"] == 2


def test_owners_manage_their_section(place):
    film = place.section(owner_id=1)
    roots = [place.publish(user, film, f"根 {user}") for user in (2, 3, 4)]
    place.work()
    assert place.call("PUT", f"/comments/{roots[0]}/pin", 2, json={"on": True}).status_code == 403
    assert place.call("PUT", f"/comments/{roots[0]}/pin", 1, json={"on": True}).status_code == 202
    place.call("PUT", f"/comments/{roots[1]}/feature", 1, json={"on": True})
    place.call("DELETE", f"/comments/{roots[2]}", 1)
    place.call("PATCH", f"/sections/1/{film}", 1, json={"closed": True})
    place.work()
    page = place.page(film, sort="new")
    assert [item["id"] for item in page["pinned"]] == [roots[0]]
    assert [item["id"] for item in page["items"]] == [roots[1]]
    assert page["items"][0]["labels"] == ["featured"]
    assert page["section"]["closed"]
    answer = place.call("POST", f"/sections/1/{film}/comments", 2, json={"content": "晚了"})
    assert answer.status_code == 409


def test_advertisements_are_the_site_s_alone_and_say_so(place):
    film = place.section(owner_id=1)
    plain = place.publish(2, film, "根")
    ad = {"title": "正版片源", "link": "https://shop.example/a"}
    path, body = f"/sections/1/{film}/comments", {"content": "看这里", "ad": ad}
    assert place.call("POST", path, 1, json=body).status_code == 403
    assert place.call("POST", path, ADMIN, json={**body, "ad": {**ad, "link": "javascript:1"}}).status_code == 400
    advert = place.call("POST", path, ADMIN, json=body).json()["id"]
    place.work()
    shown = {item["id"]: (item["labels"], item["ad"]) for item in place.page(film)["items"]}
    assert shown == {plain: ([], None), advert: (["promoted", "staff"], ad)}
    assert place.call("PUT", f"/comments/{plain}/promote", 1, json={"on": True}).status_code == 401
    assert place.call("PUT", f"/comments/{plain}/promote", ADMIN, json={"on": True}).status_code == 202
    place.work()
    assert {item["id"]: item["labels"] for item in place.page(film)["items"]}[plain] == ["promoted"]


def test_what_waits_for_a_person_is_seen_by_its_author_alone(place):
    film = place.section()
    waits = place.publish(2, film, "看 https://a.example https://b.example")
    place.work()
    assert place.listed(film) == []
    shown = place.publish(3, film, "别的")
    place.work()
    assert [item["id"] for item in place.page(film, user=2)["mine"]] == [waits]
    assert place.page(film, user=3)["mine"] == []
    found = place.call("GET", "/admin/search", ADMIN, params={"status": 1, "text": "a.example"}).json()
    assert [item["id"] for item in found["items"]] == [waits]
    assert found["items"][0]["reasons"] == ["含 2 个链接"]
    trial = {"ids": [waits, shown], "status": 0, "reason": "无害"}
    assert place.call("POST", "/admin/moderate", ADMIN, json=trial).json()["dry_run"]
    place.work()
    assert place.listed(film) == [shown]
    place.call("POST", "/admin/moderate", ADMIN, json={**trial, "dry_run": False})
    place.work()
    assert place.listed(film, sort="floor") == [waits, shown]


def test_decisions_of_the_audit_stand_and_batches_are_taken_back(place):
    film = place.section()
    roots = [place.publish(user, film, f"根 {user}") for user in (2, 3)]
    place.work()
    delete = {"ids": roots, "status": 2, "reason": "违规内容", "dry_run": False}
    batch = place.call("POST", "/admin/moderate", ADMIN, json=delete).json()["batch"]
    place.work()
    assert place.listed(film) == []
    place.call("POST", "/admin/moderate", AUDIT, json={**delete, "ids": roots[:1]})
    place.work()
    place.call("POST", "/admin/undo", ADMIN, json={"batch": batch})
    place.work()
    assert place.listed(film) == roots[1:]
    refused = place.call("POST", "/admin/moderate", ADMIN, json={**delete, "status": 0, "dry_run": True}).json()
    assert refused["refused"][roots[0]] == "已由更高级别（审核）处理，不能更改"
    told = place.call("GET", f"/admin/comments/{roots[0]}", ADMIN).json()
    assert [entry["action"] for entry in told["decided"]] == ["deleted", "deleted"]
    assert told["place_by_heat"] is None
    assert told["why"] == ["未显示的评论不在热度列表中。"]
    reply = place.publish(4, film, "一条回复", parent=roots[1])
    place.work()
    shown = place.call("GET", f"/admin/comments/{roots[1]}", ADMIN).json()
    assert shown["why"][0].startswith("第 1 名，共 1 条")
    assert any(sentence.startswith("回复 +") and "1 条可见回复" in sentence for sentence in shown["why"])
    assert "不参加热度排序" in place.call("GET", f"/admin/comments/{reply}", ADMIN).json()["why"][0]


def test_a_decision_of_a_moment_ago_is_seen_to_be_on_its_way(place):
    film = place.section()
    root = place.publish(2, film, "根")
    place.work()

    def found() -> list[tuple[str, str, bool]]:
        asked = {"type": 1, "object": film, "since": "2020-01-01T00:00:00+08:00", "reports": 0}
        items = place.call("GET", "/admin/search", ADMIN, params=asked).json()["items"]
        return [(item["id"], item["status"], item["pending"]) for item in items]

    assert found() == [(root, "NORMAL", False)]
    place.call("POST", "/admin/moderate", ADMIN, json={"ids": [root], "status": 2, "reason": "违规", "dry_run": False})
    assert found() == [(root, "NORMAL", True)]
    place.work()
    assert found() == [(root, "DELETED", False)]


def test_a_rank_that_cannot_be_explained_in_time_is_told_by_its_stored_parts(place, monkeypatch):
    film = place.section()
    root = place.publish(2, film, "根")
    place.work()

    def fail(*_: object) -> tuple[int | None, list[str]]:
        raise RuntimeError("too large")

    monkeypatch.setattr(explanations, "explain_comment", fail)
    told = place.call("GET", f"/admin/comments/{root}", ADMIN).json()
    assert (told["place_by_heat"], told["why"], told["degraded"]) == (None, [], ["explanation"])
    assert set(told["heat"]["parts"]) == {"时间衰减"}


@pytest.mark.parametrize(
    ("method", "path", "who", "body", "status"),
    [
        ("GET", "/sections/1/999999/page", None, None, 404),
        ("GET", "/sections/77/1/page", None, None, 400),
        ("GET", "/sections/1/1/page?cursor=x", None, None, 400),
        ("GET", "/counts?of=abc", None, None, 400),
        ("GET", f"/counts?of=1:{10**30}", None, None, 400),
        ("GET", f"/sections/1/{10**30}/page", None, None, 400),
        ("GET", f"/sections/1/1/page?cursor={10**30}.1", None, None, 400),
        ("GET", f"/comments/{10**30}/replies", None, None, 400),
        ("GET", f"/admin/search?before={10**30}", ADMIN, None, 400),
        ("POST", f"/sections/1/{10**30}/comments", 2, {"content": "大"}, 400),
        ("POST", "/sections/1/0/comments", 2, {"content": "零"}, 400),
        ("POST", "/sections/1/100/comments", 2, {"content": "大", "parent": "9" * 19}, 400),
        ("PUT", f"/comments/{10**30}/vote", 2, {"value": 1}, 400),
        ("POST", "/sections/1/100/comments", None, {"content": "谁"}, 401),
        ("POST", "/sections/1/100/comments", "not.a.token", {"content": "谁"}, 401),
        ("POST", "/sections/1/100/comments", 2, {"content": " \u200b "}, 400),
        ("POST", "/sections/1/100/comments", 2, {"content": "长" * 2001}, 400),
        ("POST", "/sections/1/100/comments", 2, {"content": "多", "rank": 4}, 400),
        ("PUT", "/comments/12/vote", 2, {"value": 1}, 404),
        ("PUT", "/comments/12/vote", 2, {"value": 2}, 400),
        ("GET", "/admin/search", 2, None, 401),
        ("GET", "/admin/search", None, None, 401),
        ("GET", "/server/counts?of=1:1", ADMIN, None, 401),
    ],
)
def test_errors_are_problems_that_say_what_is_wrong(method, path, who, body, status, place):
    answer = place.call(method, path, who, json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["detail"]


def test_a_request_that_is_sent_twice_counts_once(place):
    film = place.section()
    body, headers = {"content": "一次"}, {"Idempotency-Key": "k1"}
    ids = {
        place.call("POST", f"/sections/1/{film}/comments", 2, json=body, headers=headers).json()["id"] for _ in range(3)
    }
    place.work()
    assert len(ids) == 1
    assert place.page(film)["section"]["count"] == 1


def test_a_key_that_was_used_for_another_request_swallows_nothing(place):
    film, other, headers = place.section(), place.section(), {"Idempotency-Key": "k2"}

    def publish(section, content):
        return place.call("POST", f"/sections/1/{section}/comments", 2, json={"content": content}, headers=headers)

    assert [publish(film, "一次").status_code for _ in range(2)] == [202, 202]
    for answer in (publish(film, "另一条"), publish(other, "一次")):
        assert answer.status_code == 409
        assert "Idempotency-Key" in answer.json()["detail"]
    place.work()
    assert place.page(film)["section"]["count"] == 1


def test_an_unchanged_page_is_not_sent_again(place):
    film = place.section()
    place.publish(2, film, "根")
    place.work()
    first = place.call("GET", f"/sections/1/{film}/page")
    again = place.call("GET", f"/sections/1/{film}/page", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    place.publish(3, film, "又")
    place.work()
    changed = place.call("GET", f"/sections/1/{film}/page", headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200


def test_other_servers_have_a_key_and_few_fields(place):
    made = place.call("PUT", "/server/sections/1/5000", KEY, json={"owner_id": 9, "title": "新片"})
    assert made.status_code == 200
    root = place.publish(2, 5000, "根")
    place.work()
    assert place.call("GET", "/server/counts?of=1:5000,1:4999", KEY).json() == {
        "counts": [{"type": 1, "object_id": 5000, "count": 1}, {"type": 1, "object_id": 4999, "count": 0}]
    }
    (found,) = place.call("GET", "/server/comments", KEY, params={"ids": root}).json()["comments"]
    assert place.call("GET", "/server/comments", KEY, params={"ids": 10**30}).json() == {"comments": []}
    assert set(found) == {"id", "root", "parent", "floor", "author", "at", "pieces", "likes", "replies", "labels"}


def test_a_server_that_asks_too_much_waits_and_impressions_are_counted(tmp_path):
    with served(tmp_path, api_keys=f"site={KEY}:2") as place:
        statuses = [place.call("GET", "/server/counts?of=1:1", KEY).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        film = place.section()
        root = place.publish(2, film, "根")
        place.work()
        view = place.page(film)["view"]
        counted = [
            place.call("POST", "/impressions", user, json={"ids": [root, "77"], "view": view}).json()
            for user in (None, None, 3, 4, 4)
        ]
        assert counted == [{"counted": number} for number in (1, 0, 1, 1, 0)]
        with place.services.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT comment_id, shown FROM cmt_impression").all() == [(int(root), 3)]


def test_guests_at_one_address_are_limited_together(tmp_path):
    with served(tmp_path, guests=True, publish_per_minute=2) as place:
        film, body = place.section(), {"content": "好看"}
        answers = [
            place.call("POST", f"/sections/1/{film}/comments", headers={"User-Agent": f"browser {number}"}, json=body)
            for number in range(3)
        ]
        assert [answer.status_code for answer in answers] == [202, 202, 429]
        place.publish(2, film, "根")


def test_guests_at_one_address_report_a_comment_once(tmp_path, monkeypatch):
    monkeypatch.setattr("douban_pipeline.comments.services.REPORTS_TO_REVIEW", 2)
    with served(tmp_path, guests=True) as place:
        film = place.section()
        root = place.publish(2, film, "根")
        place.work()
        path, body = f"/comments/{root}/report", {"reason": "spam"}
        for browser in ("a", "b", "c"):
            assert place.call("POST", path, json=body, headers={"User-Agent": browser}).status_code == 202
        place.work()
        assert place.listed(film) == [root]
        assert place.call("DELETE", path, headers={"User-Agent": "d"}).status_code == 202
        place.call("POST", path, 3, json=body)
        place.work()
        assert place.listed(film) == [root]
        place.call("POST", path, headers={"User-Agent": "d"}, json=body)
        place.work()
        assert place.listed(film) == []


def test_the_api_describes_itself_and_pages_run_only_their_own_script(place):
    described = place.client.get("/comments/openapi.json").json()
    assert "/comments/v1/sections/{kind}/{object_id}/page" in described["paths"]
    for path in ("/demo", "/comments/admin"):
        page = place.client.get(path)
        assert page.status_code == 200
        assert re.search("script-src '(self|sha256-[^']+)';", page.headers["content-security-policy"])


def test_texts_become_pieces_and_nothing_becomes_html():
    assert pieces("<b>@a</b> http:// x") == [{"text": "<b>"}, {"at": "a", "user": None}, {"text": "</b> http:// x"}]
    assert pieces("看(https://a.example/b).")[1] == {"link": "https://a.example/b", "host": "a.example"}
    assert mentions("@甲:3 @乙:4 @甲:3 @丙") == [3, 4]


@pytest.mark.parametrize(
    "link",
    [
        r"https://evil.example\@movie.douban.com/subject/1",
        r"https://evil.example\\movie.douban.com/",
        "https://movie.douban.com@evil.example/",
        "https://user:word@evil.example/",
        "https://evil.example%5c@movie.douban.com/",
    ],
)
def test_a_link_whose_host_could_be_misread_stays_text(link):
    assert all("link" not in piece for piece in pieces(f"看 {link} 吧"))


@pytest.mark.parametrize(
    "name",
    [
        "管理员",
        "管 理 员",
        "超级管理員",
        "ＡＤＭＩＮ",
        "аdmin",
        "Adm1n",
        "a.d.m.i.n",
        "adm\u200bin",
        "官方客服",
        "Moderator",
        "root",
    ],
)
def test_names_that_look_like_the_staff_are_reserved(name):
    assert identity.is_reserved(identity.cleaned(name))


def test_a_guest_may_not_be_called_what_the_staff_is(tmp_path):
    with served(tmp_path, guests=True) as place:
        refused = place.call("POST", "/sections/1/1/comments", json={"content": "你好", "name": "管理员"})
        assert refused.status_code == 400
        assert "只给本站工作人员使用" in refused.json()["detail"]
        taken = place.call("POST", "/sections/1/1/comments", json={"content": "你好", "name": " 小\u202e明 "})
        assert taken.json()["author"]["name"] == "小明"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("小明", "小明"), ("  小\u202e明\x00 ", "小明"), ("Ann\tLee", "Ann Lee"), ("Adam", "Adam"), ("\u200b", "")],
)
def test_names_are_cleaned_and_common_ones_are_free(name, shown):
    assert identity.cleaned(name) == shown
    assert not identity.is_reserved(shown)


def test_other_origins_call_the_api_where_the_setting_lists_them_with_cookies_of_the_cms(tmp_path):
    site, other = "https://www.example.com", "https://evil.example"
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    with served(tmp_path, guests=True, origins=f"{site} https://m.example.com") as place:
        path = "/comments/v1/sections/1/1/comments"
        for origin, granted in ((site, site), (other, None), (f"{site}.evil.example", None), ("null", None)):
            preflight = place.client.options(path, headers={"Origin": origin, **asked})
            assert preflight.headers.get("access-control-allow-origin") == granted
            assert (preflight.status_code == 204) == bool(granted)
            answer = place.client.post(path, headers={"Origin": origin}, json={"content": f"来自 {origin}"})
            assert answer.headers.get("access-control-allow-origin") == granted
            assert "Origin" in answer.headers["vary"]
        elsewhere = place.client.get("/healthz", headers={"Origin": site})
        assert "access-control-allow-origin" not in elsewhere.headers
        for origin, own in ((site, True), (other, False)):
            headers = [(b"sec-fetch-site", b"same-site"), (b"origin", origin.encode())]
            request = Request({"type": "http", "method": "POST", "headers": headers})
            assert place.context._is_own(request) == own
    for wrong in (
        "www.example.com",
        "https://a.example/",
        "https://*.example.com/x",
        "ftp://a.example",
        "https://u@a.example",
    ):
        with pytest.raises(SettingsError):
            load_settings(origins=wrong)


def test_the_script_is_small_and_the_page_is_a_list_without_it(place):
    film = place.section(title="无声电影")
    root = place.publish(2, film, "<script>alert(1)</script> ||凶手|| 见 https://a.example/x")
    place.work()
    first = place.publish(3, film, "回一楼", root)
    place.work()
    place.publish(4, film, "回三", first)
    place.work()
    script = place.client.get("/comments/comments.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert len(gzip.compress(script.content)) <= 30_000
    assert "innerHTML" not in script.text
    assert "eval(" not in script.text
    again = place.client.get("/comments/comments.js", headers={"If-None-Match": script.headers["etag"]})
    assert again.status_code == 304
    page = place.client.get("/demo", params={"type": 1, "id": film}).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 〔剧透〕 见 " in page
    assert 'href="https://a.example/x" rel="nofollow noopener ugc"' in page
    assert "回复 用户3" in page
    assert "凶手" not in page
    replies = place.call("GET", f"/comments/{root}/replies").json()["items"]
    assert [reply["reply_to"] for reply in replies] == [None, "用户3"]


def test_who_sent_a_text_alone_learns_what_became_of_it(place):
    def outcome(number: str, user: int = 2) -> tuple[str, str]:
        found = place.call("GET", f"/comments/{number}/outcome", user).json()
        return found["state"], found["detail"]

    film = place.section()
    first, double = place.publish(2, film, "一句话"), place.publish(2, film, "一句话")
    held = place.publish(2, film, "https://a.example https://b.example")
    assert outcome(first) == outcome(double) == ("pending", "")
    place.work()
    assert [outcome(each) for each in (first, double, held)] == [
        ("shown", ""),
        ("refused", "重复的评论"),
        ("waiting", ""),
    ]
    for stranger in (3, None):
        assert place.call("GET", f"/comments/{double}/outcome", stranger).status_code in (401, 404)
    place.call("PATCH", f"/comments/{first}", 2, json={"content": "两句话"})
    assert outcome(first) == ("pending", "")
    place.call("PATCH", f"/sections/1/{film}", 1, json={"closed": True})
    place.call("PATCH", f"/comments/{first}", 2, json={"content": "三句话"})
    place.work()
    assert outcome(first) == ("refused", "评论区已关闭")


def test_one_s_own_comment_is_edited_for_some_minutes(place):
    film = place.section()
    root = place.publish(2, film, "写错了")
    place.work()
    for who, text, status in ((3, "别人的", 403), (2, "\u3164", 400), (2, "写对了 12:34", 202)):
        answer = place.call("PATCH", f"/comments/{root}", who, json={"content": text})
        assert answer.status_code == status, answer.text
    assert answer.json()["pieces"] == [{"text": "写对了 "}, {"text": "12:34", "seconds": 754}]
    place.work()
    (item,) = place.page(film)["items"]
    assert (item["pieces"][0]["text"], bool(item["edited"])) == ("写对了 ", True)
    preview = place.call("POST", "/preview", json={"content": "a ||b||"}).json()
    assert preview == {"pieces": [{"text": "a "}, {"text": "b", "spoiler": True}]}
    place.clock.advance(minutes=16)
    assert place.call("PATCH", f"/comments/{root}", 2, json={"content": "太晚"}).status_code == 409
