"""The replay upstream answers, and misbehaves, as the real ones do: over HTTP, on loopback, the same each time."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from douban_pipeline.demo.answers import douban_fields
from douban_pipeline.demo.faults import ENDPOINTS, FAULTS, Fault, Faults
from douban_pipeline.demo.replay import ReplayServer


def subject(number, title, year, **more):
    return {
        "id": number, "title": title, "original_title": title, "aka": [], "year": year, "regions": ["中国大陆"],
        "languages": ["汉语普通话"], "directors": ["某导演"], "writers": [], "actors": ["甲", "乙"], "genres": ["剧情"],
        "duration_min": None, "episodes": None, "kind": "movie", "rating": None, "votes": None, "pubdates": [],
        "summary": "", **more,
    }  # fmt: skip


FAREWELL = subject(
    1291546, "霸王别姬", 1993, aka=["再见，我的妾", "Farewell My Concubine"], regions=["中国大陆", "中国香港"],
    directors=["陈凯歌"], actors=["张国荣", "张丰毅", "巩俐"], genres=["剧情", "爱情"], duration_min=171, rating=9.6,
    votes=2400000, pubdates=["1993-07-26(中国大陆)", "1993-01-01(中国香港)"], summary="两个伶人的半生。",
)  # fmt: skip
JOY = subject(25853071, "庆余年", 2019, kind="tv", episodes=46, duration_min=45, rating=8.0, votes=700000)
JOY2 = subject(34937650, "庆余年 第二季", 2024, kind="tv", episodes=36, aka=["庆余年2"], rating=7.2, votes=400000)
WAR = subject(1292223, "1917", 2019, original_title="1917", regions=["美国", "英国"], directors=["萨姆·门德斯"])
NOBODY = subject(30000001, "无人之地", 2020, directors=[], actors=[], regions=[], languages=[], genres=[])
ILL = subject(30000002, "病条目", 2021, fault="captcha")
OTHERS = [subject(31000000 + n, f"样片{chr(0x4E00 + 7 * n)}{chr(0x5200 + 5 * n)}", 2000 + n) for n in range(24)]
SUBJECTS = [FAREWELL, JOY, JOY2, WAR, NOBODY, ILL, *OTHERS]


@pytest.fixture(scope="module")
def running():
    with ReplayServer(SUBJECTS) as server:
        yield server


@pytest.fixture
def server(running):
    running.faults.clear()
    running.requests.clear()
    return running


@pytest.fixture
def client():
    with httpx.Client(timeout=10, trust_env=False) as client:
        yield client


def douban(client, server, number, **more):
    return client.get(server.douban_url, params={"id": number, **more})


def search(client, server, query):
    return client.get(server.search_url, params={"q": query, "format": "json"})


def web_search(client, server, query):
    return client.post(server.bocha_url, json={"query": query}, headers={"Authorization": "Bearer k"})


def subjects_in(page):
    """Ids of films in a page of results, in their order."""
    found = []
    for result in page["results"]:
        url = unquote(result["url"])
        for mark in ("movie.douban.com/subject/", "m.douban.com/movie/subject/", "uri=/movie/"):
            if mark in url:
                found.append(int(url.split(mark)[1].split("/")[0].split("?")[0].split("&")[0]))
    return list(dict.fromkeys(found))


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

SHEET = {"title": "霸王别姬", "year": 1993, "directors": ["陈凯歌"], "actors": ["张国荣", "张丰毅"], "kind": "film"}


def chat(client, server, content, **more):
    messages = [{"role": "system", "content": "写简介"}, {"role": "user", "content": content}]
    return client.post(
        server.llm_url, json={"model": "a/b", "messages": messages, **more}, headers={"Authorization": "Bearer k"}
    )


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
    assert key["free_model_daily_requests"]["used"] == server.requests.count("llm")


# --- faults -----------------------------------------------------------------------------------------------------

ASK = {
    "douban": lambda client, server: douban(client, server, 1291546),
    "search": lambda client, server: search(client, server, "霸王别姬 豆瓣"),
    "suggest": lambda client, server: client.get(server.suggest_url, params={"q": "霸王别姬"}),
    "bocha": lambda client, server: web_search(client, server, "霸王别姬 豆瓣"),
    "llm": lambda client, server: chat(client, server, json.dumps(SHEET)),
    "reading": lambda client, server: chat(client, server, json.dumps(READ_THIS)),
}
READ_THIS = {"synopsis": "程蝶衣自幼学戏。", "facts": {}, "sentences": [{"number": 1, "text": "程蝶衣从小学戏"}]}


def is_answer_about_farewell(endpoint, reply):
    """Whether a careless client would take ``reply`` for what it asked."""
    if reply.status_code != 200 or ("json" not in reply.headers["content-type"] and endpoint != "douban"):
        return False
    try:
        body = reply.json()
    except ValueError:
        return False
    match endpoint:
        case "douban":
            return body["code"] == 1 and dict(body["data"] or {}).get("vod_name") == "霸王别姬"
        case "search":
            return FAREWELL["id"] in subjects_in({"results": [], **body})
        case "suggest":
            return isinstance(body, list) and any(item["id"] == "1291546" for item in body)
        case "bocha":
            return FAREWELL["id"] in subjects_in(
                {"results": ((body.get("data") or {}).get("webPages") or {}).get("value") or []}
            )
        case "reading":
            return "choices" in body and "程蝶衣自幼学戏" in body["choices"][0]["message"]["content"]
    return "choices" in body and "1993年" in body["choices"][0]["message"]["content"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "timeout"])
def test_each_fault_of_each_endpoint_and_then_health_again(server, client, endpoint, fault):
    assert is_answer_about_farewell(endpoint, ASK[endpoint](client, server))
    server.faults.add(endpoint, fault, times=1, retry_after=7)
    reply = ASK[endpoint](client, server)
    assert not is_answer_about_farewell(endpoint, reply)
    status = {"login_redirect": {302}, "forbidden": {403}, "throttled": {429}, "server_error": {500, 502}}
    assert reply.status_code in status.get(fault, {200})
    assert reply.headers.get("retry-after") == ("7" if fault == "throttled" else None)
    assert is_answer_about_farewell(endpoint, ASK[endpoint](client, server))
    assert server.requests.count(endpoint) == 3


def test_what_the_faults_look_like(server, client):
    server.faults.add("douban", "captcha")
    assert "captcha" in douban(client, server, 1291546).text
    server.faults.clear()
    server.faults.add("douban", "login_redirect")
    location = douban(client, server, 1291546).headers["location"]
    assert location.startswith(f"{server.base}/passport/login"), "a redirect must not lead off the machine"
    assert "登录豆瓣" in client.get(location).text
    server.faults.clear()
    server.faults.add("douban", "wrong_id")
    assert douban(client, server, 1291546).json()["data"]["vod_name"] not in ("霸王别姬", "")
    server.faults.add("search", "captcha")
    page = search(client, server, "霸王别姬").json()
    assert page["results"] == []
    assert ["bing", "CAPTCHA"] in page["unresponsive_engines"]
    server.faults.add("suggest", "error_in_200")
    assert client.get(server.suggest_url, params={"q": "x"}).json()["code"] == 1080
    server.faults.add("bocha", "error_in_200")
    assert web_search(client, server, "霸王别姬").json()["code"] == "500"
    server.faults.clear()
    server.faults.add("bocha", "forbidden")
    assert web_search(client, server, "霸王别姬").json()["message"] == "You do not have enough money"
    server.faults.add("llm", "error_in_200")
    body = chat(client, server, "{}").json()
    assert "error" in body
    assert "choices" not in body


def test_a_fault_of_a_subject_lasts(server, client):
    for _ in range(2):
        assert "captcha" in douban(client, server, ILL["id"]).text
    server.faults.clear()
    assert "captcha" in douban(client, server, ILL["id"]).text
    server.faults.add("douban", "server_error", match=ILL["id"], times=1)
    assert douban(client, server, ILL["id"]).status_code == 500


def test_a_subject_with_a_fault_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="nonsense"):
        ReplayServer([{**FAREWELL, "fault": "nonsense"}])


def test_a_rule_meets_only_what_it_names(server, client):
    server.faults.add("douban", "server_error", match=129154)
    server.faults.add("search", "server_error", match="余年")
    assert douban(client, server, 1291546).status_code == 200
    assert douban(client, server, 129154).status_code == 500
    assert search(client, server, "霸王别姬 豆瓣").status_code == 200
    assert search(client, server, "庆余年 豆瓣").status_code == 500


def test_rules_are_counted_across_threads():
    faults = Faults()
    faults.add("douban", "forbidden", times=50)
    taken = []

    def take():
        taken.extend(rule for _ in range(40) if (rule := faults.take("douban", "1")))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 50
    assert faults.describe() == []


@pytest.mark.parametrize(
    "rule",
    [
        {"endpoint": "douban", "fault": "sulk"},
        {"endpoint": "news", "fault": "empty"},
        {"endpoint": "douban"},
        {"endpoint": "douban", "fault": "empty", "time": 1},
        {"endpoint": "douban", "fault": "empty", "times": 0},
        {"endpoint": "douban", "fault": "empty", "times": [1]},
        {"endpoint": "douban", "fault": "throttled", "retry_after": -1},
        "captcha",
    ],
)
def test_rules_that_make_no_sense_are_refused(server, client, rule):
    with pytest.raises(ValueError, match=r"endpoint|fault|times|retry_after|rule|int"):
        Fault.parse(rule)
    for reply in (
        client.post(f"{server.base}/control/faults", json=rule),
        client.put(f"{server.base}/control/faults", json=[rule]),
    ):
        assert reply.status_code == 400
        assert reply.json()["error"]
    assert server.faults.describe() == []


def test_faults_over_http(server, client):
    control = f"{server.base}/control/faults"
    first = {"endpoint": "douban", "fault": "throttled", "match": "1291546", "times": 2, "retry_after": 30}
    first["stubborn"] = False
    assert client.put(control, json=[first]).json()["rules"] == [first]
    assert douban(client, server, 1291546).headers["retry-after"] == "30"
    assert client.post(control, json={"endpoint": "search", "fault": "empty"}).status_code == 200
    rules = client.get(control).json()["rules"]
    assert [(rule["endpoint"], rule["times"]) for rule in rules] == [("douban", 1), ("search", None)]
    assert client.delete(control).json() == {"rules": []}
    assert douban(client, server, 1291546).status_code == 200
    assert client.put(control, content=b"{").status_code == 400
    assert client.put(control, json={}).status_code == 400
    assert client.put(f"{server.base}/control/requests").status_code == 405


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


# --- the server itself ------------------------------------------------------------------------------------------


def test_one_connection_carries_many_requests(server, client):
    streams = {
        douban(client, server, one["id"]).extensions["network_stream"].get_extra_info("client_addr") for one in SUBJECTS
    }
    assert len(streams) == 1


def test_it_listens_on_loopback_only(server):
    assert urlsplit(server.base).hostname == "127.0.0.1"
    assert httpx.get(f"{server.base}/healthz", trust_env=False).json() == {"status": "ok", "subjects": len(SUBJECTS)}


def test_a_timeout_lasts_until_the_caller_gives_up(server):
    server.faults.add("douban", "timeout", times=1)
    hasty = httpx.Timeout(10, read=0.1)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(server.douban_url, params={"id": 1291546}, timeout=hasty, trust_env=False)
    assert httpx.get(server.douban_url, params={"id": 1291546}, timeout=10, trust_env=False).status_code == 200


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
    code = f"from douban_pipeline.demo.replay import serve; serve(port=0, subjects=[{JOY!r}])"
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
