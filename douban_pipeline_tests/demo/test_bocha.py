"""The replayed Bocha answers as its public reference says, from the same pages as the replayed SearXNG."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest

from douban_pipeline.demo.stand_ins.replay import ReplayServer
from douban_pipeline_tests.harness.fixtures.scenario import FILMS

QUERY = "长河落日记事 豆瓣"


@pytest.fixture(scope="module")
def server():
    with ReplayServer(FILMS) as running:
        yield running


@pytest.fixture(scope="module")
def client():
    with httpx.Client(timeout=10, trust_env=False, headers={"Authorization": "Bearer k"}) as client:
        yield client


def found(client, server, **more):
    body = client.post(server.bocha_url, json={"query": QUERY, **more}).json()
    return body["data"]["webPages"]["value"]


def test_it_finds_what_searxng_finds(server, client):
    body = client.post(server.bocha_url, json={"query": QUERY}).json()
    assert (body["code"], body["msg"], body["data"]["_type"]) == (200, None, "SearchResponse")
    assert body["data"]["queryContext"] == {"originalQuery": QUERY}
    results = client.get(server.search_url, params={"q": QUERY, "format": "json"}).json()["results"]
    expected = [(result["url"], result["title"], result["content"]) for result in results]
    assert [(page["url"], page["name"], page["snippet"]) for page in found(client, server)] == expected
    assert any("90000101" in url for url, _, _ in expected)
    assert body == client.post(server.bocha_url, json={"query": QUERY}).json(), "the same each time"


def test_it_keeps_to_the_sites_and_the_count(server, client):
    def hosts(include):
        return {urlsplit(page["url"]).hostname for page in found(client, server, include=include)}

    everywhere = hosts("")
    assert {"movie.douban.com", "book.douban.com"} < everywhere
    assert hosts("movie.douban.com") == {"movie.douban.com"}
    assert hosts("movie.douban.com|book.douban.com") == hosts("movie.douban.com,book.douban.com")
    assert hosts("douban.com") == {host for host in everywhere if host.endswith(".douban.com")}
    assert hosts("zhihu.org") == set()
    assert len(found(client, server, count=2)) == 2


@pytest.mark.parametrize("key", ["", "Basic x", "Bearer"])
def test_it_wants_a_key(server, client, key):
    reply = client.post(server.bocha_url, json={"query": QUERY}, headers={"Authorization": key})
    assert (reply.status_code, reply.json()["code"], reply.json()["message"]) == (401, "401", "Invalid API KEY")


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"query": " "}', b'{"query": "x", "count": 51}'])
def test_it_refuses_what_makes_no_sense(server, client, content):
    reply = client.post(server.bocha_url, content=content)
    assert (reply.status_code, reply.json()["code"]) == (400, "400")
