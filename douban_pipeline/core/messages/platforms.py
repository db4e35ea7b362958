"""The platforms that accept a message by one POST: request format, maximum length, and meaning of the answers.

Pure. Most of them answer HTTP 200 even on errors: the code in the body decides.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from douban_pipeline.core.messages.delivery import DeliveryAnswer, DeliveryRequest, refuse_status
from douban_pipeline.core.messages.message_parts import Width, json_width, utf8_width, utf16_width
from douban_pipeline.core.messages.types import DeliveryError, Part

THROTTLED_SECONDS = 60.0
"""How long to pause a robot that was sent too much."""
READ_MORE = "查看详情"
_JSON = {"Content-Type": "application/json; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Robot:
    """How a platform is reached: the address it showed, and its signing secret (empty for none)."""

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class MessagePlatform:
    """One platform.

    Attributes:
        name: Its name in settings.
        most: Maximum length of the `counted` text.
        width: How it measures that length.
        per_minute: Messages per minute that one robot accepts.
        counted: Returns the text of a part whose length is limited.
        request: Returns the call that sends a part.
        check: Raises `DeliveryError` unless an answer with a success status also reports success in its body.
        answered_in_status: Whether error statuses come with a body worth parsing.
        keyed: Whether a message that is sent again with its key is shown once.
    """

    name: str
    most: int
    width: Width
    per_minute: int
    counted: Callable[[Part], str]
    request: Callable[[Robot, Part, datetime], DeliveryRequest]
    check: Callable[[Mapping[str, Any]], None] | None = None
    answered_in_status: bool = False
    keyed: bool = False

    def judge(self, answer: DeliveryAnswer) -> str:
        """Return what an answer reported, in short.

        Raises:
            DeliveryError: The part was not accepted.
        """
        if not self.answered_in_status or answer.status >= 500:
            refuse_status(answer)
        if self.check is None:
            return f"HTTP {answer.status}"
        try:
            reply = json.loads(answer.body)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            refuse_status(answer)
            raise DeliveryError("回答不是 JSON，地址可能不是机器人的", reached=True)
        self.check(reply)
        refuse_status(answer)
        return json.dumps(reply, ensure_ascii=False)


def _json_request(url: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None) -> DeliveryRequest:
    return DeliveryRequest(url, json.dumps(body, ensure_ascii=False).encode(), _JSON, query or {})


def _refused(code: Any, retry_after: float | None = None) -> DeliveryError:
    shown = code if isinstance(code, int) else "缺失"
    # The platform's own text is not repeated: it may quote the address.
    reason = f"平台拒收，错误码 {shown}，含义见该平台的机器人文档"
    return DeliveryError(reason, reached=True, retry_after=retry_after)


def _expect(*names: str, good: int, throttled: tuple[int, ...] = ()) -> Callable[[Mapping[str, Any]], None]:
    """Return a check that the first of ``names`` present in an answer equals ``good``."""

    def check(reply: Mapping[str, Any]) -> None:
        code = next((reply[name] for name in names if name in reply), None)
        if code != good or isinstance(code, bool):
            raise _refused(code, THROTTLED_SECONDS if code in throttled else None)

    return check


def _markdown(part: Part, line_break: str) -> str:
    lines = [f"**{part.title}**", *part.text.splitlines()]
    url = part.message.url
    # A closing parenthesis would end the link.
    lines.append(f"[{READ_MORE}]({url.replace('(', '%28').replace(')', '%29')})" if url else "")
    return line_break.join(line for line in lines if line)


def _lines(part: Part) -> str:
    return "\n".join(line for line in (part.title, part.text, part.message.url) if line)


# --- WeCom, DingTalk, Feishu ------------------------------------------------------------------------------------------


def _wecom_text(part: Part) -> str:
    return _markdown(part, "\n")


def _wecom(robot: Robot, part: Part, _now: datetime) -> DeliveryRequest:
    return _json_request(robot.url, {"msgtype": "markdown", "markdown": {"content": _wecom_text(part)}})


def _dingtalk_text(part: Part) -> str:
    return _markdown(part, "\n\n")  # DingTalk ignores a single line break


def _dingtalk(robot: Robot, part: Part, now: datetime) -> DeliveryRequest:
    body = {"msgtype": "markdown", "markdown": {"title": part.title, "text": _dingtalk_text(part)}}
    query: dict[str, str] = {}
    if robot.secret:
        timestamp = str(int(now.timestamp() * 1000))
        query = {"timestamp": timestamp, "sign": _signed(robot.secret, f"{timestamp}\n{robot.secret}")}
    return _json_request(robot.url, body, query)


def _feishu(robot: Robot, part: Part, now: datetime) -> DeliveryRequest:
    signature: dict[str, str] = {}
    if robot.secret:
        # Feishu's scheme: timestamp and secret are the key, and the signed message is empty.
        timestamp = str(int(now.timestamp()))
        signature = {"timestamp": timestamp, "sign": _signed(f"{timestamp}\n{robot.secret}", "")}
    return _json_request(robot.url, {**signature, "msg_type": "text", "content": {"text": _lines(part)}})


def _signed(key: str, text: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()).decode()


# --- ServerChan, Bark, Telegram, ntfy ---------------------------------------------------------------------------------

_SERVERCHAN_TITLE = 32
_BARK_OVERHEAD = 600
"""Bytes of Apple's 4,096 that are used by neither title, text nor address."""


