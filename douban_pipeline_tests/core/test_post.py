"""A question in a body: the same path as any call, nothing followed, nothing of body and headers shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from douban_pipeline.core.errors import (
    QuotaSpent,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.http import FetchedAnswer, Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.payload import read_json
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

GOOD = {"answer": 42, "took": 812}
PAYLOAD = {"query": "片名 豆瓣", "count": 10, "deep": {"flag": False, "none": None}}
KEY = "sk-very-secret"
BEARER = {"Authorization": f"Bearer {KEY}"}


def parse(body: bytes) -> Any:
    return read_json("bocha", body)


def post(fetcher: Fetcher, url: str, payload: dict[str, Any] = PAYLOAD, **options: Any) -> FetchedAnswer[Any]:
    return fetcher.post(url, payload, Call(key="search:plain:片名", parser_version="v1", parse=parse, **options))


def refused(fetcher: Fetcher, url: str, **options: Any) -> SourceError:
    with pytest.raises(SourceError) as caught:
        post(fetcher, url, **options)
    return caught.value


def archived(house: House) -> list[tuple[int, str]]:
    table = house.tables.snapshot
    with house.engine.connect() as connection:
        rows = connection.execute(select(table.c.status, table.c.request_key).order_by(table.c.snapshot_id)).all()
    return [(row.status, row.request_key) for row in rows]


def test_the_body_is_sent_as_json_and_the_answer_archived(house: House, source: Source) -> None:
    source.says(GOOD)
    fetched = post(house.fetcher("bocha", headers=BEARER), source.url + "?version=2")
    assert [json.loads(body) for body in source.bodies] == [PAYLOAD]
    assert source.asked == [("/douban.php", {"version": ["2"]})]
    (headers,) = source.headers
    assert (headers["content-type"], headers["authorization"]) == ("application/json", f"Bearer {KEY}")
    assert fetched == FetchedAnswer(GOOD, fetched.snapshot_id, START, from_cache=False)
    snapshot = house.archive.get(fetched.snapshot_id)
    assert (snapshot.source, snapshot.request_key, json.loads(snapshot.body)) == ("bocha", "search:plain:片名", GOOD)
    assert house.status("bocha").granted == 1


@pytest.mark.parametrize(
    ("say", "kind", "calls"),
    [
        (Say(status=500), SourceUnavailable, 3),
        (Say(status=403), SourceWall, 1),
        (Say(status=429), SourceThrottled, 1),
        (Say({}, status=402), SourceUnavailable, 1),
        (Say(status=302, headers={"Location": "https://accounts.douban.com/passport/login"}), SourceWall, 1),
        (Say(status=302, headers={"Location": "/elsewhere"}), SourceUnavailable, 1),
        (Say(GOOD, status=307, headers={"Location": "/elsewhere"}), SourceUnavailable, 1),
    ],
)
def test_each_fault_is_the_error_it_stands_for(
    house: House, source: Source, say: Say, kind: type[SourceError], calls: int
) -> None:
    source.says(say)
    error = refused(house.fetcher("bocha", headers=BEARER), source.url + "?token=hidden")
    assert type(error) is kind
    assert len(source.asked) == calls, "a redirect is never followed"
    assert not any(secret in str(error) for secret in (KEY, "hidden", "片名"))
    status = house.status("bocha")
    assert status.in_use == 0
    assert (status.state is GateState.CLOSED) == (kind is SourceUnavailable)


def test_the_answer_is_archived_before_anybody_looks_at_it(house: House, source: Source) -> None:
    def refuse(status: int, headers: httpx.Headers, body: bytes) -> None:
        assert archived(house) == [(403, "search:plain:片名")]
        assert (status, headers["x-why"], body) == (403, "money", b'{"code": "403"}')
        raise SourceUnpaid("bocha", "no money left")

    source.says(Say({"code": "403"}, status=403, headers={"X-Why": "money"}))
    assert type(refused(house.fetcher("bocha"), source.url, refuse=refuse)) is SourceUnpaid


def test_who_has_nothing_to_say_leaves_it_to_the_general_rules(house: House, source: Source) -> None:
    looked: list[int] = []
    source.says(Say(status=403), Say(GOOD))
    fetcher = house.fetcher("bocha")
    error = refused(
        fetcher,
        source.url,
        refuse=lambda status, _headers, _body: looked.append(status),
        hints={403: "look at the key"},
    )
    assert (type(error), error.reason, looked) == (SourceWall, "HTTP 403; look at the key", [403])


class Tokens:
    """A gate that remembers what it was asked for and told."""

    def __init__(self) -> None:
        self.reserved: list[int] = []
        self.tokens_used: int | None = None

    @contextmanager
    def slot(self, source: str, *, tokens: int = 0, **_options: object) -> Iterator[Tokens]:
        self.reserved.append(tokens)
        yield self


def test_tokens_are_reserved_and_then_reported(house: House, source: Source) -> None:
    gate = Tokens()
    with Fetcher("openrouter", gate, house.archive, house.clock) as fetcher:  # type: ignore[arg-type]
        source.says(GOOD, Say(b"{"))
        post(fetcher, source.url, tokens=900, tokens_of=lambda value: value["took"])
        assert (gate.reserved, gate.tokens_used) == ([900], 812)
        gate.tokens_used = None
        refused(fetcher, source.url, tokens=900, tokens_of=lambda value: value["took"])
        assert (gate.reserved, gate.tokens_used) == ([900, 900], None), "the reservation stands"


def test_no_call_when_the_quota_is_spent(house: House, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object, **__: object) -> None:
        raise QuotaSpent("bocha", "1000 calls", START)

    monkeypatch.setattr(house.gate, "slot", spent)
    assert type(refused(house.fetcher("bocha"), source.url)) is QuotaSpent
    assert source.asked == []


def test_nothing_secret_is_shown(
    house: House, source: Source, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    source.says(Say(status=500), Say({"echo": "nothing"}), Say(status=401))
    fetcher = house.fetcher("bocha", headers=BEARER)
    post(fetcher, source.url + "?token=hidden", {"query": "verborgen"})
    error = refused(fetcher, source.url + "?token=hidden", payload={"query": "verborgen"})
    with house.engine.connect() as connection:
        rows = (
            connection.execute(select(house.tables.snapshot)).all()
            + connection.execute(select(house.tables.gate)).all()
        )
    printed = "".join(capfd.readouterr())
    assert "HTTP 500" in printed, "retries are logged"
    shown = [printed, caplog.text, repr(rows), str(error), repr(error), repr(fetcher), repr(vars(error))]
    for secret in (KEY, "hidden", "verborgen"):
        assert not any(secret in text for text in shown), secret


@pytest.mark.parametrize(
    "key", ["sk-very-secret\n", "sk-very-secret\r\nX: y", "sk-very-secret秘", "sk-very-secret\x00"]
)
def test_a_key_that_cannot_be_sent_is_not_shown_either(
    house: House, source: Source, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    source.says(GOOD)
    error = refused(house.fetcher("bocha", headers={"Authorization": f"Bearer {key}"}), source.url)
    logging.getLogger("test").error("told in full", exc_info=error)
    assert (type(error), error.retryable, source.asked) == (SourceUnavailable, False, [])
    assert "key" in error.reason
    assert "told in full" in caplog.text
    assert KEY not in caplog.text


def test_a_payload_that_is_no_json_is_a_mistake_of_the_caller(house: House, source: Source) -> None:
    source.says(GOOD)
    with pytest.raises(ValueError, match="JSON"):
        post(house.fetcher("bocha"), source.url, {"query": float("nan")})
    assert source.asked == []


def test_a_redirect_elsewhere_is_not_given_our_headers(house: House, source: Source) -> None:
    other = Source()
    try:
        other.says(GOOD)
        source.says(
            Say(status=302, headers={"Location": "/near"}), Say(status=302, headers={"Location": f"{other.url}?far=1"})
        )
        fetcher = house.fetcher("douban", headers=BEARER)
        assert fetcher.get(source.url, {}, Call(key="k", parser_version="v", parse=parse)).value == GOOD
        assert [headers.get("authorization") for headers in source.headers] == [f"Bearer {KEY}"] * 2
        assert [headers.get("authorization") for headers in other.headers] == [None]
    finally:
        other.close()
