"""Alerts reach every kind of robot in its own form, signed, once, and give nothing away when they do not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from douban_pipeline.core.messages.robots import MOST_BYTES, post_alert
from douban_pipeline.core.messages.types import DeliveryError, Message
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.robot import Posted, Robot

SECRET = "SEC-of-the-robot-42"
TOLD = Message("豆瓣已熔断", "出现验证码\n45 分钟后再试", "breaker", "breaker:douban", START - timedelta(hours=1))
FORMS = ("wecom", "dingtalk", "feishu", "generic")


@pytest.fixture
def robot() -> Iterator[Robot]:
    with Robot() as robot:
        yield robot


def post(robot: Robot, form: str, secret: str = "", message: Message = TOLD, deadline: float = 5.0) -> Posted:
    post_alert(form, robot.url, secret, message, now=START, deadline=deadline)
    [posted] = robot.posted
    return posted


def signature(key: str, text: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()).decode()


def test_wecom_is_sent_markdown(robot: Robot) -> None:
    posted = post(robot, "wecom", SECRET)
    content = "**豆瓣已熔断**\n出现验证码\n45 分钟后再试"
    assert posted.json == {"msgtype": "markdown", "markdown": {"content": content}}
    assert (posted.path, posted.query) == ("/robot/send", {"key": "0123456789-key"})
    assert posted.headers["content-type"].startswith("application/json")


def test_dingtalk_is_sent_markdown_signed_in_the_query(robot: Robot) -> None:
    posted = post(robot, "dingtalk", SECRET)
    text = "**豆瓣已熔断**\n\n出现验证码\n\n45 分钟后再试"
    assert posted.json == {"msgtype": "markdown", "markdown": {"title": "豆瓣已熔断", "text": text}}
    timestamp = posted.query["timestamp"]
    assert datetime.fromtimestamp(int(timestamp) / 1000, UTC) == START
    assert posted.query["sign"] == signature(SECRET, f"{timestamp}\n{SECRET}")
    assert posted.query["key"] == "0123456789-key"


def test_feishu_is_sent_text_signed_in_the_body(robot: Robot) -> None:
    said = post(robot, "feishu", SECRET).json
    assert said["msg_type"] == "text"
    assert said["content"] == {"text": "豆瓣已熔断\n出现验证码\n45 分钟后再试"}
    assert datetime.fromtimestamp(int(said["timestamp"]), UTC) == START
    assert said["sign"] == signature(f"{said['timestamp']}\n{SECRET}", "")


def test_any_other_address_is_sent_json_with_the_digest_of_the_body(robot: Robot) -> None:
    robot.status, robot.answer = 204, b""
    posted = post(robot, "generic", SECRET)
    assert posted.json == {
        "title": TOLD.title,
        "text": TOLD.text,
        "kind": "breaker",
        "cause": "breaker:douban",
        "at": "2026-03-01T03:00:00+00:00",
    }
    assert posted.headers["x-signature-256"] == hmac.new(SECRET.encode(), posted.body, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("form", FORMS)
def test_without_a_secret_nothing_is_signed(robot: Robot, form: str) -> None:
    posted = post(robot, form)
    assert posted.query == {"key": "0123456789-key"}
    assert "sign" not in posted.json
    assert "x-signature-256" not in posted.headers


@pytest.mark.parametrize("form", ["wecom", "dingtalk", "feishu"])
def test_a_long_text_is_cut_between_letters(robot: Robot, form: str) -> None:
    said = post(robot, form, message=Message("题", "字" * 5000, "k", "c", START)).json
    text = said.get("content", {}).get("text") or said["markdown"].get("content") or said["markdown"]["text"]
    assert MOST_BYTES - 6 < len(text.encode()) <= MOST_BYTES
    assert text.endswith("字…")


@pytest.mark.parametrize("form", ["wecom", "dingtalk", "feishu"])
def test_what_came_from_outside_is_no_link_and_calls_nobody(robot: Robot, form: str) -> None:
    hostile = '<at user_id="all"></at> <@all> [点我](https://example.org) `x`'
    body = post(robot, form, message=Message(hostile, hostile, "k", "c", START)).body.decode()
    assert not set("<>`") & set(body)
    assert "](" not in body


@pytest.mark.parametrize(
    ("form", "status", "answer", "said"),
    [
        ("wecom", 200, {"errcode": 93000, "errmsg": "invalid webhook url"}, "错误码 93000"),
        ("dingtalk", 200, {"errcode": 310000, "errmsg": "sign not match"}, "错误码 310000"),
        ("feishu", 200, {"code": 19021, "msg": "sign match fail"}, "错误码 19021"),
        ("feishu", 200, {"msg": "?"}, "错误码 缺失"),
        ("wecom", 200, [], "不是 JSON"),
        ("wecom", 200, b"<html>login</html>", "不是 JSON"),
        *((form, 500, {"errcode": 0, "code": 0}, "HTTP 500") for form in FORMS),
        *((form, 404, {"errcode": 0, "code": 0}, "HTTP 404") for form in FORMS),
    ],
)
def test_a_message_that_was_not_taken_is_an_error(
    robot: Robot, form: str, status: int, answer: object, said: str
) -> None:
    robot.status, robot.answer = status, answer
    with pytest.raises(DeliveryError, match=said) as caught:
        post(robot, form, SECRET)
    assert caught.value.reached
    assert len(robot.posted) == 1, "it is not tried again here"


def test_the_old_success_of_feishu_is_one(robot: Robot) -> None:
    robot.answer = {"StatusCode": 0, "StatusMessage": "success"}
    post(robot, "feishu")


@pytest.mark.parametrize("form", FORMS)
def test_a_redirect_is_not_followed(robot: Robot, form: str) -> None:
    robot.status, robot.headers = 307, {"Location": "/elsewhere"}
    with pytest.raises(DeliveryError, match="HTTP 307"):
        post(robot, form)
    assert [posted.path for posted in robot.posted] == ["/robot/send"]


def test_a_robot_that_does_not_end_its_answer_is_given_up(robot: Robot) -> None:
    robot.hang = True
    with pytest.raises(DeliveryError) as caught:
        post(robot, "wecom", deadline=0.2)
    assert not caught.value.reached


def test_no_error_and_no_log_holds_the_address_or_the_secret(robot: Robot, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    urls = ("http://127.0.0.1:1/0123456789-key", "ftp://127.0.0.1/0123456789-key", "http://[/0123456789-key")
    for form in FORMS:
        robot.answer = {"errcode": 1, "errmsg": f"bad key 0123456789-key {SECRET}", "code": 1}
        robot.status = 200 if form != "generic" else 403
        for url in (robot.url, *urls):
            with pytest.raises(DeliveryError) as caught:
                post_alert(form, url, SECRET, TOLD, now=START)
            written = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
            assert "0123456789" not in written
            assert SECRET not in written
    assert "0123456789" not in caplog.text
    assert SECRET not in caplog.text


def test_loopback_is_not_sent_through_a_proxy(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert json.loads(post(robot, "generic").body)["title"] == TOLD.title


def test_an_unknown_form_is_a_mistake_of_the_caller(robot: Robot) -> None:
    with pytest.raises(ValueError, match="unknown form"):
        post(robot, "pager")
