"""The replay upstream misbehaves as the real ones do, when and where a rule says so."""

from __future__ import annotations

import json
import threading

import httpx
import pytest

from douban_pipeline_tests.demo.replayed import FAREWELL, ILL, SHEET, chat, douban, search, subjects_in, web_search
from douban_pipeline_tests.stand_ins.faults import ENDPOINTS, FAULTS, Fault, Faults
from douban_pipeline_tests.stand_ins.replay import ReplayServer

ASK = {
    "douban": lambda client, server: douban(client, server, 1291546),
    "search": lambda client, server: search(client, server, "霸王别姬 豆瓣"),
    "suggest": lambda client, server: client.get(server.suggest_url, params={"q": "霸王别姬"}),
    "bocha": lambda client, server: web_search(client, server, "霸王别姬 豆瓣"),
    "llm": lambda client, server: chat(client, server, json.dumps(SHEET)),
    "reading": lambda client, server: chat(client, server, json.dumps(READ_THIS)),
}
READ_THIS = {"synopsis": "程蝶衣自幼学戏。", "facts": {}, "parts": [{"number": 1, "text": "程蝶衣自幼学戏"}]}


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


def test_a_timeout_lasts_until_the_caller_gives_up(server):
    server.faults.add("douban", "timeout", times=1)
    hasty = httpx.Timeout(10, read=0.1)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(server.douban_url, params={"id": 1291546}, timeout=hasty, trust_env=False)
    assert httpx.get(server.douban_url, params={"id": 1291546}, timeout=10, trust_env=False).status_code == 200
