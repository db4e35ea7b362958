"""Simulates the platforms that messages are pushed to, on loopback, with the real ones' checks and error answers.

Keys, secrets and limits have the form of the real ones. Accepted messages are kept for tests and demos.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, urlsplit

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, html_answer, json_answer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn

KEY = "demo-key-0123456789abcdef"
"""Key, token or topic of every bot."""
SECRET = "SEC-demo-0123456789abcdef"
CHAT = "-1001234567890"
A_MINUTE = {"wecom": 20, "dingtalk": 20, "telegram": 20, "feishu": 100}
_SIGNED_SECONDS = 3600
_ADDRESSES = {
    "wecom": f"/cgi-bin/webhook/send?key={KEY}",
    "dingtalk": f"/robot/send?access_token={KEY}#{SECRET}",
    "feishu": f"/open-apis/bot/v2/hook/{KEY}#{SECRET}",
    "serverchan": f"/{KEY}.send",
    "bark": f"/{KEY}",
    "telegram": f"/bot{KEY}?chat_id={CHAT}",
    "ntfy": f"/{KEY}#{SECRET}",
    "webhook": f"/hook/{KEY}#{SECRET}",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that a platform accepted."""

    kind: str
    title: str
    text: str
    url: str
    at: float
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RefusedPush:
    """A request that a platform refused, with its error code."""

    kind: str
    code: int
    at: float


class PlatformRefusal(Exception):  # noqa: N818 (an answer, not an error)
    """A refusal in a platform's own form."""

    def __init__(self, code: int, answer: HttpAnswer) -> None:
        super().__init__(code)
        self.code = code
        self.answer = answer


