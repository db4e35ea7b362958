"""Tokens, cookies and guesses, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.logins import TokenKeeper
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.serve.settings import ServeSettings

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
TOKEN = "a-token-of-this-service-0123456789"
MONTH = timedelta(days=30)


def test_a_remembered_browser_is_known_for_thirty_days_and_no_longer() -> None:
    keeper = TokenKeeper(TOKEN, b"test", MONTH)
    cookie, kept = keeper.issue(NOW, remember=True)
    assert kept == 30 * 86_400
    assert keeper.login_of(cookie, NOW + MONTH - timedelta(seconds=1))
    assert not keeper.login_of(cookie, NOW + MONTH)


def test_a_browser_that_did_not_ask_for_it_is_forgotten_when_it_is_closed_or_after_half_a_day() -> None:
    keeper = TokenKeeper(TOKEN, b"test", MONTH)
    cookie, kept = keeper.issue(NOW, remember=False)
    assert kept is None
    assert keeper.login_of(cookie, NOW + timedelta(hours=11))
    assert not keeper.login_of(cookie, NOW + timedelta(hours=12))


def test_another_token_makes_all_cookies_void() -> None:
    cookie, _ = TokenKeeper(TOKEN, b"test", MONTH).issue(NOW, remember=True)
    assert not TokenKeeper(TOKEN + "x", b"test", MONTH).login_of(cookie, NOW)


def test_no_cookie_says_the_token_or_is_given_twice() -> None:
    keeper = TokenKeeper(TOKEN, b"test", MONTH)
    cookies = {keeper.issue(NOW, remember=True)[0] for _ in range(50)}
    assert len(cookies) == 50
    assert not any(TOKEN in cookie for cookie in cookies)


@given(place=st.integers(0, 200), letter=st.sampled_from("0123456789abcdef.x"), text=st.text(max_size=80))
def test_a_cookie_that_was_changed_is_none(place: int, letter: str, text: str) -> None:
    keeper = TokenKeeper(TOKEN, b"test", MONTH)
    cookie, _ = keeper.issue(NOW, remember=True)
    place %= len(cookie)
    changed = cookie[:place] + letter + cookie[place + 1 :]
    assert (keeper.login_of(changed, NOW) is not None) == (changed == cookie)
    assert not keeper.login_of(text, NOW)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"host": "0.0.0.0"}, "DOUBAN_PIPELINE_SERVE_HOST = '0.0.0.0' is not allowed"),
        ({"host": "::"}, "DOUBAN_PIPELINE_SERVE_TOKEN"),
        ({"host": "192.168.1.2"}, "DOUBAN_PIPELINE_SERVE_TOKEN"),
        ({"token": "short"}, "at least 16 characters"),
    ],
)
def test_an_address_beyond_this_machine_needs_a_good_token(values: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ServeSettings.load(_env_file=None, **values)
    assert said in str(caught.value)
    assert "short" not in str(caught.value).replace("too short", "")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert ServeSettings.load(_env_file=None, host=host).listens_on_loopback
    assert not ServeSettings.load(_env_file=None, host="0.0.0.0", token=TOKEN).listens_on_loopback
