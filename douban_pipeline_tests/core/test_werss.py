"""WeRSS by its answers: envelopes, logins, times, and what an operator has to be told."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from douban_pipeline.core.errors import NotFound, SourceError, SourceUnavailable, SourceWall
from douban_pipeline.core.http_answers import FetchedAnswer, HttpExchange
from douban_pipeline.core.werss import WeRss, seconds_of
from douban_pipeline.core.werss_login import FileSessions, WeRssLogin
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.full_disk import largest_file

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LOGIN = WeRssLogin("demo", "geheim")


class Script:
    """A fetcher that answers by script and remembers what it was asked."""

    def __init__(self, answer: Callable[[str, dict[str, str]], tuple[int, Any]], life: int | None = 259_200) -> None:
        self.answer = answer
        self.life = life
        self.logins = self.renewals = 0
        self.urls: list[str] = []
        self.login_answer: tuple[int, Any] | None = None

    def exchange(self, url: str, read: Any, *, headers: dict[str, str], **_: Any) -> FetchedAnswer[Any]:
        self.urls.append(url)
        status, body = self.answer(url, headers)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return FetchedAnswer(read(HttpExchange(status, httpx.Headers(), content)), 1, NOW, False)

    def log_in(self, url: str, form: dict[str, str], read: Any, **options: Any) -> Any:
        if url.endswith("/auth/refresh"):
            assert not form
            assert options["headers"]["Authorization"].startswith("Bearer ")
            self.renewals += 1
        else:
            self.logins += 1
            assert form == {"username": "demo", "password": "geheim"}
        token: dict[str, Any] = {"access_token": f"token-{self.logins + self.renewals}", "token_type": "bearer"}
        if self.life is not None:
            token["expires_in"] = self.life
        status, body = self.login_answer or (200, {"code": 0, "message": "success", "data": token})
        return read(HttpExchange(status, httpx.Headers(), json.dumps(body).encode()))


def opened(script: Script, clock: FakeClock | None = None, login: WeRssLogin = LOGIN) -> WeRss:
    return WeRss(script, "http://werss.example/", login, clock or FakeClock(NOW))  # type: ignore[arg-type]


def page(*rows: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"code": 0, "message": "success", "data": {"list": list(rows), "total": len(rows)}}


def row(number: int, at: Any) -> dict[str, Any]:
    return {"id": f"a-{number}", "mp_id": "a", "mp_name": "号", "title": f"t{number}", "url": "u", "publish_time": at}


def test_articles_come_with_times_in_seconds_and_without_doubles() -> None:
    script = Script(lambda url, headers: page(row(1, 1_795_000_000_000), row(2, None), row(1, 1_795_000_000)))
    found = opened(script).articles("a", 0)
    assert [(each.article_id, each.published_at) for each in found] == [("a-1", 1_795_000_000), ("a-2", None)]
    assert "has_content" not in "".join(script.urls)
    assert script.urls[0].startswith("http://werss.example/api/v1/wx/articles?")


def test_pages_overlap_and_end_with_one_that_is_wholly_older() -> None:
    def answer(url: str, headers: dict[str, str]) -> tuple[int, Any]:
        offset = int(httpx.URL(url).params["offset"])
        return page(*(row(number, 1_000_000 - number) for number in range(offset, offset + 50)))

    script = Script(answer)
    found = opened(script).articles("a", since=1_000_000 - 60)
    assert len(found) == 50 + 49 + 49
    assert [int(httpx.URL(url).params["offset"]) for url in script.urls] == [0, 49, 98]


def test_a_token_is_kept_renewed_before_it_ends_and_once_when_it_is_refused() -> None:
    clock, refused = FakeClock(NOW), {"token-3"}

    def answer(url: str, headers: dict[str, str]) -> tuple[int, Any]:
        if headers["Authorization"].removeprefix("Bearer ") in refused:
            return 401, {"detail": "Could not validate credentials"}
        return page()

    script = Script(answer, life=1000)
    client = opened(script, clock)
    client.articles("a", 0)
    client.articles("a", 0)
    assert script.logins == 1
    clock.sleep(801)
    client.articles("a", 0)
    assert (script.logins, script.renewals) == (1, 1)
    refused |= {"token-2"}
    with pytest.raises(SourceError):  # token-3 is refused at once: no third login
        client.articles("a", 0)
    with pytest.raises(SourceError):
        client.articles("a", 0)
    assert (script.logins, script.renewals) == (2, 1)


def test_a_wrong_password_is_a_wall_with_what_to_do_and_is_not_tried_twice() -> None:
    script = Script(lambda url, headers: page())
    script.login_answer = (202, {"detail": {"code": 40101, "message": "用户名或密码错误，您还有4次机会", "data": None}})
    with pytest.raises(SourceWall, match="重启 WeRSS"):
        opened(script).articles("a", 0)
    assert script.logins == 1


def test_an_access_key_needs_no_login() -> None:
    seen: list[str] = []

    def answer(url: str, headers: dict[str, str]) -> tuple[int, Any]:
        seen.append(headers["Authorization"])
        return page() if len(seen) == 1 else (401, {"detail": "no"})

    script = Script(answer)
    client = opened(script, login=WeRssLogin(access_key="WK1:SK2"))
    client.articles("a", 0)
    assert seen == ["AK-SK WK1:SK2"]
    with pytest.raises(SourceWall, match="access key"):
        client.articles("a", 0)
    assert script.logins == 0


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, None, SourceUnavailable),
        (200, b"<html>", SourceUnavailable),
        (406, {"detail": {"code": 50002, "message": "x"}}, SourceUnavailable),
        (201, {"detail": {"code": 50001, "message": "x"}}, NotFound),
        (406, {"detail": {"code": 50001, "message": "x"}}, SourceUnavailable),
        (422, {"detail": [{"loc": ["query", "limit"]}]}, SourceUnavailable),
        (200, {"code": 1, "data": {}}, SourceUnavailable),
        (200, {"code": 0, "data": []}, SourceUnavailable),
        (200, {"code": 0, "data": {"list": None}}, SourceUnavailable),
    ],
)
def test_success_is_what_the_envelope_says(status: int, body: Any, kind: type[SourceError]) -> None:
    with pytest.raises(kind):
        opened(Script(lambda url, headers: (status, body))).articles("a", 0)


def test_an_account_says_when_it_was_last_synced() -> None:
    data = {"id": "a", "mp_name": "号", "sync_time": 1_795_000_000}
    found = opened(Script(lambda url, headers: (200, {"code": 0, "data": data}))).account("a")
    assert (found.name, found.synced_at) == ("号", 1_795_000_000)


def test_a_token_without_a_life_ends_when_it_says_itself() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": NOW.timestamp() + 100}).encode()).decode().rstrip("=")
    clock = FakeClock(NOW)
    script = Script(lambda url, headers: page(), life=None)
    script.login_answer = (200, {"access_token": f"h.{claims}.s", "token_type": "bearer"})
    client = opened(script, clock)
    client.articles("a", 0)
    clock.sleep(90)
    client.articles("a", 0)
    assert (script.logins, script.renewals) == (1, 1)


def test_processes_share_a_token_and_a_refusal_in_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    clock, script = FakeClock(NOW), Script(lambda url, headers: page())

    def client() -> WeRss:
        sessions = FileSessions(tmp_path, "http://werss.example/", "demo")
        return WeRss(script, "http://werss.example/", LOGIN, clock, sessions)  # type: ignore[arg-type]

    client().articles("a", 0)
    client().articles("a", 0)
    assert script.logins == 1
    [kept] = tmp_path.glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "geheim" not in kept.read_text(encoding="utf-8")
    clock.sleep(300_000)  # over: only a login helps, and the password was changed
    script.login_answer = (202, {"detail": {"code": 40101, "message": "用户名或密码错误", "data": None}})
    for _ in range(4):
        for _ in range(5):
            with pytest.raises(SourceWall, match="拒绝登录"):
                client().articles("a", 0)
        clock.sleep(7 * 3600)
    assert script.logins == 1 + 3
    FileSessions(tmp_path, "http://werss.example/", "demo").forget()
    script.login_answer = None
    client().articles("a", 0)
    assert script.logins == 5


def test_where_a_login_cannot_be_stored_none_is_tried_and_the_source_is_unavailable(tmp_path: Path) -> None:
    script = Script(lambda url, headers: page())
    sessions = FileSessions(tmp_path, "http://werss.example/", "demo")
    client = WeRss(script, "http://werss.example/", LOGIN, FakeClock(NOW), sessions)  # type: ignore[arg-type]
    with largest_file(10), pytest.raises(SourceUnavailable, match="the login cannot be kept: File too large"):
        client.articles("a", 0)
    assert script.logins == 0
    client.articles("a", 0)
    assert script.logins == 1


@pytest.mark.parametrize("content", ["<p>x</p>", "", None])
def test_a_body_is_what_the_detail_holds(content: str | None) -> None:
    script = Script(lambda url, headers: (200, {"code": 0, "data": {"id": "a-1", "content": content}}))
    assert opened(script).article_html("a-1") == content
    script.answer = lambda url, headers: (404, {"detail": {"code": 40401, "message": "文章不存在", "data": None}})
    with pytest.raises(NotFound):
        opened(script).article_html("a-1")


def test_accounts_come_by_pages() -> None:
    def answer(url: str, headers: dict[str, str]) -> tuple[int, Any]:
        offset = int(httpx.URL(url).params["offset"])
        return page(*({"id": f"m{number}", "mp_name": "号"} for number in range(offset, min(offset + 100, 150))))

    assert len(opened(Script(answer)).accounts()) == 150


def test_times_are_seconds_or_none() -> None:
    assert [seconds_of(value) for value in (None, 0, "x", 5, 1_795_000_000_123)] == [None, None, None, 5, 1_795_000_000]
