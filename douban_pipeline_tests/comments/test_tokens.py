"""Tokens of operators and servers, and limits per minute: what can be tried, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import MetaData

from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.platform_tables import counter_table
from douban_pipeline_tests.comments.serving import ADMIN, AUDIT, KEY, Served, served
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, guests=True) as found:
        yield found


def from_address(place: Served, address: str) -> httpx.Client:
    return httpx.Client(base_url=place.base, transport=httpx.HTTPTransport(local_address=address), timeout=100)


@pytest.mark.parametrize(
    "path", ["/comments/v1/admin/state", "/comments/v1/server/counts?of=1:1", "/comments/v1/notices"]
)
def test_of_wrong_tokens_five_are_compared_wherever_they_are_sent(place: Served, path: str) -> None:
    with from_address(place, "127.0.0.2") as guesser, from_address(place, "127.0.0.3") as neighbour:
        wrong = [guesser.get(path, headers={"Authorization": f"Bearer guess-{n}"}) for n in range(25)]
        assert [answer.status_code for answer in wrong] == [401] * 5 + [429] * 20
        assert 800 < int(wrong[-1].headers["retry-after"]) <= 901
        assert "分钟后再试" in wrong[-1].json()["detail"]
        for token, where in ((ADMIN, "admin/state"), (AUDIT, "admin/state"), (KEY, "server/counts?of=1:1")):
            bearer = {"Authorization": f"Bearer {token}"}
            assert guesser.get(f"/comments/v1/{where}", headers=bearer).status_code == 429, "a right one is not, either"
            assert neighbour.get(f"/comments/v1/{where}", headers=bearer).status_code == 200
        visitor = {"Authorization": f"Bearer {place.token(7)}"}
        object_id = place.section()
        assert guesser.get(f"/comments/v1/sections/1/{object_id}/page", headers=visitor).status_code == 200
        place.clock.advance(minutes=15)
        assert guesser.get("/comments/v1/admin/state", headers={"Authorization": f"Bearer {ADMIN}"}).status_code == 200


def test_a_right_token_that_nobody_can_guess_is_never_locked_out(tmp_path: Path) -> None:
    admin, key, plain = "9f3c1e7ab25d4860" * 2, "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "ab" * 16
    with served(tmp_path, admin_token=admin, audit_token=plain, api_keys=f"site={key}:1000") as place:
        for n in range(7):
            place.call("GET", "/admin/state", f"{n}{admin[1:]}")
        assert place.call("GET", "/admin/state", f"8{admin[1:]}").status_code == 429
        assert place.call("GET", "/admin/state", admin).status_code == 200
        assert place.call("GET", "/server/counts?of=1:1", key).status_code == 200
        assert place.call("GET", "/admin/state", plain).status_code == 429, "it is long, but not random"


def test_a_token_of_another_kind_or_of_yesterday_is_no_guess(place: Served) -> None:
    old = place.token(7)
    place.clock.advance(days=1)
    for _ in range(6):
        assert place.call("GET", "/admin/state", 7).status_code == 401
        assert place.call("GET", "/admin/state", KEY).status_code == 401
        assert place.call("GET", "/server/counts?of=1:1", ADMIN).status_code == 401
        expired = place.call("GET", "/notices", old)
        assert (expired.status_code, "令牌已过期" in expired.text) == (401, True)
    assert place.call("GET", "/admin/state", ADMIN).status_code == 200


def test_two_processes_count_the_comments_of_a_minute_together_without_redis(tmp_path: Path) -> None:
    table = counter_table(MetaData(), "counter")
    address = f"sqlite:///{tmp_path / 'counts.sqlite'}"
    clock = FakeClock()
    guards = [GuessGuard(Counters(clock, open_engine(address), table)) for _ in range(2)]
    engine = open_engine(address)
    table.metadata.create_all(engine)
    engine.dispose()
    settings = {"publish_per_minute": 3}
    with served(tmp_path, guards[0], **settings) as one, served(tmp_path, guards[1], **settings) as other:
        object_id = one.section()

        def publish(place: Served) -> int:
            return place.call("POST", f"/sections/1/{object_id}/comments", 1, json={"content": "好"}).status_code

        assert [publish(place) for place in (one, other, one, other, one)] == [202, 202, 202, 429, 429]
        clock.advance(seconds=61)
        assert publish(other) == 202
    for guard in guards:
        guard.counters.close()
