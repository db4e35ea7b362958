"""WebSub with a hub on loopback: discovery, verification, signed pushes, forgeries, replays, leases, and a dead hub."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
import uvicorn
from sqlalchemy import select

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn
from douban_pipeline.feeds import websub
from douban_pipeline.feeds.api.websub import hubs_mount
from douban_pipeline.feeds.clients.hubs import HubLinks, hub_of, is_signed
from douban_pipeline.feeds.reading.sources import sources_page
from douban_pipeline.feeds.reports.page import look, page
from douban_pipeline.feeds.store.tables import websub as table
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.feeds.stage import DAY, HOUR, Stage, stage

PUBLIC = "https://site.example"


@dataclass
class Hub(LoopbackStandIn):
    """A publisher whose feed names this server as its hub; the hub notes what it is asked."""

    items: list[str] = field(default_factory=lambda: ["1"])
    asked: list[dict[str, str]] = field(default_factory=list)
    status: int = 202
    link: str = ""
    port: int = 0

    def feed(self, *names: str, title: str = "title") -> bytes:
        rows = "".join(f"<item><guid>{each}</guid><title>{title} {each}</title></item>" for each in names)
        head = f'<atom:link rel="hub" href="{self.base}/hub"/><atom:link rel="self" href="{self.base}/feed"/>'
        namespace = 'xmlns:atom="http://www.w3.org/2005/Atom"'
        return f'<rss version="2.0" {namespace}><channel><title>T</title>{head}{rows}</channel></rss>'.encode()

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        if target == "/hub":
            self.asked.append({name: values[0] for name, values in parse_qs(body.decode()).items()})
            return HttpAnswer(self.status, b"")
        return HttpAnswer(200, self.feed(*self.items), "application/rss+xml")


@dataclass
class Played:
    """A source with a hub, and the service that the hub calls."""

    on: Stage
    hub: Hub
    client: httpx.Client
    source_id: str

    def row(self) -> dict[str, object]:
        with self.on.services.engine.connect() as connection:
            return dict(connection.execute(select(table)).mappings().one())

    def poll(self) -> None:
        self.on.make_due()
        self.on.poll()

    def callback(self) -> str:
        return self.hub.asked[-1]["hub.callback"].removeprefix(PUBLIC)

    def verify(self, changed: dict[str, str] | None = None, lease: int = DAY) -> tuple[int, str]:
        topic = self.hub.asked[-1]["hub.topic"]
        query = {"hub.mode": "subscribe", "hub.topic": topic, "hub.challenge": "c", "hub.lease_seconds": str(lease)}
        answer = self.client.get(self.callback(), params={**query, **(changed or {})})
        return answer.status_code, answer.text

    def push(self, body: bytes, method: str = "sha256", secret: str = "", signed: bool = True) -> int:
        secret = secret or self.hub.asked[-1]["hub.secret"]
        signature = hmac.new(secret.encode(), body, getattr(hashlib, method)).hexdigest()
        headers = {"X-Hub-Signature": f"{method}={signature}"} if signed else {}
        headers["Content-Type"] = "application/rss+xml"
        return self.client.post(self.callback(), content=body, headers=headers).status_code

    def titles(self) -> list[str]:
        return [row["title"] for row in self.on.entries(self.source_id)]

    def next_in(self) -> int:
        return int(self.on.stats(self.source_id)["next_due_at"]) - int(self.on.clock.at)


@contextmanager
def serving(on: Stage) -> Iterator[httpx.Client]:
    """Serve the callback behind the service's login, and yield a client without one, as a hub is."""
    app = create_app(
        ServeSettings(_env_file=None, token="a-token-that-is-long-enough-for-it"), [hubs_mount(on.services)]
    )
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([door],))
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{door.getsockname()[1]}", trust_env=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with Hub() as hub, stage(tmp_path, {}, public_url=PUBLIC) as on:
        request = SourceRequest(url=f"{hub.base}/feed", cadence="P1")
        [added] = follow(on.services, [request], dry_run=False).added
        on.poll()
        assert websub.renew(on.services) == 1
        with serving(on) as client:
            yield Played(on, hub, client, added.source_id)


def test_a_hub_is_asked_verified_and_pushes(played: Played) -> None:
    asked = played.hub.asked[0]
    assert asked["hub.mode"] == "subscribe"
    assert asked["hub.topic"] == f"{played.hub.base}/feed"
    assert len(asked["hub.secret"]) >= 32
    assert played.push(played.hub.feed("2")) == 410, "not verified yet"
    assert played.verify() == (200, "c")
    assert played.push(played.hub.feed("2", "1")) == 202
    assert played.titles() == ["title 1", "title 2"]
    assert played.row()["pushed_entries"] == 1


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_every_method_of_the_recommendation_is_verified(played: Played, method: str) -> None:
    played.verify()
    played.push(played.hub.feed("2"), method=method)
    assert len(played.titles()) == 2


def test_what_is_not_signed_by_the_hub_changes_nothing(played: Played) -> None:
    played.verify()
    body = played.hub.feed("2")
    for status in (played.push(body, secret="guessed"), played.push(body, signed=False), played.push(body, "md5")):
        assert status == 202, "a guesser does not learn whether it was right"
    assert played.titles() == ["title 1"]
    assert played.row()["pushes"] == 0
    assert played.client.post(f"{websub.PATH}/guessed", content=body).status_code == 410


def test_a_replay_adds_and_changes_nothing(played: Played) -> None:
    played.verify()
    old = played.hub.feed("2", "1")
    played.push(old)
    played.hub.items = ["2", "1", "3"]
    played.poll()
    before = played.on.entries(played.source_id)
    for _ in range(2):
        played.push(old)
    assert played.on.entries(played.source_id) == before