class PushServer(LoopbackStandIn):
    """Simulates all platforms except e-mail; see `SmtpServer` for that.

    Args:
        now: Returns the current time in seconds since 1970.
        port: Port on 127.0.0.1; 0 chooses a free one.

    Attributes:
        taken: Accepted messages, in order.
        refused: Refused requests, in order.
        faults: Faults of a platform's next calls, in order: ``error`` is HTTP 500, ``page`` an HTML page with HTTP 200,
            ``redirect`` a redirect, ``throttled`` its own code for too many requests, ``silent`` accepts the message
            and never answers, ``well`` no fault.
    """

    def __init__(self, now: Callable[[], float] = time.time, port: int = 0) -> None:
        self.now, self.port = now, port
        self.taken: list[Taken] = []
        self.refused: list[RefusedPush] = []
        self.faults: defaultdict[str, deque[str]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._minute: defaultdict[str, deque[float]] = defaultdict(deque)

    def channel(self, kind: str, name: str = "") -> str:
        """Return a platform's channel in the form of the setting."""
        return f"{name or kind}={kind}+{self.base}{_ADDRESSES[kind]}"

    def channels(self) -> str:
        """Return the setting with the channels of all platforms."""
        return "\n".join(map(self.channel, _ADDRESSES))

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to a request; None keeps the client waiting."""
        parts = urlsplit(target)
        if method == "GET" and parts.path == "/taken":
            return json_answer([{"kind": each.kind, "title": each.title, "url": each.url} for each in self.taken])
        kind = _kind_of(parts.path)
        if kind is None:
            return html_answer("404", "no such robot", 404)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        with self._lock:
            fault = self.faults[kind].popleft() if self.faults[kind] else "well"
        if fault == "error":
            return json_answer({"error": "internal"}, 500)
        if fault == "page":
            return html_answer("登录", "请登录")
        if fault == "redirect":
            return HttpAnswer(307, b"", headers={"Location": "/elsewhere"})
        try:
            if fault == "throttled" or self._too_many(kind):
                raise _throttled(kind)
            said = json.loads(body)
            answer, title, text, url = _TAKE[kind](self, parts.path, query, said, body, headers)
        except PlatformRefusal as refusal:
            with self._lock:
                self.refused.append(RefusedPush(kind, refusal.code, self.now()))
            return refusal.answer
        with self._lock:
            self.taken.append(Taken(kind, title, text, url, self.now(), said))
        return None if fault == "silent" else answer

    def _too_many(self, kind: str) -> bool:
        if kind not in A_MINUTE:
            return False
        with self._lock:
            times, now = self._minute[kind], self.now()
            while times and times[0] <= now - 60:
                times.popleft()
            if len(times) >= A_MINUTE[kind]:
                return True
            times.append(now)
            return False

    def check_signature(self, timestamp: float, given: str, key: str, text: str) -> bool:
        """Return whether a signature is correct and not older than an hour."""
        digest = hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()
        fresh = abs(self.now() - timestamp) <= _SIGNED_SECONDS
        return fresh and hmac.compare_digest(base64.b64encode(digest).decode(), given)


def _kind_of(path: str) -> str | None:
    starts = {
        "/cgi-bin/webhook/send": "wecom",
        "/robot/send": "dingtalk",
        "/open-apis/bot/v2/hook/": "feishu",
        "/bot": "telegram",
        "/push": "bark",
        "/hook/": "webhook",
    }
    found = next((kind for start, kind in starts.items() if path.startswith(start)), None)
    if found is None and path.endswith(".send"):
        return "serverchan"
    return "ntfy" if found is None and path == "/" else found


def _said(code_name: str, words: str, code: int, status: int = 200, **more: Any) -> PlatformRefusal:
    word = {"errcode": "errmsg", "code": "msg", "error_code": "description"}[code_name]
    return PlatformRefusal(code, json_answer({code_name: code, word: words, **more}, status))


def _throttled(kind: str) -> PlatformRefusal:
    if kind == "wecom":
        return _said("errcode", "api freq out of limit", 45009)
    if kind == "dingtalk":
        return _said("errcode", "send too fast, exceed 20 times per minute", 130101)
    if kind == "feishu":
        return _said("code", "too many request", 9499)
    if kind == "telegram":
        words = "Too Many Requests: retry after 7"
        return _said("error_code", words, 429, 429, ok=False, parameters={"retry_after": 7})
    if kind == "ntfy":
        answer = json_answer({"code": 42901, "http": 429, "error": "limit reached"}, 429, headers={"Retry-After": "9"})
        return PlatformRefusal(42901, answer)
    return PlatformRefusal(429, json_answer({"code": 429, "message": "too many requests"}, 429))


_Accepted = tuple[HttpAnswer, str, str, str]


def _wecom(
    _: PushServer, _path: str, query: Mapping[str, str], said: Mapping[str, Any], _body: bytes, _headers: Message
) -> _Accepted:
    if query.get("key") != KEY:
        raise _said("errcode", f"invalid webhook url, hint: [{query.get('key')}]", 93000)
    if said.get("msgtype") != "markdown":
        raise _said("errcode", "invalid message type", 40008)
    text = said["markdown"]["content"]
    if len(text.encode()) > 4096:
        raise _said("errcode", "markdown.content exceed max length 4096", 40058)
    return json_answer({"errcode": 0, "errmsg": "ok"}), *_read_markdown(text)


def _dingtalk(
    server: PushServer, _path: str, query: Mapping[str, str], said: Mapping[str, Any], body: bytes, _headers: Message
) -> _Accepted:
    if query.get("access_token") != KEY:
        raise _said("errcode", "token is not exist", 300001)
    timestamp = query.get("timestamp", "0")
    text = f"{timestamp}\n{SECRET}"
    if not server.check_signature(int(timestamp) / 1000, query.get("sign", ""), SECRET, text):
        raise _said("errcode", "sign not match, more: [https://ding-doc.dingtalk.com/doc#/serverapi2/qf2nxq]", 310000)
    if len(body) > 20_480:
        raise _said("errcode", "message too long", 460101)
    markdown = said["markdown"]
    return json_answer({"errcode": 0, "errmsg": "ok"}), *_read_markdown(markdown["text"])


def _feishu(
    server: PushServer, path: str, _query: Mapping[str, str], said: Mapping[str, Any], body: bytes, _headers: Message
) -> _Accepted:
    if not path.endswith(f"/{KEY}"):
        raise _said("code", "param invalid: incoming webhook access token invalid", 19001)
    timestamp = str(said.get("timestamp", "0"))
    if not server.check_signature(int(timestamp), str(said.get("sign", "")), f"{timestamp}\n{SECRET}", ""):
        raise _said("code", "sign match fail or timestamp is not within one hour from current time", 19021)
    if len(body) > 20_480 or said.get("msg_type") != "text":
        raise _said("code", "Bad Request", 9499)
    return json_answer({"code": 0, "msg": "success", "data": {}}), *_read_lines(said["content"]["text"])


def _serverchan(
    _: PushServer, path: str, _query: Mapping[str, str], said: Mapping[str, Any], _body: bytes, _headers: Message
) -> _Accepted:
    if path != f"/{KEY}.send":
        raise PlatformRefusal(40001, json_answer({"code": 40001, "message": "[AUTH]错误的Key", "data": []}, 400))
    if not said.get("title") or len(said["title"]) > 32:
        raise PlatformRefusal(40000, json_answer({"code": 40000, "message": "title 长度错误"}, 400))
    text, url = _read_markdown(f"**x**\n{said['desp']}")[1:]
    data = {"pushid": "1", "readkey": "SCT", "error": "SUCCESS", "errno": 0}
    return json_answer({"code": 0, "message": "", "data": data}), said["title"], text, url


def _bark(
    _: PushServer, _path: str, _query: Mapping[str, str], said: Mapping[str, Any], body: bytes, _headers: Message
) -> _Accepted:
    if said.get("device_key") != KEY:
        words = f"failed to get device token: failed to get [{said.get('device_key')}] device token from database"
        raise PlatformRefusal(400, json_answer({"code": 400, "message": words, "timestamp": 1}, 400))
    if len(body) > 4096:
        words = "push failed: PayloadTooLarge"
        raise PlatformRefusal(500, json_answer({"code": 500, "message": words, "timestamp": 1}, 500))
    good = json_answer({"code": 200, "message": "success", "timestamp": 1})
    return good, said["title"], said["body"], said.get("url", "")


def _telegram(
    _: PushServer, path: str, _query: Mapping[str, str], said: Mapping[str, Any], _body: bytes, _headers: Message
) -> _Accepted:
    if path != f"/bot{KEY}/sendMessage":
        raise _said("error_code", "Unauthorized", 401, 401, ok=False)
    if str(said.get("chat_id")) != CHAT:
        raise _said("error_code", "Bad Request: chat not found", 400, 400, ok=False)
    if len(said["text"].encode("utf-16-le")) > 8192:
        raise _said("error_code", "Bad Request: message is too long", 400, 400, ok=False)
    return json_answer({"ok": True, "result": {"message_id": 1}}), *_read_lines(said["text"])


def _ntfy(
    _: PushServer, _path: str, _query: Mapping[str, str], said: Mapping[str, Any], _body: bytes, headers: Message
) -> _Accepted:
    if headers.get("Authorization") != f"Bearer {SECRET}" or said.get("topic") != KEY:
        raise PlatformRefusal(40101, json_answer({"code": 40101, "http": 401, "error": "unauthorized"}, 401))
    if len(said["message"].encode()) > 4096:
        raise PlatformRefusal(40013, json_answer({"code": 40013, "http": 400, "error": "message too large"}, 400))
    good = json_answer({"id": "x1", "time": 1, "event": "message", "topic": KEY, "message": said["message"]})
    return good, said["title"], said["message"], said.get("click", "")


def _webhook(
    _: PushServer, path: str, _query: Mapping[str, str], said: Mapping[str, Any], body: bytes, headers: Message
) -> _Accepted:
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    if path != f"/hook/{KEY}" or headers.get("X-Signature-256") != signature:
        raise PlatformRefusal(401, json_answer({"error": "signature"}, 401))
    return HttpAnswer(204, b""), said["title"], said["text"], said.get("url", "")


_TAKE: Mapping[str, Callable[[PushServer, str, Mapping[str, str], Mapping[str, Any], bytes, Message], _Accepted]] = {
    "wecom": _wecom,
    "dingtalk": _dingtalk,
    "feishu": _feishu,
    "serverchan": _serverchan,
    "bark": _bark,
    "telegram": _telegram,
    "ntfy": _ntfy,
    "webhook": _webhook,
}


def _read_markdown(text: str) -> tuple[str, str, str]:
    """Return title, text and link of a message with a bold first line and an optional link in the last line."""
    title, *lines = [line for line in text.splitlines() if line]
    url = ""
    if lines and lines[-1].startswith("["):
        url = lines.pop().rpartition("(")[2].rstrip(")")
    return title.strip("*"), "\n".join(lines), url


def _read_lines(text: str) -> tuple[str, str, str]:
    title, *lines = text.splitlines()
    url = lines.pop() if lines and lines[-1].startswith("http") else ""
    return title, "\n".join(lines), url
