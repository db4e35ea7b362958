"""What two readers send, in their order and forms: a desktop's that speaks Google Reader, a phone's that speaks both.

The sequences were read from the sources of NetNewsWire (`ReaderAPI`) and Read You (`FeverAPI`, `GoogleReaderAPI`); each
step is the request, and what the reader needs of the answer to go on.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from douban_pipeline.core.database import run_transaction
from douban_pipeline.feeds.api.google_reader import FIRST_ID, entry_of_item, item_id
from douban_pipeline.feeds.icons import fetch_icons
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.store import entry_lists, sources
from douban_pipeline_tests.feeds.reading_stage import PASSWORD, Shelf, an_entry, served, shelf
from douban_pipeline_tests.feeds.stage import DAY, START, Site

READ = "user/-/state/com.google/read"
STARRED = "user/-/state/com.google/starred"
EVERYTHING = "user/-/state/com.google/reading-list"
FORM = {"content-type": "application/x-www-form-urlencoded"}
KEY = hashlib.md5(f"reader:{PASSWORD}".encode()).hexdigest()
HTML = "<p onclick='x()'>正文<script>alert(1)</script><img src='/p.png' onerror='y()'></p>"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Shelf]:
    with shelf(tmp_path, allow_private=False) as opened:
        yield opened


@pytest.fixture
def base(at: Shelf) -> Iterator[str]:
    with served(at.services, token="a-token-of-this-service-0123456789") as address:
        yield address


@pytest.fixture
def books(at: Shelf) -> tuple[str, str, list[int]]:
    news, films = at.source("新闻"), at.source("电影", "看 & 听")
    ids = at.publish(news, *(an_entry(f"n{number}", START - number * DAY) for number in range(3)))
    ids += at.publish(films, an_entry("f", START - 60, content=HTML))
    return news, films, ids


def log_in(base: str, password: str = PASSWORD) -> httpx.Response:
    return httpx.post(f"{base}/feeds/greader/accounts/ClientLogin", data={"Email": "reader", "Passwd": password})


def test_a_session_of_netnewswire(at: Shelf, base: str, books: tuple[str, str, list[int]]) -> None:
    news, films, ids = books
    answer = log_in(base)
    assert answer.status_code == 200
    lines = dict(line.split("=", 1) for line in answer.text.splitlines())
    assert all(line.count("=") == 1 for line in answer.text.splitlines())  # it splits at every one
    client = httpx.Client(
        base_url=f"{base}/feeds/greader/reader/api/0/", headers={"Authorization": f"GoogleLogin auth={lines['Auth']}"}
    )
    with client:
        tags = client.get("tag/list", params={"output": "json"}).json()["tags"]
        assert {"id": "user/-/label/看 & 听", "type": "folder"} in tags
        found = client.get("subscription/list", params={"output": "json"}).json()["subscriptions"]
        assert {each["title"]: [of["label"] for of in each["categories"]] for each in found} == {
            "新闻": ["未分组"],
            "电影": ["看 & 听"],
        }
        assert {each["id"] for each in found} == {f"feed/{news}", f"feed/{films}"}
        assert all(each["url"].startswith("https://") for each in found)
        # Moments are sent with fractions, and ids are turned into unpadded hexadecimal digits.
        since = {"ot": f"{START - 90 * DAY}.25", "n": "10000", "output": "json", "xt": READ, "s": EVERYTHING}
        refs = client.get("stream/items/ids", params=since).json()["itemRefs"]
        assert sorted(int(each["id"]) for each in refs) == [item_id(each) for each in ids]
        token = client.get("token").text
        wanted = "&".join(f"i={int(each['id']):x}" for each in refs)
        items = client.post("stream/items/contents", content=f"T={token}&output=json&{wanted}", headers=FORM).json()
        assert isinstance(items["id"], str)
        assert isinstance(items["updated"], int)
        by_id = {int(each["id"].rpartition("/")[2], 16) - FIRST_ID: each for each in items["items"]}
        assert sorted(by_id) == ids
        film = by_id[ids[3]]
        assert film["summary"]["content"].startswith("<p>正文<img ")
        assert "alert" not in film["summary"]["content"]
        assert "onerror" not in film["summary"]["content"]
        assert film["origin"] == {
            "streamId": f"feed/{films}",
            "title": "电影",
            "htmlUrl": f"https://{'电影'.encode().hex()}.example/",
        }
        assert film["alternate"][0]["href"] == "https://a.example/f"
        assert film["categories"] == [EVERYTHING, "user/-/label/看 & 听"]
        # Marks: padded ids, forms that are not escaped.
        for state, sign, entry_id in ((READ, "a", ids[0]), (STARRED, "a", ids[1]), (READ, "a", ids[2])):
            form = f"T={token}&i={item_id(entry_id):016x}&{sign}={state}"
            assert client.post("edit-tag", content=form, headers=FORM).text == "OK"
        assert (
            client.post("edit-tag", content=f"T={token}&i={item_id(ids[2]):016x}&r={READ}", headers=FORM).text == "OK"
        )
        assert at.marks() == {
            ids[0]: (False, False),
            ids[1]: (True, True),
            ids[2]: (True, False),
            ids[3]: (True, False),
        }
        unread = client.get("stream/items/ids", params={"s": EVERYTHING, "n": "10000", "xt": READ}).json()
        assert [int(each["id"]) - FIRST_ID for each in unread["itemRefs"]] == [ids[3], ids[1], ids[2]]
        starred = client.get("stream/items/ids", params={"s": STARRED, "n": "10000"}).json()["itemRefs"]
        assert [int(each["id"]) - FIRST_ID for each in starred] == [ids[1]]
        # Sources: another name, another folder, none, a folder's name, and away.
        renamed = f"T={token}&s=feed/{news}&ac=edit&t=要闻".encode()
        assert client.post("subscription/edit", content=renamed, headers=FORM).text == "OK"
        move = {"T": token, "s": f"feed/{news}", "ac": "edit", "a": "user/-/label/看 & 听"}
        assert client.post("subscription/edit", data=move).text == "OK"
        labels = {"T": token, "s": "user/-/label/看 & 听", "dest": "user/-/label/文化"}
        assert client.post("rename-tag", data=labels).text == "OK"
        found = client.get("subscription/list", params={"output": "json"}).json()["subscriptions"]
        assert {(each["title"], each["categories"][0]["label"]) for each in found} == {
            ("要闻", "文化"),
            ("电影", "文化"),
        }
        counts = {each["id"]: each["count"] for each in client.get("unread-count").json()["unreadcounts"]}
        assert counts == {EVERYTHING: 3, f"feed/{news}": 2, f"feed/{films}": 1, "user/-/label/文化": 3}
        gone = {"T": token, "s": f"feed/{films}", "ac": "unsubscribe"}
        assert client.post("subscription/edit", data=gone).text == "OK"
        assert [row.source_id for row in at.rows()] == [news] * 3


def test_a_session_of_read_you_with_google_reader(at: Shelf, base: str, books: tuple[str, str, list[int]]) -> None:
    news, _, ids = books
    form = {"output": "json", "Email": "reader", "Passwd": PASSWORD, "accountType": "HOSTED_OR_GOOGLE"}
    auth = httpx.post(f"{base}/feeds/greader/accounts/ClientLogin", data=form).json()["Auth"]
    with httpx.Client(
        base_url=f"{base}/feeds/greader/", headers={"Authorization": f"GoogleLogin auth={auth}"}
    ) as client:
        token = client.get("reader/api/0/token").text
        assert client.get("reader/api/0/user-info?output=json").json()["userName"] == "reader"
        read = client.get(f"reader/api/0/stream/items/ids?output=json&s={READ}&ot={START - DAY}&n=10000").json()
        assert read == {"itemRefs": []}
        padded = [("i", f"{item_id(each):016x}") for each in ids[:2]]
        sent = "&".join(f"{name}={value}" for name, value in [*padded, ("T", token)])
        items = client.post("reader/api/0/stream/items/contents?output=json", content=sent, headers=FORM).json()[
            "items"
        ]
        assert [each["title"] for each in items] == ["标题 n0", "标题 n1"]
        full = f"tag:google.com,2005:reader/item/{item_id(ids[0]):016x}"
        client.post("reader/api/0/edit-tag?output=json", data={"i": full, "a": STARRED, "T": token})
        assert at.marks()[ids[0]] == (True, True)
        # What came after what the reader has seen stays unread.
        at.clock.at += 100
        at.publish(news, an_entry("later", START + 50))
        until = {"s": f"feed/{news}", "ts": str(START * 1_000_000), "T": token}
        assert client.post("reader/api/0/mark-all-as-read?output=json", data=until).text == "OK"
        assert [row.guid for row in at.rows() if row.unread] == ["f", "later"]
        stale = client.post("reader/api/0/edit-tag", data={"i": full, "r": STARRED, "T": "old"})
        assert (stale.status_code, stale.headers["x-reader-google-bad-token"]) == (401, "true")
        refused = client.post("reader/api/0/subscription/quickadd", data={"quickadd": "http://10.0.0.1/", "T": token})
        assert refused.json()["numResults"] == 0
        assert "内网" in refused.json()["error"]


ADDRESS = "https://site.example/feed/"
ASKED = f"{ADDRESS}?tag=a%26b&n=1"
"""Addresses of sources, by which some readers name them."""


@pytest.mark.parametrize(
    ("call", "entries"),
    [
        # RSS Guard, Read You (both ways), Vienna, Fluent Reader.
        ("stream/items/ids?output=json&n=200000&s=feed/{news}&xt={read}&ot=973551600", [0, 1]),
        ("stream/items/ids?s={all}&it={read}&ot=1&n=1000", [2, 5]),
        ("stream/items/ids?output=json&s={read}", [2, 5]),
        ("stream/contents?output=json&n=250", [0, 1, 2, 3, 4, 5, 6]),
        ("stream/contents/feed/{address}", [3]),
        ("stream/contents?s=feed/{address}", [3]),
        ("stream/contents/feed/{asked}?n=20", [6]),
        ("stream/items/ids?s=feed/{asked}", [6]),
        ("stream/items/ids?s=user/-/label/{folder}&xt={read}", [3, 4]),
        ("stream/items/ids?s=user/-/label/{folder}&it={starred}", [4]),
    ],
)
def test_what_other_readers_ask_for(at: Shelf, base: str, call: str, entries: list[int]) -> None:
    news, site = at.source("新闻"), at.source("站点", "看 & 听", url=ADDRESS)
    films, asked = at.source("电影", "看 & 听"), at.source("标签", url=ASKED)
    ids = at.publish(news, *(an_entry(f"n{number}", START - number) for number in range(3)))
    ids += at.publish(site, an_entry("s", START - 60))
    ids += at.publish(films, an_entry("f", START - 70), an_entry("g", START - 80))
    ids += at.publish(asked, an_entry("a", START - 90))
    run_transaction(at.services.engine, lambda connection: entry_lists.mark(connection, [ids[2], ids[5]], unread=False))
    run_transaction(at.services.engine, lambda connection: entry_lists.mark(connection, [ids[0], ids[4]], starred=True))
    auth = log_in(base).text.splitlines()[2].partition("=")[2]
    names = {
        "news": news,
        "address": quote(ADDRESS, safe=""),
        "asked": quote(ASKED, safe=""),
        "folder": "看%20%26%20听",
    }
    sent = call.format(**names, read=READ, starred=STARRED, all=EVERYTHING)
    answer = httpx.get(
        f"{base}/feeds/greader/reader/api/0/{sent}", headers={"Authorization": f"GoogleLogin auth={auth}"}
    )
    assert answer.status_code == 200
    found = answer.json()
    got = found["itemRefs"] if "itemRefs" in found else found["items"]
    assert sorted(entry_of_item(each["id"]) or 0 for each in got) == sorted(ids[number] for number in entries)
    assert all(each["canonical"][0]["href"] for each in found.get("items", ()))


def test_pages_of_a_stream_have_every_entry_once(at: Shelf, base: str) -> None:
    source = at.source("新闻")
    ids = at.publish(source, *(an_entry(f"n{number}", START - number // 3) for number in range(25)))
    auth = log_in(base).text.splitlines()[2].partition("=")[2]
    with httpx.Client(base_url=base, headers={"Authorization": f"GoogleLogin auth={auth}"}) as client:
        for order in ("d", "o"):
            found: list[int] = []
            following = ""
            while True:
                asked = {"n": "4", "r": order, "c": following}
                page = client.get(f"/feeds/greader/reader/api/0/stream/contents/feed/{source}", params=asked).json()
                found += [entry_of_item(each["id"]) or 0 for each in page["items"]]
                following = page.get("continuation", "")
                if not following:
                    break
            assert sorted(found) == sorted(ids)


def test_a_session_of_read_you_with_fever(at: Shelf, base: str, books: tuple[str, str, list[int]]) -> None:
    news, films, ids = books
    at.publish(news, *(an_entry(f"old{number}", START - 10 * DAY - number) for number in range(60)))

    def ask(query: str) -> dict:
        answer = httpx.post(f"{base}/feeds/fever/?api=&{query}", data={"api_key": KEY})
        assert answer.status_code == 200
        assert answer.json()["auth"] == 1
        return answer.json()

    assert ask("")["api_version"] == 3
    groups = ask("groups")
    titles = {each["id"]: each["title"] for each in groups["groups"]}
    feeds = ask("feeds")
    members = {
        int(number): titles[each["group_id"]]
        for each in feeds["feeds_groups"]
        for number in each["feed_ids"].split(",")
    }
    assert {each["title"]: members[each["id"]] for each in feeds["feeds"]} == {"新闻": "未分组", "电影": "看 & 听"}
    assert all(isinstance(each["id"], int) and each["id"] < 2**31 for each in feeds["feeds"])
    assert ask("favicons")["favicons"] == []
    assert {each["favicon_id"] for each in feeds["feeds"]} == {0}
    png = b"\x89PNG\r\n\x1a\n picture"
    with Site({"/i.png": png, "/page": b"<html>", "/v.svg": b"<svg onload=x>"}) as site:
        own = open_services(at.services.settings.model_copy(update={"allow_private": True}), at.clock)
        for source_id, name in ((news, "i.png"), (films, "v.svg")):
            run_transaction(
                at.services.engine,
                lambda connection, source_id=source_id, name=name: sources.update_source(
                    connection, source_id, {"favicon": f"{site.base}/{name}"}, 0
                ),
            )
        assert (fetch_icons(own), fetch_icons(own), len(site.asked)) == (1, 0, 2), "each is asked for once"
        own.close()
    [icon] = ask("favicons")["favicons"]
    assert icon["data"] == f"image/png;base64,{base64.b64encode(png).decode()}"
    assert {each["title"]: each["favicon_id"] for each in ask("feeds")["feeds"]} == {"新闻": icon["id"], "电影": 0}
    # All pages, beginning with no id at all, until one is not full.
    found: list[dict] = []
    since = ""
    while True:
        page = ask(f"items&since_id={since}")["items"]
        found += page
        if len(page) < 50:
            break
        since = page[-1]["id"]
    assert [each["id"] for each in found] == [row.entry_id for row in at.rows()]
    film = next(each for each in found if each["id"] == ids[3])
    assert film["html"].startswith("<p>正文<img ")
    assert "onerror" not in film["html"]
    assert [each["id"] for each in ask(f"items&with_ids={ids[1]},{ids[3]}")["items"]] == [ids[1], ids[3]]
    assert [each["id"] for each in ask(f"items&max_id={ids[3]}")["items"]] == [ids[2], ids[1], ids[0]]
    assert len(ask("unread_item_ids")["unread_item_ids"].split(",")) == 64
    assert ask("saved_item_ids")["saved_item_ids"] == ""
    ask(f"&mark=item&as=saved&id={ids[0]}")
    ask(f"&mark=item&as=read&id={ids[0]}")
    assert at.marks()[ids[0]] == (False, True)
    ask(f"&mark=item&as=unread&id={ids[0]}")
    number = next(each["id"] for each in feeds["feeds"] if each["title"] == "电影")
    ask(f"&mark=feed&as=read&id={number}&before={2**63 // 1000}")
    assert [row.source_id for row in at.rows() if not row.unread] == [films]
    at.clock.at += 100
    at.publish(news, an_entry("later", START + 50))
    group = next(number for number, title in titles.items() if title == "未分组")
    ask(f"&mark=group&as=read&id={group}&before={START}")
    assert [row.guid for row in at.rows() if row.unread] == ["later"]
    ask("&mark=group&as=read&id=0")
    assert not any(row.unread for row in at.rows())


def test_a_form_in_parts_is_understood(base: str, books: tuple[str, str, list[int]]) -> None:
    answer = httpx.post(f"{base}/feeds/fever/?api&items", files={"api_key": (None, KEY), "max_id": (None, "0")})
    assert len(answer.json()["items"]) == 4


def test_only_the_password_opens_the_apis_and_it_opens_nothing_else(base: str) -> None:
    wrong = log_in(base, "wrong-password-of-a-phone")
    assert (wrong.status_code, wrong.text) == (401, "Error=BadAuthentication\n")
    listed = f"{base}/feeds/greader/reader/api/0/subscription/list"
    assert httpx.get(listed).status_code == 401
    assert httpx.get(listed, headers={"Authorization": "GoogleLogin auth=reader/0"}).status_code == 401
    assert httpx.post(f"{base}/feeds/fever/?api&groups").json() == {"api_version": 3, "auth": 0}
    auth = log_in(base).text.splitlines()[2].partition("=")[2]
    for path in ("/feeds/", "/feeds/entries/1", "/feeds/sources"):
        assert httpx.get(f"{base}{path}", headers={"Authorization": f"GoogleLogin auth={auth}"}).status_code == 401
        assert httpx.get(f"{base}{path}", headers={"Authorization": f"Bearer {PASSWORD}"}).status_code in (401, 429)


def test_guesses_are_counted_by_the_service_s_one_guard(base: str) -> None:
    tried = [httpx.post(f"{base}/feeds/fever/?api", data={"api_key": f"{number:032x}"}) for number in range(6)]
    assert [answer.status_code for answer in tried] == [200] * 5 + [429]
    assert int(tried[-1].headers["retry-after"]) > 0
    assert log_in(base).status_code == 429


@pytest.mark.parametrize(
    "given", ["", "x", "0", "-1", "9" * 40, "tag:google.com,2005:reader/item/", "ffffffffffffffff", "１７５", "\u0000"]
)
def test_what_is_no_item_is_none(given: str) -> None:
    assert entry_of_item(given) is None


@pytest.mark.parametrize("key", [1, 10, 16, 255, 4096, 2**31])
def test_an_item_is_found_by_every_form_of_its_id(key: int) -> None:
    number = item_id(key)
    for form in (str(number), f"{number:x}", f"{number:016x}", f"tag:google.com,2005:reader/item/{number:016x}"):
        assert entry_of_item(form) == key
