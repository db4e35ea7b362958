"""The service over real HTTP: who gets in, what they get, and what they never get."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
import uvicorn
from fastapi import APIRouter, FastAPI
from sqlalchemy import MetaData
from sqlalchemy.exc import OperationalError

from douban_pipeline import __version__
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.platform_tables import counter_table
from douban_pipeline.core.system import tables_versions
from douban_pipeline.digest.api import digest_router, messages_router
from douban_pipeline.digest.services import open_services
from douban_pipeline.douban.api import files_router, pages_router
from douban_pipeline.serve.app import COOKIE, HEADERS, create_app
from douban_pipeline.serve.server import configure
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.digest.stage import given_settings, stage
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import Library, video

TOKEN = "a-token-of-this-service-0123456789"
HTML = {"accept": "text/html"}


@contextmanager
def service(home: Path, token: str = TOKEN, proxies: str = "", **values: Any) -> Iterator[tuple[str, FakeClock]]:
    """Yield the address of a service on loopback, and its clock."""
    digest = open_services(given_settings(home)).ready()
    extra = APIRouter()
    extra.get("/hook/ping")(lambda: "pong")
    extra.post("/act")(lambda: "done")
    mounts = [
        Mount("digest", digest_router(digest)),
        Mount("extra", extra, prefix="/extra", public=["/extra/hook"], problem=lambda: values.get("problem")),
    ]
    clock = FakeClock()
    settings = ServeSettings(_env_file=None, token=token, proxies=proxies)
    with listening(create_app(settings, mounts, clock)) as base:
        yield base, clock
    digest.close()


@contextmanager
def listening(app: FastAPI, **options: Any) -> Iterator[str]:
    """Yield the address on loopback at which an application is served."""
    server = uvicorn.Server(configure(app, log_level="error", lifespan="off", **options))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    with stage(folder, at="22:00") as at:
        at.publish(1, 86, title="铜供给收紧")
        at.run("22:00")
    (folder / "secret.html").write_text("a secret")
    (folder / "reports").mkdir()
    (folder / "reports" / "feeds.html").write_text("another report")
    return folder


@pytest.fixture(scope="module")
def guarded(home: Path) -> Iterator[str]:
    with service(home) as (base, _):
        yield base


@pytest.fixture(scope="module")
def known(guarded: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=guarded, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def log_in(client: httpx.Client, token: str = TOKEN, target: str = "/", **more: str) -> httpx.Response:
    form = {"token": token, "next": target, **more}
    return client.post("/login", data=form, headers={"Origin": str(client.base_url).rstrip("/")})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", "共 1 天"),
        ("/index.html", "共 1 天"),
        ("/daily/2026-11-20", "日报 2026-11-20"),
        ("/daily/2026-11-20.html", "铜供给收紧"),
        ("/analysis/1", "铜供给收紧"),
        ("/analysis/1.html", "铜供给收紧"),
        ("/days-2026.html", "2026 年"),
        ("/search.js", "addEventListener"),
    ],
)
def test_pages_are_served_under_the_addresses_that_messages_name(known: httpx.Client, path: str, said: str) -> None:
    answer = known.get(path)
    assert answer.status_code == 200
    assert said in answer.text
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


@pytest.mark.parametrize("host", ["a/login?", "a/extra/hook/", "a/healthz#"])
def test_no_host_that_a_client_names_opens_a_page(guarded: str, host: str) -> None:
    assert httpx.get(f"{guarded}/daily/2026-11-20", headers={"Host": host}).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/daily/../secret.html",
        "/daily/..%2f..%2f..%2fsecret.html",
        "/daily/%2e%2e/%2e%2e/feeds.html",
        "/../feeds.html",
        "/feeds.html",
        "/secret.html",
        "/analysis/..%2f..%2ffeeds",
        "/analysis/1%00",
        "/analysis/-1",
        "/analysis/" + "9" * 5000,
        "/daily/2026-11-20%2f..%2f..%2findex",
        "/days-1999.html",
        "//etc/passwd",
        "/docs",
        "/openapi.json",
    ],
)
def test_nothing_else_is(known: httpx.Client, guarded: str, path: str) -> None:
    host, _, port = guarded.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)  # it sends a path as it is given
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status in (400, 404), body
    assert "secret" not in body
    assert "another report" not in body


@pytest.mark.parametrize(
    ("path", "accepted", "encoding"),
    [("/login", "gzip", "gzip"), ("/login", "identity", None), ("/extra/hook/ping", "gzip", None)],
)
def test_pages_are_sent_compressed(path: str, accepted: str, encoding: str | None, tmp_path: Path) -> None:
    with service(tmp_path) as (base, _):
        answer = httpx.get(base + path, headers={"accept-encoding": accepted})
        assert answer.headers.get("content-encoding") == encoding
        assert "访问令牌" in answer.text or answer.json() == "pong"


def test_a_page_that_is_not_there_yet_says_so(known: httpx.Client) -> None:
    answer = known.get("/daily/2026-11-21")
    assert (answer.status_code, answer.json()) == (404, {"detail": "页面尚未生成，请稍后刷新"})
    page = known.get("/daily/2026-11-21", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for part in ("页面尚未生成，请稍后刷新", 'href="/"', "/daily/2026-11-21"):
        assert part in page.text


def test_who_looks_for_what_is_nowhere_gets_a_page_and_a_program_a_line(known: httpx.Client) -> None:
    page = known.get("/<b>nowhere", headers=HTML)
    assert page.status_code == 404
    assert "没有这个页面" in page.text
    assert "<b>nowhere" not in page.text
    assert known.get("/nowhere").json() == {"detail": "Not Found"}
    assert known.request("HEAD", "/nowhere", headers=HTML).content == b""


def test_browsers_find_an_icon_before_anybody_has_logged_in(guarded: str) -> None:
    answer = httpx.get(f"{guarded}/favicon.ico", trust_env=False)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    ElementTree.fromstring(answer.text)


def test_the_digest_says_what_will_be_there_before_its_first_slot(tmp_path: Path) -> None:
    with (
        service(tmp_path) as (base, _),
        httpx.Client(base_url=base, headers={"Authorization": f"Bearer {TOKEN}"}) as browser,
    ):
        answer = browser.get("/")
    assert answer.status_code == 200
    assert "run_digest_slot" in answer.text


def test_who_is_not_known_is_asked_to_log_in(guarded: str) -> None:
    with httpx.Client(base_url=guarded) as stranger:
        asked = stranger.get("/daily/2026-11-20?a=1", headers=HTML)
        assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2Fdaily%2F2026-11-20%3Fa%3D1")
        refused = stranger.get("/daily/2026-11-20")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert stranger.get("/extra/hook/ping").text == '"pong"'
        assert stranger.get("/extra/hooks").status_code == 401, "only what is below a public path is public"
        health = stranger.get("/healthz").json()
        assert (health["status"], health["systems"]) == ("ok", {"digest": "ok", "extra": "ok"})
        assert (health["release"], health["tables"]["digest"]) == (__version__, tables_versions()["digest"])
        form = stranger.get("/login?next=/daily/2026-11-20")
        assert 'value="/daily/2026-11-20"' in form.text
        assert "30 天内记住我" in form.text
        assert form.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


def test_a_login_is_remembered_for_thirty_days(home: Path) -> None:
    with service(home) as (base, clock), httpx.Client(base_url=base) as browser:
        answer = log_in(browser, target="/daily/2026-11-20", remember="yes")
        assert (answer.status_code, answer.headers["location"]) == (303, "/daily/2026-11-20")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert browser.get("/daily/2026-11-20", headers=HTML).status_code == 200
        assert browser.get("/login?next=/analysis/1").headers["location"] == "/analysis/1"
        clock.advance(days=29)
        assert browser.get("/", headers=HTML).status_code == 200
        clock.advance(days=2)
        assert browser.get("/", headers=HTML).status_code == 303


def test_logging_out_ends_the_login_whoever_kept_its_cookie(guarded: str) -> None:
    with httpx.Client(base_url=guarded) as browser:
        log_in(browser)
        assert COOKIE in browser.cookies
        assert browser.get("/", headers=HTML).status_code == 200
        assert browser.post("/logout", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        kept = browser.cookies[COOKIE]
        assert browser.post("/logout", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
        assert browser.get("/", headers=HTML).status_code == 303
        assert httpx.get(guarded, headers={**HTML, "Cookie": f"{COOKIE}={kept}"}).status_code == 303


def test_a_login_that_cannot_be_ended_everywhere_is_not_said_to_be(home: Path, tmp_path: Path) -> None:
    table, clock = counter_table(MetaData(), "counter"), FakeClock()
    engine = open_engine(f"sqlite:///{tmp_path / 'counts.sqlite'}")
    guard = GuessGuard(Counters(clock, engine, table))
    app = create_app(ServeSettings(_env_file=None, token=TOKEN), [], clock, guard)
    ours = {"Sec-Fetch-Site": "same-origin"}
    with listening(app) as base, httpx.Client(base_url=base) as browser:
        log_in(browser)  # without the table, as before an upgrade
        refused = browser.post("/logout", headers=ours)
        assert (refused.status_code, "没有退出" in refused.text, refused.headers["retry-after"]) == (503, True, "30")
        assert browser.get("/", headers=HTML).status_code == 404, "still logged in"
        table.metadata.create_all(engine)
        clock.advance(seconds=11)
        assert browser.post("/logout", headers=ours).status_code == 303
        assert browser.get("/", headers=HTML).status_code == 303
    guard.counters.close()


def test_behind_tls_the_cookie_is_for_tls_alone(home: Path) -> None:
    headers = {"X-Forwarded-Proto": "https"}
    with service(home, proxies="127.0.0.1") as (base, _), httpx.Client(base_url=base, headers=headers) as browser:
        answer = log_in(browser)
        assert "Secure" in answer.headers["set-cookie"].split("; ")
        assert "max-age" in answer.headers["strict-transport-security"]


def test_wrong_tokens_are_few(home: Path) -> None:
    with service(home) as (base, clock), httpx.Client(base_url=base) as guesser:
        for number in range(5):
            wrong = log_in(guesser, f"a-wrong-token-{number}")
            assert wrong.status_code == 403
            assert "令牌不正确" in wrong.text
            assert "set-cookie" not in wrong.headers
        refused = log_in(guesser)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 800
        # A bearer is a guess too.
        bearer = guesser.get("/", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (bearer.status_code, "分钟后再试" in bearer.text) == (429, True)
        assert bearer.headers["retry-after"] == refused.headers["retry-after"]
        clock.advance(minutes=16)
        assert log_in(guesser).status_code == 303


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_login_leads_nowhere_else(guarded: str, target: str) -> None:
    with httpx.Client(base_url=guarded) as browser:
        assert log_in(browser, target=target).headers["location"] == "/"
        assert f'value="{target}"' not in browser.get("/login", params={"next": target}).text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_no_other_site_acts_through_a_browser_that_is_known(guarded: str, headers: dict[str, str], status: int) -> None:
    with httpx.Client(base_url=guarded) as browser:
        assert log_in(browser).status_code == 303
        assert browser.post("/extra/act", headers=headers).status_code == status


def test_a_program_with_the_token_may_act(known: httpx.Client) -> None:
    assert known.post("/extra/act").status_code == 200


def test_a_form_that_is_too_large_is_refused(guarded: str) -> None:
    with httpx.Client(base_url=guarded) as browser:
        assert log_in(browser, "x" * 10_000).status_code == 400


def test_without_a_token_only_this_machine_by_its_own_name_gets_in(home: Path) -> None:
    with service(home, token="") as (base, _), httpx.Client(base_url=base) as browser:
        assert browser.get("/daily/2026-11-20").status_code == 200
        assert browser.get("/daily/2026-11-20", headers={"Host": "localhost:1"}).status_code == 200
        assert browser.get("/daily/2026-11-20", headers={"Host": "evil.example"}).status_code == 421
        assert browser.get("/login").headers["location"] == "/"
        assert browser.post("/extra/act", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_a_system_that_is_ill_shows_in_the_health(home: Path) -> None:
    with service(home, problem="secret details") as (base, _):
        answer = httpx.get(f"{base}/healthz")
    assert (answer.status_code, answer.json()["systems"]["extra"]) == (503, "ill")
    assert "details" not in answer.text


def test_what_is_amiss_with_a_system_that_answers_takes_no_service_away(home: Path) -> None:
    asked: list[str] = []
    down = Mount("comments", APIRouter(), problem=lambda: "down", worry=lambda: asked.append("comments") or "unasked")
    mounts = [Mount("digest", APIRouter()), Mount("review", APIRouter(), worry=lambda: "gates closed: douban")]
    with listening(create_app(ServeSettings(_env_file=None), mounts, FakeClock())) as base:
        answer = httpx.get(f"{base}/healthz", trust_env=False)
    body = answer.json()
    assert (answer.status_code, body["status"], body["worries"]) == (200, "warn", {"review": "gates closed: douban"})
    assert body["systems"] == {"digest": "ok", "review": "warn"}
    with listening(create_app(ServeSettings(_env_file=None), [*mounts, down], FakeClock())) as base:
        answer = httpx.get(f"{base}/healthz", trust_env=False)
    assert (answer.status_code, answer.json()["systems"]["comments"], asked) == (503, "ill", [])


def test_the_health_speaks_of_installed_systems_alone() -> None:
    ill = Mount("absent", APIRouter(), problem=lambda: "no tables", installed=False)
    app = create_app(ServeSettings(_env_file=None), [Mount("digest", APIRouter()), ill], FakeClock())
    with listening(app) as base:
        answer = httpx.get(f"{base}/healthz", trust_env=False)
    assert (answer.status_code, answer.json()["systems"]) == (200, {"digest": "ok"})


@pytest.fixture
def fronted(sqlite_library: Library, tmp_path: Path) -> Iterator[tuple[Library, httpx.Client]]:
    """Yield a library, and a browser at the service over it, mounted as the command does."""
    library = sqlite_library.renewed([video(1, vod_name="甲 &amp; 乙")], home=tmp_path)
    reports = library.services.reports.path
    reports.mkdir(parents=True)
    (tmp_path / "secret.html").write_text("a secret")
    pages = pages_router(library.services)
    pages.include_router(files_router(reports))
    mounts = [
        Mount("messages", messages_router("/digest")),
        Mount("reports", pages),
    ]
    app = create_app(ServeSettings(_env_file=None), mounts, FakeClock())
    with listening(app) as base, httpx.Client(base_url=base, timeout=60) as browser:
        yield library, browser


def test_the_root_is_the_front_page(fronted: tuple[Library, httpx.Client]) -> None:
    _, browser = fronted
    front = browser.get("/")
    assert "一切正常" in front.text
    assert "sha256-" in front.headers["content-security-policy"]
    assert browser.get("/daily/2026-11-20").headers["location"] == "/digest/daily/2026-11-20"
    assert browser.get("/healthz").json()["status"] == "ok"


def test_a_list_is_what_the_database_holds_when_it_is_opened(fronted: tuple[Library, httpx.Client]) -> None:
    library, browser = fronted
    assert "甲 &amp; 乙" in browser.get("/lists/missing").text
    library.set_cms(1, vod_name="乙")
    answer = browser.get("/lists/missing", params={"q": "乙"})
    assert ">乙<" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "form-action 'self'; frame-ancestors 'none'" in policy
    assert "共 0 行" in browser.get("/lists/missing?q=%E4%B8%99").text
    assert browser.get("/lists/nothing").status_code == 404


def test_a_database_that_does_not_answer_is_told(
    fronted: tuple[Library, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, browser = fronted

    def fails(*_: object) -> None:
        raise OperationalError("select", None, Exception("gone"))

    monkeypatch.setattr("douban_pipeline.douban.api.front_page", fails)
    monkeypatch.setattr("douban_pipeline.douban.api.list_page", fails)
    for path in ("/", "/lists/log"):
        answer = browser.get(path, headers=HTML)
        assert (answer.status_code, "数据库此刻无法读取" in answer.text) == (503, True)


def test_files_of_reports_are_served_and_run_no_script(fronted: tuple[Library, httpx.Client]) -> None:
    library, browser = fronted
    library.services.reports.write("feeds.html", "no script")
    library.services.reports.write("list_missing.csv", "vod_id")
    assert browser.get("/feeds.html").text == "no script"
    assert "script-src 'self';" in browser.get("/feeds.html").headers["content-security-policy"]
    for path in ("/list_missing.csv", "/lists/missing.csv"):
        assert browser.get(path).headers["content-type"] == "text/csv; charset=utf-8"
    assert browser.get("/lists/log.csv").status_code == 404


@pytest.mark.parametrize(
    "path", ["/secret.html", "/..%2fsecret.html", "/linked.html", "/.env", "/notes.txt", "/digest", "/x.rows/../0.js"]
)
def test_nothing_beside_the_reports_is_served(fronted: tuple[Library, httpx.Client], path: str) -> None:
    library, browser = fronted
    reports = library.services.reports.path
    (reports / "linked.html").symlink_to(reports.parent / "secret.html")
    (reports / "notes.txt").write_text("a secret")
    answer = browser.get(path, follow_redirects=True)
    assert answer.status_code in (400, 404), answer.text
    assert "secret" not in answer.text


def test_the_command_serves_until_it_is_stopped(home: Path, tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DOUBAN_PIPELINE_")},
        "DOUBAN_PIPELINE_HOME": str(home),
        "DOUBAN_PIPELINE_SERVE_TOKEN": TOKEN,
        "DOUBAN_PIPELINE_SYSTEMS": "digest",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "douban_pipeline", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        base = line.split()[2]
        try:
            for _ in range(100):
                try:
                    answer = httpx.get(
                        f"{base}daily/2026-11-20",
                        headers={"Authorization": f"Bearer {TOKEN}"},
                        follow_redirects=True,
                        timeout=60,
                    )
                    break
                except httpx.ConnectError:
                    time.sleep(0.05)
            assert answer.status_code == 200
            assert str(answer.url) == f"{base}digest/daily/2026-11-20"
            assert TOKEN not in line
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(15) in (0, 130, -signal.SIGINT)
