"""Who a visitor is: signed tokens, and the login of the CMS."""

from __future__ import annotations

import base64
import hashlib
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from douban_pipeline.comments.identity import CmsUsers, TokenError, guests_at, make_token, read_token
from douban_pipeline_tests.comments.serving import SECRET
from douban_pipeline_tests.harness.fixtures.clocks import START


def test_tokens_are_of_one_kind_and_end():
    expires = START + timedelta(minutes=5)
    token = make_token(7, SECRET, expires, name="七", level=3)
    actor = read_token(token, SECRET, START)
    assert (actor.key, actor.user_id, actor.name, actor.level) == ("u:7", 7, "七", 3)
    header, claims, signature = token.split(".")
    levels = [read_token(make_token(7, SECRET, expires, level=each), SECRET, START).level for each in (10**6, -1, "x")]
    assert levels == [32_767, 0, 0]
    unsigned = make_token(7, "another-secret-0123456789-01234567", expires)
    none = f"eyJhbGciOiJub25lIn0.{claims}."
    deep = base64.urlsafe_b64encode(b"[" * 60_000).decode()
    for wrong in (
        unsigned,
        none,
        f"{deep}.{claims}.{signature}",
        f"{header}.{claims}.",
        "",
        "a.b.c",
        f"{header}.{claims}.{signature[:-2]}AA",
    ):
        with pytest.raises(TokenError):
            read_token(wrong, SECRET, START)
    with pytest.raises(TokenError, match="过期"):
        read_token(token, SECRET, START + timedelta(minutes=10))
    with pytest.raises(TokenError):
        read_token(token, "", START)
    assert read_token(make_token(7, SECRET, expires, name="\u202e员理管 "), SECRET, START).name == "员理管"


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": 10**400}, "过期"),
        ({"exp": float("nan")}, "过期"),
        ({"exp": float("inf")}, "过期"),
        ({"exp": True}, "过期"),
        ({"exp": "9999999999"}, "过期"),
        ({"nbf": 10**400}, "尚未生效"),
        ({"nbf": float("nan")}, "尚未生效"),
        ({"nbf": "1"}, "尚未生效"),
        ({"aud": "shop"}, "不是给评论的"),
        ({"aud": ["shop", 7]}, "不是给评论的"),
        ({"aud": 7}, "不是给评论的"),
        ({"aud": "comments"}, ""),
        ({"aud": ["shop", "comments"]}, ""),
    ],
)
def test_a_token_holds_for_a_time_that_can_be_and_for_whom_it_names(claims, said):
    token = make_token(7, SECRET, START + timedelta(minutes=5), **claims)
    if not said:
        assert read_token(token, SECRET, START).user_id == 7
        return
    with pytest.raises(TokenError, match=said):
        read_token(token, SECRET, START)


def test_the_login_of_the_cms_says_who_somebody_is(tmp_path: Path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'cms.sqlite'}")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE mac_user (user_id INTEGER, user_name TEXT, user_nick_name TEXT, user_portrait TEXT, "
            "group_id TEXT, user_status INTEGER, user_random TEXT)"
        )
        connection.exec_driver_sql(
            "INSERT INTO mac_user VALUES (7, 'qi', '七', '', '3,2', 1, 'abc'), (8, 'ba', '', '', '2', 1, ''), "
            "(1, '', '', 'upload/user/1/1.jpg?v=3', '', 1, ''), (2, '', '', '/upload/user/2/2.jpg', '', 1, ''), "
            "(3, '', '', 'https://evil.example/x.gif', '', 1, ''), (4, '', '', 'upload/../admin.php', '', 1, ''), "
            "(5, '', '', 'upload/x.jpg\" onerror=\"y', '', 1, '')"
        )
    users = CmsUsers("mac_")
    good = {"user_id": "7", "user_name": "qi"}
    with engine.connect() as connection:
        assert users.logged_in(connection, {**good, "user_check": "90ae5cc3b0ba4cf6c0dbdbb2bcd4a78a"}) is None
        for text in ("abc-qi-7-", "abc-7"):
            found = users.logged_in(connection, {**good, "user_check": hashlib.md5(text.encode()).hexdigest()})
            assert found is not None
            assert (found.user_id, found.name, found.level) == (7, "七", 3)
        assert users.logged_in(connection, {**good, "user_check": "é" * 32}) is None
        assert users.logged_in(connection, {"user_id": "9" * 40, "user_check": "a" * 32}) is None
        blank = hashlib.md5(b"-ba-8-").hexdigest()
        assert users.logged_in(connection, {"user_id": "8", "user_name": "ba", "user_check": blank}) is None
        pictures = users.portraits(connection, range(1, 10))
        assert pictures == {1: "/upload/user/1/1.jpg", 2: "/upload/user/2/2.jpg"}
    engine.dispose()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("203.0.113.7", "203.0.113.7", True),
        ("203.0.113.7", "203.0.113.8", False),
        ("203.0.113.7", "::ffff:203.0.113.7", True),
        ("2001:db8:1:2:3::4", "2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:2::4", "2001:db8:1:3::4", False),
        ("", "", True),
    ],
)
def test_guests_at_an_address_are_one(one, other, same):
    assert (guests_at(one) == guests_at(other)) is same
