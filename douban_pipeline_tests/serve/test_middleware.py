"""Whose request it is: the peer's, or whose a proxy says that a setting names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Request

from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.serve.processes import TOKEN, visitor
from douban_pipeline_tests.serve.test_serving import listening


@contextmanager
def service(**settings: Any) -> Iterator[str]:
    """Yield the address of a service that says who is seen where."""
    router = APIRouter()

    @router.get("/seen/who")
    def who(request: Request) -> dict[str, str]:
        assert request.client is not None
        return {"address": request.client.host, "scheme": request.url.scheme, "user": request.state.user}

    mounts = [Mount("seen", router, public=["/seen"])]
    with listening(create_app(ServeSettings(_env_file=None, token=TOKEN, **settings), mounts, FakeClock())) as base:
        yield base


def seen(base: str, address: str = "127.0.0.1", **headers: str) -> dict[str, str]:
    with visitor(base, address, **{name.replace("_", "-"): value for name, value in headers.items()}) as client:
        return dict(client.get("/seen/who").json())


FORGED = {"x_forwarded_for": "203.0.113.9", "x_forwarded_proto": "https"}


def test_unless_a_setting_names_a_proxy_nobody_is_believed_on_loopback_either() -> None:
    with service() as base:
        assert seen(base, **FORGED) == {"address": "127.0.0.1", "scheme": "http", "user": ""}


def test_no_forged_address_gives_further_guesses() -> None:
    with service() as base, httpx.Client(base_url=base) as guesser:
        answers = [
            guesser.get("/", headers={"Authorization": "Bearer wrong", "X-Forwarded-For": f"203.0.113.{n}"})
            for n in range(7)
        ]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, unknown", "127.0.0.2"),
        ("203.0.113.9, <script>, 10.1.2.3", "10.1.2.3"),
        ("", "127.0.0.2"),
    ],
)
def test_of_a_named_proxy_the_last_address_that_is_no_proxy_counts(given: str, address: str) -> None:
    with service(proxies="127.0.0.2, 10.0.0.0/8", user_header="X-Remote-User") as base:
        found = seen(base, "127.0.0.2", x_forwarded_for=given, x_forwarded_proto="https", x_remote_user="chief")
        assert found == {"address": address, "scheme": "https", "user": "chief"}
        other = seen(base, "127.0.0.3", x_forwarded_for=given, x_forwarded_proto="https", x_remote_user="chief")
        assert other == {"address": "127.0.0.3", "scheme": "http", "user": ""}, (
            "whoever else reaches the port is nobody"
        )


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, 0),
        ({"host": "127.0.0.1:8780"}, 0),
        ({"host": "localhost"}, 0),
        ({"host": "comments.example"}, 1),
        ({"host": "[comments"}, 1),
        ({"x_forwarded_for": "203.0.113.9"}, 1),
    ],
)
def test_the_log_says_once_that_all_have_one_address(headers: dict[str, str], said: int, caplog: Any) -> None:
    with service() as base:
        for _ in range(2):
            seen(base, **headers)
    assert [record.message.count("SERVE_PROXIES") for record in caplog.records] == [1] * said
    caplog.clear()
    with service(proxies="127.0.0.1") as base:
        seen(base, **headers)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"proxies": "*"}, "DOUBAN_PIPELINE_SERVE_PROXIES = '*' is not allowed"),
        ({"proxies": "nginx"}, "IP addresses or networks"),
        ({"user_header": "X-Remote-User"}, "DOUBAN_PIPELINE_SERVE_PROXIES must name the proxy"),
    ],
)
def test_a_setting_that_would_believe_anybody_is_refused(values: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ServeSettings.load(_env_file=None, **values)
    assert said in str(caught.value)
