"""Messages to the people who keep the site: one POST to a chat's robot, or to any address that takes JSON.

The address of a robot is its key. Neither it nor the signing secret ever appears in an error or a log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from douban_pipeline.core.deadline import Deadline

DEADLINE_SECONDS = 5.0
"""Wall-clock limit of one call: senders wait for it."""
MOST_BYTES = 4096
"""Longest text in UTF-8: WeCom's limit, the shortest of them all."""
_MOST_TITLE = 100
_MOST_ANSWER = 64 * 1024
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# What chats take for a link, a mention or other markup; its full-width double is only text.
_MARKUP = str.maketrans("<>[]`", "＜＞［］｀")

# It logs the address of every call in full.
logging.getLogger("httpx").setLevel(logging.WARNING)


class WebhookError(Exception):
    """A message was not taken; the text says why in one sentence, without address and secret.

    Attributes:
        reached: Whether there was an answer at all; without one, the next message need not be tried now.
    """

    def __init__(self, reason: str, *, reached: bool) -> None:
        super().__init__(reason)
        self.reached = reached


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        title: One line.
        text: Lines of plain text; markup in it is made harmless.
        kind: What sort of thing happened, for machines.
        cause: What exactly, for machines: the same cause is the same text.
        at: When it began.
    """

    title: str
    text: str
    kind: str
    cause: str
    at: datetime


def post_alert(
    form: str, url: str, secret: str, message: Message, *, now: datetime, deadline: float = DEADLINE_SECONDS
) -> None:
    """Send ``message`` once: no redirect is followed, nothing is tried again.

    The forms are those of the platforms' robots: WeCom ``markdown``; DingTalk ``markdown``, signed in the query;
    Feishu ``text``, signed in the body; ``generic`` is JSON of title, text, kind, cause and at (ISO 8601), with
    ``X-Signature-256``, the HMAC of the body in hex.

    Args:
        form: wecom, dingtalk, feishu or generic.
        url: Where to.
        secret: Key of the signature; empty for none. WeCom has none.
        message: What to send.
        now: The present moment, which platforms hold against their own clock.
        deadline: Seconds the call may take in all.

    Raises:
        WebhookError: There was no good answer in time.
        ValueError: There is no such form.
    """
    query: dict[str, str] = {}
    headers = {"Content-Type": "application/json; charset=utf-8"}
    body: dict[str, Any]
    if form == "wecom":
        body = {"msgtype": "markdown", "markdown": {"content": _markdown(message, "\n")}}
    elif form == "dingtalk":
        # A single line break is none to DingTalk.
        markdown = {"title": _plain(message.title)[:_MOST_TITLE], "text": _markdown(message, "\n\n")}
        body = {"msgtype": "markdown", "markdown": markdown}
        query = _dingtalk_signature(secret, now) if secret else {}
    elif form == "feishu":
        text = _cut(f"{_plain(message.title)}\n{_plain(message.text)}")
        body = {**(_feishu_signature(secret, now) if secret else {}), "msg_type": "text", "content": {"text": text}}
    elif form == "generic":
        body = {
            "title": message.title,
            "text": message.text,
            "kind": message.kind,
            "cause": message.cause,
            "at": message.at.isoformat(),
        }
    else:
        raise ValueError(f"no such form of alerts: {form}")
    content = json.dumps(body, ensure_ascii=False).encode()
    if form == "generic" and secret:
        headers["X-Signature-256"] = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    status, answer = _post(url, query, headers, content, deadline)
    if not 200 <= status < 300:
        raise WebhookError(f"HTTP {status}" + ("（不跟随跳转）" if 300 <= status < 400 else ""), reached=True)
    if form != "generic":
        _refuse(answer)


def _post(
    url: str, query: Mapping[str, str], headers: Mapping[str, str], content: bytes, seconds: float
) -> tuple[int, bytes]:
    answer = bytearray()
    with Deadline(seconds) as deadline:
        try:
            target = httpx.URL(url)
            target = target.copy_merge_params(query) if query else target
            with (
                httpx.Client(timeout=seconds, mounts={f"all://{host}": None for host in _LOOPBACK}) as client,
                client.stream(
                    "POST", target, headers=headers, content=content, extensions={"trace": deadline.trace}
                ) as response,
            ):
                for chunk in response.iter_bytes():
                    answer += chunk
                    if deadline.passed or len(answer) > _MOST_ANSWER:
                        break
                if not deadline.passed:
                    return response.status_code, bytes(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Not chained: what the library says may hold the address.
            if not deadline.passed:
                what = "没有按时回答" if isinstance(error, httpx.TimeoutException) else "连接不上"
                raise WebhookError(f"{what}（{type(error).__name__}）", reached=False) from None
    raise WebhookError(f"{seconds:g} 秒内没有完整的回答", reached=False)


def _refuse(answer: bytes) -> None:
    """Raise if a platform's answer, always HTTP 200, says that it did not take the message."""
    try:
        said = json.loads(answer)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise WebhookError("回答不是 JSON，地址可能不是机器人的", reached=True)
    code = next((said[name] for name in ("errcode", "code", "StatusCode") if name in said), None)
    if code != 0:
        shown = code if isinstance(code, int) else "缺失"
        # Its own words are not repeated: they may quote the address.
        raise WebhookError(f"平台拒收，错误码 {shown}，含义见该平台的机器人文档", reached=True)


def _dingtalk_signature(secret: str, now: datetime) -> dict[str, str]:
    timestamp = str(int(now.timestamp() * 1000))
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    return {"timestamp": timestamp, "sign": base64.b64encode(digest).decode()}


def _feishu_signature(secret: str, now: datetime) -> dict[str, str]:
    # Feishu's way: what is signed is the key, and the message is empty.
    timestamp = str(int(now.timestamp()))
    digest = hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
    return {"timestamp": timestamp, "sign": base64.b64encode(digest).decode()}


def _markdown(message: Message, line_break: str) -> str:
    lines = [f"**{_plain(message.title)}**", *_plain(message.text).splitlines()]
    return _cut(line_break.join(line for line in lines if line))


def _plain(text: str) -> str:
    return text.translate(_MARKUP)


def _cut(text: str) -> str:
    content = text.encode()
    if len(content) <= MOST_BYTES:
        return text
    return content[: MOST_BYTES - 3].decode(errors="ignore") + "…"