def test_a_push_may_be_as_large_as_what_a_poll_fetches_but_not_of_a_stranger(played: Played) -> None:
    played.poll()
    played.verify()
    large = played.hub.feed("2").replace(b"</item>", b"<description>" + b"x" * 2_000_000 + b"</description></item>")
    assert played.push(large) == 202
    assert played.titles() == ["title 1", "title 2"]
    assert played.push(b"x" * 8_000_001) == 413
    strange = played.client.post(f"{websub.PATH}/guessed", content=large)
    assert strange.status_code == 410


def test_a_thin_push_and_an_edit_are_polled(played: Played) -> None:
    played.verify()
    played.on.clock.at += HOUR
    played.push(b"something is new")
    assert played.next_in() <= 0
    played.poll()
    played.on.clock.at += HOUR
    played.push(played.hub.feed("1", title="edited"))
    assert played.titles() == ["title 1"], "only a poll changes what is stored"
    assert played.next_in() <= 0


def test_verification_confirms_only_what_was_asked_for(played: Played) -> None:
    assert played.verify({"hub.topic": "https://elsewhere.example/"})[0] == 404
    assert played.verify({"hub.mode": "unsubscribe"})[0] == 404
    assert played.verify(lease=10)[0] == 404
    assert played.verify({"hub.lease_seconds": "soon"})[0] == 404
    played.on.clock.at += HOUR
    assert played.verify()[0] == 404, "nobody asked within the last minutes"


def test_a_hub_that_delivers_frees_polls_until_its_lease_ends(played: Played) -> None:
    played.verify(lease=2 * DAY)
    played.poll()
    assert played.next_in() <= 2 * HOUR, "it has pushed nothing yet"
    played.push(played.hub.feed("2"))
    played.hub.items = ["2", "1"]
    played.poll()
    assert played.next_in() == DAY
    assert played.on.stats(played.source_id)["why"]["profile"] == "websub"
    said = "1 个来源由 WebSub 推送（共 1 个有 hub），已推送 1 次、1 条；按各自的节奏一天少抓约 23 次"
    assert said in page(look(played.on.services), played.on.services)
    assert said in sources_page(played.on.services)
    played.on.clock.at += 1.9 * DAY
    played.poll()
    assert played.next_in() <= 0.2 * DAY, "not beyond the lease"
    played.on.clock.at += 0.2 * DAY
    played.poll()
    assert played.next_in() <= 2 * HOUR, "the lease has ended"
    assert played.push(played.hub.feed("3")) == 410


def test_a_lease_is_renewed_before_it_ends(played: Played) -> None:
    played.verify(lease=2 * DAY)
    assert websub.renew(played.on.services) == 0
    played.on.clock.at += 1.6 * DAY
    assert websub.renew(played.on.services) == 1
    assert played.row()["state"] == "active", "the lease lasts while it is renewed"
    assert played.verify(lease=2 * DAY)[0] == 200
    assert played.row()["lease_until"] == int(played.on.clock.at) + 2 * DAY


def test_a_hub_that_dies_is_found_by_the_backup_and_trusted_again_by_a_push(played: Played) -> None:
    played.verify(lease=9 * DAY)
    played.push(played.hub.feed("2"))
    played.poll()
    assert played.next_in() == DAY
    played.on.clock.at += DAY
    when = "<pubDate>Wed, 18 Nov 2026 12:00:00 GMT</pubDate>"  # hours before it is found
    body = played.hub.feed("3").replace(b"</item>", f"{when}</item>".encode())
    played.hub.feed = lambda *_, **__: body  # type: ignore[method-assign]
    played.poll()
    assert played.next_in() <= 2 * HOUR
    assert played.row()["missed"] == 1
    played.push(body.replace(b">3<", b">4<"))
    played.poll()
    assert played.next_in() == DAY


def test_a_hub_that_does_not_answer_is_asked_more_and_more_rarely(played: Played) -> None:
    played.hub.status = 500
    waits = []
    for _ in range(3):
        played.on.clock.at = float(str(played.row()["ask_at"]))
        assert websub.renew(played.on.services) == 0
        waits.append(int(str(played.row()["ask_at"])) - int(played.on.clock.at))
    assert waits == [1800, 3600, 7200]
    assert "500" in str(played.row()["reason"])


def test_a_denial_is_noted_and_the_source_polled(played: Played) -> None:
    played.verify()
    answer = played.verify({"hub.mode": "denied", "hub.reason": "no"})
    assert answer == (200, "")
    assert (played.row()["state"], played.row()["reason"]) == ("denied", "no")
    assert played.next_in() <= 0


def test_without_a_public_address_no_hub_is_asked(tmp_path: Path) -> None:
    with Hub() as hub, stage(tmp_path, {}) as on:
        follow(on.services, [SourceRequest(url=f"{hub.base}/feed")], dry_run=False)
        on.poll()
        assert websub.renew(on.services) == 0
        assert hub.asked == []


def test_a_hub_is_named_by_headers_or_by_the_feed() -> None:
    headers = ['<https://hub.example/>; rel="hub", </feed>; rel=self', "<https://other.example/>; rel=hub"]
    assert hub_of(headers, [], "https://a.example/x") == HubLinks("https://hub.example/", "https://a.example/feed")
    links = [{"rel": "hub", "href": "/hub"}]
    assert hub_of([], links, "https://a.example/x") == HubLinks("https://a.example/hub", "https://a.example/x")
    assert hub_of(["<javascript:alert(1)>; rel=hub"], [], "https://a.example/x") == HubLinks()


@pytest.mark.parametrize("header", ["", "sha256", "sha256=", "sha256=é", "md5=x", "sha256=" + "0" * 64])
def test_signatures_that_are_none_are_refused(header: str) -> None:
    assert not is_signed(b"body", header, "secret")
