"""What two readers send, in their order and forms: a desktop's that speaks Google Reader, a phone's.

The sequences were read from the sources of NetNewsWire (`ReaderAPI`) and Read You (`GoogleReaderAPI`); each
step is the request, and what the reader needs of the answer to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from douban_pipeline.core.database import run_transaction
from douban_pipeline.feeds.api.google_reader import FIRST_ID, entry_of_item, item_id
from douban_pipeline.feeds.store import entry_lists
from douban_pipeline_tests.feeds.reading_stage import PASSWORD, Shelf, an_entry, served, shelf
from douban_pipeline_tests.feeds.stage import DAY, START

READ = "user/-/state/com.google/read"
STARRED = "user/-/state/com.google/starred"
EVERYTHING = "user/-/state/com.google/reading-list"
FORM = {"content-type": "application/x-www-form-urlencoded"}
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


def test_a_session_of_read_you(at: Shelf, base: str, books: tuple[str, str, list[int]]) -> None:
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


def test_only_the_password_opens_the_api_and_it_opens_nothing_else(base: str) -> None:
    wrong = log_in(base, "wrong-password-of-a-phone")
    assert (wrong.status_code, wrong.text) == (401, "Error=BadAuthentication\n")
    listed = f"{base}/feeds/greader/reader/api/0/subscription/list"
    assert httpx.get(listed).status_code == 401
    assert httpx.get(listed, headers={"Authorization": "GoogleLogin auth=reader/0"}).status_code == 401
    auth = log_in(base).text.splitlines()[2].partition("=")[2]
    for path in ("/feeds/", "/feeds/entries/1", "/feeds/sources"):
        assert httpx.get(f"{base}{path}", headers={"Authorization": f"GoogleLogin auth={auth}"}).status_code == 401
        assert httpx.get(f"{base}{path}", headers={"Authorization": f"Bearer {PASSWORD}"}).status_code in (401, 429)


def test_guesses_are_counted_by_the_service_s_one_guard(base: str) -> None:
    tried = [log_in(base, f"{number:032x}") for number in range(6)]
    assert [answer.status_code for answer in tried] == [401] * 5 + [429]
    assert int(tried[-1].headers["retry-after"]) > 0


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