def _serverchan_text(part: Part) -> str:
    # Its titles are short: a longer one is put in full before the text.
    text = part.text if len(part.title) <= _SERVERCHAN_TITLE else f"{part.title}\n{part.text}"
    url = part.message.url
    return "\n\n".join(line for line in (*text.splitlines(), f"[{READ_MORE}]({url})" if url else "") if line)


def _serverchan(robot: Robot, part: Part, _now: datetime) -> DeliveryRequest:
    return _json_request(robot.url, {"title": part.title[:_SERVERCHAN_TITLE], "desp": _serverchan_text(part)})


def _bark(robot: Robot, part: Part, _now: datetime) -> DeliveryRequest:
    """Return a call of ``/push``; the address that Bark shows ends with the phone's key."""
    parts = urlsplit(robot.url)
    folder, _, key = parts.path.rstrip("/").rpartition("/")
    body = {"device_key": key, "title": part.title, "body": part.text or part.title, "group": part.message.kind}
    if part.message.url:
        body["url"] = part.message.url
    if part.key:
        body["id"] = part.key  # a second message with it replaces the first
    return _json_request(urlunsplit((parts.scheme, parts.netloc, f"{folder}/push", "", "")), body)


def _telegram(robot: Robot, part: Part, _now: datetime) -> DeliveryRequest:
    """Return a call of ``sendMessage``; the address is the bot's, with ``chat_id`` in its query."""
    parts = urlsplit(robot.url)
    body: dict[str, Any] = {name: values[0] for name, values in parse_qs(parts.query).items()}
    body |= {"text": _lines(part), "link_preview_options": {"is_disabled": True}}
    path = parts.path.rstrip("/").removesuffix("/sendMessage") + "/sendMessage"
    return _json_request(urlunsplit((parts.scheme, parts.netloc, path, "", "")), body)


def _telegram_check(reply: Mapping[str, Any]) -> None:
    if reply.get("ok") is not True:
        parameters = reply.get("parameters")
        wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
        raise _refused(reply.get("error_code"), float(wait) if isinstance(wait, int | float) else None)


def _ntfy(robot: Robot, part: Part, _now: datetime) -> DeliveryRequest:
    """Return a call of the server's root, where the JSON may hold a Chinese title; the address ends with the topic."""
    parts = urlsplit(robot.url)
    folder, _, topic = parts.path.rstrip("/").rpartition("/")
    body: dict[str, Any] = {"topic": topic, "title": part.title, "message": part.text or part.title}
    if part.message.url:
        body["click"] = part.message.url
    if part.key:
        body["sequence_id"] = part.key  # a second message with it replaces the first
    request = _json_request(urlunsplit((parts.scheme, parts.netloc, f"{folder}/", "", "")), body)
    headers = {**_JSON, "Authorization": f"Bearer {robot.secret}"} if robot.secret else _JSON
    return DeliveryRequest(request.url, request.content, headers)


def _ntfy_check(reply: Mapping[str, Any]) -> None:
    if not reply.get("id") or reply.get("event") != "message":
        raise _refused(reply.get("code"))


# --- any address ------------------------------------------------------------------------------------------------------


def _generic(robot: Robot, part: Part, _now: datetime) -> DeliveryRequest:
    message = part.message
    body = {
        "title": message.title,
        "text": message.text,
        "kind": message.kind,
        "cause": message.cause,
        "at": message.at.isoformat(),
    }
    body |= {name: value for name, value in (("url", message.url), ("key", message.key)) if value}
    content = json.dumps(body, ensure_ascii=False).encode()
    headers = dict(_JSON)
    if robot.secret:
        headers["X-Signature-256"] = hmac.new(robot.secret.encode(), content, hashlib.sha256).hexdigest()
    if message.key:
        headers["Idempotency-Key"] = message.key
    return DeliveryRequest(robot.url, content, headers)


def _text(part: Part) -> str:
    return part.text


UNLIMITED = 1_000_000_000

PLATFORMS: Mapping[str, MessagePlatform] = {
    platform.name: platform
    for platform in (
        MessagePlatform(
            "wecom", 4096, utf8_width, 20, _wecom_text, _wecom, _expect("errcode", good=0, throttled=(45009,))
        ),
        MessagePlatform(
            "dingtalk",
            19_000,  # the limit for the whole call is 20,000
            json_width,
            20,
            _dingtalk_text,
            _dingtalk,
            _expect("errcode", good=0, throttled=(130101, 90018)),
        ),
        MessagePlatform(
            "feishu",
            19_000,  # the limit for the whole call is 20 KB
            json_width,
            100,
            _lines,
            _feishu,
            _expect("code", "StatusCode", good=0, throttled=(9499, 11232)),
            answered_in_status=True,
        ),
        MessagePlatform(
            "serverchan",
            32_000,
            utf8_width,
            60,
            _serverchan_text,
            _serverchan,
            _expect("code", good=0),
            answered_in_status=True,
        ),
        MessagePlatform(
            "bark",
            4096 - _BARK_OVERHEAD,
            json_width,
            60,
            _lines,
            _bark,
            _expect("code", good=200, throttled=(429,)),
            answered_in_status=True,
            keyed=True,
        ),
        MessagePlatform("telegram", 4096, utf16_width, 20, _lines, _telegram, _telegram_check, answered_in_status=True),
        MessagePlatform("ntfy", 4096, utf8_width, 60, _text, _ntfy, _ntfy_check, keyed=True),
        MessagePlatform("webhook", UNLIMITED, utf8_width, 60, _text, _generic, keyed=True),
    )
}
"""The platforms by name; ``webhook`` is any URL that accepts JSON: title, text, kind, cause, at, url, key, with
``X-Signature-256``, the HMAC of the body in hex, if a secret is given."""
