"""The replay upstream answers as the real ones do: over HTTP, on loopback, the same each time."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import httpx
import pytest

from douban_pipeline.demo.stand_ins.answers import douban_fields
from douban_pipeline_tests.demo.replayed import (
    FAREWELL,
    JOY,
    JOY2,
    NOBODY,
    SHEET,
    SUBJECTS,
    WAR,
    chat,
    douban,
    search,
    subjects_in,
)
from douban_pipeline_tests.stand_ins.replay import ReplayServer

# --- douban.php -------------------------------------------------------------------------------------------------


def test_a_known_subject(server, client):
    reply = douban(client, server, 1291546)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/html")
    body = reply.json()
    assert body["code"] == 1
    data = body["data"]
    assert (data["vod_name"], data["vod_year"], data["vod_douban_score"]) == ("霸王别姬", "1993", "9.6")
    assert data["vod_reurl"] == "https://movie.douban.com/subject/1291546/"
    assert "Farewell My Concubine" in data["vod_sub"]
    assert data["vod_sub"].count("霸王别姬") == 0
    assert [name for name in FAREWELL["actors"] if name in data["vod_actor"]] == FAREWELL["actors"]
    assert "171" in data["vod_duration"]
    assert data == json.loads(douban(client, server, 1291546).text)["data"]


@pytest.mark.parametrize(("number", "code"), [(99999999, 102), ("", 101), ("abc", 101), ("١٢", 102)])
def test_an_unknown_subject(server, client, number, code):
    assert douban(client, server, number).json()["code"] == code


@pytest.mark.parametrize("number", [1291546, 99999999])
def test_jsonp(server, client, number):
    text = douban(client, server, number, callback="douban").text
    assert text.startswith("douban(")
    assert text.endswith(");")
    assert json.loads(text.removeprefix("douban(").removesuffix(");")) == douban(client, server, number).json()


def test_a_callback_that_is_no_name_is_refused(server, client):
    assert douban(client, server, 1291546, callback="alert(1)//").status_code == 400


def test_quirks_vary_by_subject_and_all_occur():
    fields = [douban_fields({**FAREWELL, "id": number, "aka": []}) for number in range(1000, 1200)]
    assert {row["vod_actor"].split("张国荣")[1].split("张丰毅")[0] for row in fields} == {",", "/", " / ", "、"}
    assert {row["vod_duration"] for row in fields} == {"171", "171分钟"}
    assert {type(row.get("vod_douban_id")) for row in fields} == {type(None), str, int}
    assert {type(row["vod_total"]) for row in fields} == {str, int}
    people = [douban_fields({**NOBODY, "id": number}) for number in range(1000, 1200)]
    assert {row["vod_director"] for row in people} == {"内详", ""}
    assert {row["vod_douban_score"] for row in people} == {"0.0"}
    assert all(isinstance(row["vod_score_num"], str | int) and float(row["vod_score"]) > 0 for row in people)


@pytest.mark.parametrize("names", [["甲/乙", "丙"], ["One, Two", "Three"], ["a/b", "c,d", "e、f"]])
def test_a_separator_is_never_inside_a_name_where_one_is_free(names):
    for number in range(40):
        joined = douban_fields({**FAREWELL, "id": number, "actors": names})["vod_actor"]
        marks = [mark for mark in (" / ", "/", ",", "、") if joined.split(mark) == names]
        assert marks or len(names) == 3


# --- search and suggest -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("霸王别姬 豆瓣", FAREWELL),
        ("霸王别姬 1993 site:movie.douban.com/subject", FAREWELL),
        ("霸王别姬 陈凯歌/张国荣 豆瓣 subject", FAREWELL),
        ("farewell my concubine 豆瓣", FAREWELL),
        ("慶餘年 2019 豆瓣", JOY),
        ("庆余年第二季 更新至36集 豆瓣", JOY2),
        ("庆余年 第二季 2024 site:movie.douban.com/subject", JOY2),
        ("1917 2019 豆瓣", WAR),
        ("无人之地 豆瓣", NOBODY),
    ],
)
def test_search_finds_by_title_with_words_of_no_use_around_it(server, client, query, first):
    page = search(client, server, query).json()
    assert subjects_in(page)[0] == first["id"]
    assert page["query"] == query
    assert {"answers", "corrections", "infoboxes", "suggestions", "unresponsive_engines"} <= set(page)
    assert page["unresponsive_engines"] == []
    assert all({"url", "title", "content", "engine"} <= set(result) for result in page["results"])
    assert page == search(client, server, query).json()


def test_search_also_finds_the_other_season(server, client):
    assert set(subjects_in(search(client, server, "庆余年 豆瓣").json())) == {JOY["id"], JOY2["id"]}


def test_search_without_a_find_holds_pages_but_no_film(server, client):
    page = search(client, server, "查无此片名哦 豆瓣").json()
    assert subjects_in(page) == []
    assert page["results"]


def test_search_shows_many_forms_of_address_and_ids_that_are_no_films(server, client):
    wide = [
        result["url"] for one in SUBJECTS for result in search(client, server, f"{one['title']} 豆瓣").json()["results"]
    ]
    narrow = [
        result["url"]
        for one in SUBJECTS
        for result in search(client, server, f"{one['title']} site:movie.douban.com/subject").json()["results"]
    ]
    hosts = {urlsplit(url).hostname for url in wide}
    assert {"movie.douban.com", "m.douban.com", "www.douban.com", "book.douban.com", "music.douban.com"} <= hosts
    assert "www.zhihu.com" in hosts
    assert {urlsplit(url).hostname for url in narrow} == {"movie.douban.com"}
    for part in (
        "/comments?status=P",
        "?from=showing",
        "/reviews?sort=hotest",
        "link2/?url=",
        "dispatch?uri=",
        "http://",
    ):
        assert any(part in url for url in wide), part
    ids = {one["id"] for one in SUBJECTS}
    assert not any(int(url.split("/")[4]) in ids for url in wide if "book." in url or "music." in url)


@pytest.mark.parametrize(("params", "status"), [({"q": "霸王别姬"}, 403), ({"q": " ", "format": "json"}, 400)])
def test_search_refuses_what_searxng_refuses(server, client, params, status):
    assert client.get(server.search_url, params=params).status_code == status


def test_suggest(server, client):
    found = client.get(server.suggest_url, params={"q": "庆余年"}).json()
    assert [item["id"] for item in found] == [str(JOY["id"]), str(JOY2["id"])]
    assert found[0]["year"] == "2019"
    assert found[0]["type"] == "movie"
    assert found[0]["episode"] == "46"
    assert client.get(server.suggest_url, params={"q": ""}).json() == []


# --- OpenRouter -------------------------------------------------------------------------------------------------


def test_a_schema_names_the_property(server, client):
    schema = {"properties": {"used": {"type": "array"}, "synopsis": {"type": "string"}, "note": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    body = chat(client, server, json.dumps(SHEET), response_format=wanted).json()
    content = json.loads(body["choices"][0]["message"]["content"])
    assert "《霸王别姬》" in content["synopsis"]
    assert (content["used"], content["note"]) == ([], "")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic x"}, {"Authorization": "Bearer"}])
def test_no_key_no_answer(server, client, headers):
    for reply in (
        client.post(server.llm_url, json={"messages": []}, headers=headers),
        client.get(f"{server.base}/api/v1/key", headers=headers),
    ):
        assert reply.status_code == 401
        assert reply.json()["error"]["code"] == 401


def test_requests_that_make_no_sense(server, client):
    headers = {"Authorization": "Bearer k"}
    for content in (b"{", b"[]", b'{"messages": []}', b'{"messages": 3}'):
        assert client.post(server.llm_url, content=content, headers=headers).status_code == 400
    assert client.get(f"{server.base}/nowhere").status_code == 404
    key = client.get(f"{server.base}/api/v1/key", headers=headers).json()["data"]
    assert key["free_model_daily_requests"]["remaining"] == 1000


# --- the server itself ------------------------------------------------------------------------------------------


def test_requests_are_remembered(server, client):
    douban(client, server, 1291546)
    douban(client, server, 99999999)
    search(client, server, "霸王别姬 豆瓣")
    seen = client.get(f"{server.base}/control/requests").json()
    assert seen["douban"]["count"] == 2
    assert seen["douban"]["keys"] == ["1291546", "99999999"] == server.requests.keys("douban")
    assert seen["douban"]["times"] == sorted(seen["douban"]["times"])
    assert len(seen["douban"]["times"]) == 2
    assert seen["search"]["keys"] == ["霸王别姬 豆瓣"]
    assert seen["llm"] == {"count": 0, "times": [], "keys": []}
    client.delete(f"{server.base}/control/requests")
    assert server.requests.count("douban") == 0


def test_one_connection_carries_many_requests(server, client):
    streams = {
        douban(client, server, one["id"]).extensions["network_stream"].get_extra_info("client_addr") for one in SUBJECTS
    }
    assert len(streams) == 1


def test_it_listens_on_loopback_only(server):
    assert urlsplit(server.base).hostname == "127.0.0.1"
    assert httpx.get(f"{server.base}/healthz", trust_env=False).json() == {"status": "ok", "subjects": len(SUBJECTS)}


def test_stopping_frees_those_kept_waiting_and_the_port():
    closing = contextlib.ExitStack()
    server = closing.enter_context(ReplayServer(SUBJECTS))
    port = urlsplit(server.base).port
    server.faults.add("search", "timeout")
    outcome = []

    def wait():
        try:
            httpx.get(server_url, params={"q": "x", "format": "json"}, timeout=60, trust_env=False)
        except httpx.HTTPError as error:
            outcome.append(type(error))

    server_url = server.search_url
    idle = socket.create_connection(("127.0.0.1", port))
    caller = threading.Thread(target=wait)
    caller.start()
    with httpx.Client(trust_env=False) as client:
        while not outcome and not client.get(f"{server.base}/control/requests").json()["search"]["count"]:
            pass
    closing.close()
    caller.join(10)
    assert outcome == [httpx.RemoteProtocolError]
    assert idle.recv(1) == b""
    idle.close()
    with ReplayServer(SUBJECTS, port=port) as again:
        assert urlsplit(again.base).port == port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_as_a_process_it_says_one_line_and_stops_cleanly(number):
    code = f"from douban_pipeline.demo.stand_ins.replay import serve; serve(port=0, subjects=[{JOY!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        url = line.split()[-1]
        assert line.startswith("replay upstream ready at http://127.0.0.1:")
        with httpx.Client(trust_env=False) as client:
            assert client.get(f"{url}/douban.php", params={"id": JOY["id"]}).json()["data"]["vod_name"] == "庆余年"
            process.send_signal(number)
            rest, errors = process.communicate(timeout=20)
        assert (process.returncode, rest, errors) == (0, "", "")
    finally:
        process.kill()
        process.communicate()
