"""One call over real HTTP: every fault becomes the error it stands for, and the gate learns of it."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from douban_pipeline.core.deadline import Deadline
from douban_pipeline.core.errors import (
    GateClosed,
    SourceError,
    SourceSilent,
    SourceThrottled,
    SourceUnavailable,
    SourceWall,
)
from douban_pipeline.core.gate_rules import ON_THE_WAY, GateState
from douban_pipeline.core.http import FetchedAnswer, Fetcher
from douban_pipeline.core.http_answers import Call
from douban_pipeline.core.payload import AnswerRules, read_json
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scripted_source import House, Say, Source

GOOD = {"answer": 42}
WALL_PAGE = "<html><title>登录豆瓣</title></html>"


def parse(body: bytes) -> Any:
    return read_json("douban", body)


def get(fetcher: Fetcher, url: str, **params: str) -> FetchedAnswer[Any]:
    return fetcher.get(url, params or {"id": "1"}, Call(key="k", parser_version="v1", parse=parse))


def refused(fetcher: Fetcher, url: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        get(fetcher, url)
    return caught.value


def archived(house: House) -> list[tuple[int, bytes]]:
    table = house.tables.snapshot
    with house.engine.connect() as connection:
        rows = connection.execute(select(table.c.status, table.c.body).order_by(table.c.snapshot_id)).all()
    return [(row.status, zlib.decompress(row.body)) for row in rows]


def test_a_good_answer_is_parsed_and_archived(house: House, source: Source) -> None:
    source.says(GOOD)
    fetched = get(house.fetcher(), source.url)
    assert fetched == FetchedAnswer(GOOD, fetched.snapshot_id, START, from_cache=False)
    assert json.loads(house.archive.get(fetched.snapshot_id).body) == GOOD
    assert house.status().granted == 1


def test_parameters_of_the_address_are_kept(house: House, source: Source) -> None:
    source.says(GOOD)
    get(house.fetcher(), source.url + "?key=s%26cret&id=0&callback=douban", id="7", q="片名 豆瓣")
    path, query = source.asked[0]
    assert path == "/douban.php"
    assert query == {"key": ["s&cret"], "id": ["7"], "callback": ["douban"], "q": ["片名 豆瓣"]}


@pytest.mark.parametrize(
    ("say", "kind", "calls"),
    [
        (Say(status=500), SourceUnavailable, 3),
        (Say("<html>502 Bad Gateway</html>", status=502), SourceUnavailable, 3),
        (Say(status=403), SourceWall, 1),
        (Say({"code": 1}, status=403), SourceWall, 1),
        (Say(status=401), SourceWall, 1),
        (Say(status=418), SourceWall, 1),
        (Say(WALL_PAGE, status=503), SourceWall, 1),
        (Say(WALL_PAGE), SourceWall, 1),
        (Say("<html>验证码</html>"), SourceWall, 1),
        (Say(status=429), SourceThrottled, 1),
        (Say(status=429, headers={"Retry-After": "soon"}), SourceThrottled, 1),
        (Say(status=429, headers={"Retry-After": "3600"}), SourceThrottled, 1),
        (Say("<html>hello</html>"), SourceUnavailable, 1),
        (Say("<html>hello</html>", status=404), SourceUnavailable, 1),
        (Say(status=405), SourceUnavailable, 1),
        (Say(b""), SourceUnavailable, 1),
        (Say(b"{"), SourceUnavailable, 1),
        (Say(b"not gzip", headers={"Content-Encoding": "gzip"}), SourceUnavailable, 1),
        (Say(status=302, headers={"Location": "https://accounts.douban.com/passport/login"}), SourceWall, 1),
        (Say(status=302, headers={"Location": "https://sec.douban.com/b?r=x"}), SourceWall, 1),
        (Say(status=302, headers={"Location": "/login?next=/"}), SourceWall, 1),
        (Say(status=302, headers={"Location": "ftp://127.0.0.1/x"}), SourceUnavailable, 1),
        (Say(status=302, headers={"Location": "http://["}), SourceUnavailable, 1),
        (Say(status=302, headers={"Location": "/again"}), SourceUnavailable, 4),
        (Say(status=302), SourceUnavailable, 1),
    ],
)
def test_each_fault_is_the_error_it_stands_for(
    house: House, source: Source, say: Say, kind: type[SourceError], calls: int
) -> None:
    source.says(say)
    error = refused(house.fetcher(), source.url + "?key=secret")
    assert type(error) is kind
    assert error.reason
    assert "secret" not in str(error)
    assert len(source.asked) == calls
    status = house.status()
    assert status.in_use == 0
    if kind is SourceUnavailable:
        assert (status.state, status.failures) == (GateState.CLOSED, status.granted)
    else:
        assert (status.state, status.granted) == (GateState.OPEN, 1)


@pytest.mark.parametrize(
    "say",
    [
        Say(status=418),
        Say({"code": 1}, status=404),
        Say("<html>queue-it</html>", status=503),
        Say(status=302, headers={"Location": "https://robots.example/"}),
    ],
)
def test_what_only_one_source_means_is_said_by_its_rules(house: House, source: Source, say: Say) -> None:
    rules = AnswerRules(
        wall_statuses=frozenset({418}),
        read_statuses=frozenset({404}),
        wall_words=("queue-it",),
        wall_hosts=frozenset({"robots.example"}),
    )
    plain = {"attempts": 1, "deadline": 2.0, "rules": AnswerRules()}
    source.says(say)
    if say.status == 404:
        assert get(house.fetcher(rules=rules), source.url).value == {"code": 1}
    else:
        assert type(refused(house.fetcher(rules=rules), source.url)) is SourceWall
        house.gate.close("douban")
    if say.status != 302:  # nobody asks another host from here
        assert type(refused(house.fetcher(**plain), source.url)) is SourceUnavailable


def test_a_fetcher_is_closed_once_or_twice_and_asks_no_more(house: House, source: Source) -> None:
    source.says(GOOD)
    with house.fetcher() as fetcher:
        get(fetcher, source.url)
        fetcher.close()
    with pytest.raises(RuntimeError, match="closed"):
        get(fetcher, source.url)
    assert house.status().in_use == 0


def test_a_refused_answer_is_archived_too(house: House, source: Source) -> None:
    source.says(WALL_PAGE)
    refused(house.fetcher(), source.url)
    assert archived(house) == [(200, WALL_PAGE.encode())]


def test_a_redirect_is_followed_within_reason(house: House, source: Source) -> None:
    source.says(
        Say(status=301, headers={"Location": "/b"}),
        Say(status=307, headers={"Location": "c?x=1"}),
        Say(status=302, headers={"Location": source.url}),
        Say(GOOD),
    )
    assert get(house.fetcher(), source.url).value == GOOD
    assert [path for path, _ in source.asked] == ["/douban.php", "/b", "/c", "/douban.php"]
    assert house.status().granted == 1


def test_a_passing_fault_is_tried_again_each_attempt_at_its_own_slot(house: House, source: Source) -> None:
    source.says(Say(status=500), Say("busy", status=503), Say(GOOD))
    assert get(house.fetcher(), source.url).value == GOOD
    assert house.status().granted == 3
    assert house.status().failures == 0
    assert [status for status, _ in archived(house)] == [500, 503, 200]
    assert sum(house.clock.sleeps) >= 2 * 1.02


def test_each_retry_waits_twice_as_long_and_no_two_callers_just_as_long(house: House, source: Source) -> None:
    class Shortest(Random):
        def uniform(self, a: float, b: float) -> float:
            return a

    waited = []
    for rng in (Shortest(), Random(1), Random(2)):
        house.gate.close("douban")
        source.says(Say(status=500), Say(status=500), Say(status=500), Say(GOOD))
        before = len(house.clock.sleeps)
        assert get(house.fetcher(rng=rng, attempts=4), source.url).value == GOOD
        waited.append(house.clock.sleeps[before:])
    assert [pause for pause in waited[0] if pause in (0.5, 1.0, 2.0)] == [0.5, 1.0, 2.0]
    assert 3.5 < sum(waited[1]) != sum(waited[2]) > 3.5


def test_retry_after_is_obeyed_and_the_next_attempt_is_the_probe(house: House, source: Source) -> None:
    source.says(Say(status=429, headers={"Retry-After": "7"}), Say(GOOD))
    assert get(house.fetcher(), source.url).value == GOOD
    assert house.status().state is GateState.CLOSED
    assert 7 <= (house.clock.now() - START).total_seconds() < 9


def test_retry_after_may_be_a_date(house: House, source: Source) -> None:
    when = START + timedelta(seconds=20)
    source.says(Say(status=429, headers={"Retry-After": format_datetime(when, usegmt=True)}))
    error = refused(house.fetcher(attempts=1), source.url)
    assert isinstance(error, SourceThrottled)
    assert error.retry_after == pytest.approx(20)
    until = house.status().open_until
    assert until is not None
    assert when <= until <= when + timedelta(seconds=2)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_retry_after_of_a_failing_server_is_obeyed(house: House, source: Source, status: int) -> None:
    source.says(Say("busy", status=status, headers={"Retry-After": "7"}), Say(GOOD))
    assert get(house.fetcher(), source.url).value == GOOD
    assert 7 <= (house.clock.now() - START).total_seconds() < 9
    source.says(Say("maintenance", status=status, headers={"Retry-After": "1800"}))
    error = refused(house.fetcher(), source.url)
    assert isinstance(error, SourceThrottled)
    until = house.status().open_until
    assert until is not None
    assert timedelta(minutes=30) <= until - house.clock.now() <= timedelta(minutes=33)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("999999999", 86_400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("Mon, 99999999999999999999 Jan 2026 00:00:00 GMT", None),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after_without_sense_stops_nobody_for_long(
    house: House, source: Source, said: str, seconds: float | None
) -> None:
    source.says(Say(status=429, headers={"Retry-After": said}))
    error = refused(house.fetcher(attempts=1), source.url)
    assert isinstance(error, SourceThrottled)
    assert error.retry_after == seconds


def test_no_attempt_begins_after_the_total_time(house: House, source: Source) -> None:
    source.says(Say(status=429, headers={"Retry-After": "61"}))
    error = refused(house.fetcher(total_time=60), source.url)
    assert isinstance(error, SourceThrottled)
    assert len(source.asked) == 1


def test_no_call_while_the_gate_is_closed(house: House, source: Source) -> None:
    source.says(Say(status=403))
    refused(house.fetcher(), source.url)
    with pytest.raises(GateClosed):
        get(house.fetcher(), source.url)
    assert len(source.asked) == 1


def test_nobody_answers(house: House, source: Source) -> None:
    source.close()
    error = refused(house.fetcher(), source.url)
    assert type(error) is SourceSilent
    assert house.status().failures == 3


def test_a_source_that_hangs_is_a_timeout(house: House, source: Source) -> None:
    source.says(Say(hang=True))
    error = refused(house.fetcher(timeout=0.1, attempts=1), source.url)
    assert type(error) is SourceSilent
    assert "no answer in time" in error.reason


def test_a_kept_connection_meets_the_deadline_and_is_not_used_again(house: House) -> None:
    calls: list[tuple[str, int]] = []
    ended = threading.Event()

    class Kept(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            calls.append(self.client_address)
            whole = len(calls) != 2
            self.send_response(200)
            self.send_header("Content-Length", "2" if whole else "900")
            self.end_headers()
            self.wfile.write(b"{}")
            if not whole:
                ended.wait(30)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Kept) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with house.fetcher(keep_alive=1, attempts=1, timeout=5.0, deadline=0.3) as fetcher:
            url = f"http://127.0.0.1:{server.server_port}/"
            assert get(fetcher, url).value == {}
            assert "within 0.3 s" in refused(fetcher, url).reason
            assert get(fetcher, url).value == {}
        ended.set()
        server.shutdown()
    assert calls[0] == calls[1], "the second call went over the first one's connection"
    assert calls[2] != calls[1]


@pytest.mark.parametrize(("keep_alive", "seconds"), [(0, 7), (2, 12)], ids=["new connections", "reused connections"])
def test_the_gate_is_told_how_long_the_source_may_be_answering(
    house: House, source: Source, keep_alive: int, seconds: int
) -> None:
    stored: list[dict[str, Any]] = []

    def look(_body: bytes) -> None:
        gate = house.tables.gate
        with house.engine.connect() as connection:
            stored.extend(connection.execute(select(gate.c.holders).where(gate.c.source == "douban")).scalar_one())

    source.says(GOOD)
    with house.fetcher(timeout=5, deadline=7, keep_alive=keep_alive) as fetcher:
        fetcher.get(source.url, {}, Call(key="k", parser_version="v1", parse=look))
    [call] = stored
    assert call["answered_by"] == (START + timedelta(seconds=seconds) + ON_THE_WAY).isoformat()


@pytest.mark.parametrize("slow", [Say(b"{", drip=True), Say(drip_headers=True)])
def test_a_source_that_drips_meets_the_deadline(house: House, source: Source, slow: Say) -> None:
    source.says(slow)
    error = refused(house.fetcher(deadline=0.2), source.url)
    assert type(error) is SourceSilent
    assert "0.2 s" in error.reason
    assert len(source.asked) == 1


def test_a_deadline_is_one_for_all_redirects(house: House, source: Source) -> None:
    source.says(Say(status=302, headers={"Location": "/b"}, wait=0.15))
    assert "0.4 s" in refused(house.fetcher(deadline=0.4), source.url).reason


def test_a_deadline_cuts_the_connection_inside_a_proxys_tunnel() -> None:
    outer, outer_end = socket.socketpair()
    inner, inner_end = socket.socketpair()
    with outer, outer_end, inner, inner_end, Deadline(0.05) as deadline:
        for event, used in (("connection.connect_tcp.complete", outer), ("proxy.start_tls.complete", inner)):
            deadline.trace(event, {"return_value": SimpleNamespace(get_extra_info={"socket": used}.get)})
        inner.settimeout(5)
        assert inner.recv(1) == b"", "a blocked read wakes up"


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_too_large_is_refused(house: House, source: Source, packed: bool) -> None:
    body = b"[" + b"0," * 20_000 + b"0]"
    coder = zlib.compressobj(wbits=31)
    gzipped = Say(coder.compress(body) + coder.flush(), headers={"Content-Encoding": "gzip"})
    source.says(gzipped if packed else Say(body))
    error = refused(house.fetcher(max_bytes=10_000), source.url)
    assert type(error) is SourceUnavailable
    assert "10000" in error.reason
    assert archived(house) == []


def test_a_proxy_is_not_asked_for_loopback(
    sqlite_url: str, house: House, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    source.says(GOOD)
    assert get(house.fetcher(), source.url).value == GOOD


def test_an_address_that_is_none(house: House) -> None:
    for url in ("ftp://127.0.0.1/x", "nonsense", "http://[::bad"):
        error = refused(house.fetcher(), url)
        assert type(error) is SourceUnavailable
        assert "address" in error.reason


def test_a_hint_helps_people(house: House, source: Source) -> None:
    source.says(Say(status=403))
    with pytest.raises(SourceWall, match="settings"):
        house.fetcher().get(
            source.url, {}, Call(key="k", parser_version="v", parse=parse, hints={403: "look at the settings"})
        )


WEEK = timedelta(days=7)


def test_the_archive_answers_instead_of_the_source(house: House, source: Source) -> None:
    source.says(GOOD)
    fetcher = house.fetcher()
    asked = get(fetcher, source.url)
    house.clock.advance(days=6)
    assert fetcher.cached("k", WEEK, parse) == FetchedAnswer(GOOD, asked.snapshot_id, START, from_cache=True)
    assert fetcher.cached("k", None, parse) is None
    assert fetcher.cached("other", WEEK, parse) is None
    house.clock.advance(days=2)
    assert fetcher.cached("k", WEEK, parse) is None


BAD = [Say(WALL_PAGE), Say(b"{"), *(Say({"answer": 0}, status=status) for status in (402, 403, 410, 429, 500))]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_answer_does_not_hide_a_good_one(house: House, source: Source, bad: Say) -> None:
    fetcher = house.fetcher(attempts=1)
    source.says(GOOD)
    good = get(fetcher, source.url)
    house.clock.advance(hours=1)
    source.says(bad)
    refused(fetcher, source.url)
    assert len(archived(house)) == 2
    found = fetcher.cached("k", WEEK, parse)
    assert found is not None
    assert found.snapshot_id == good.snapshot_id
