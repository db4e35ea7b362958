"""Serves sources of every kind on loopback, which publish on a schedule and simulate every fault of real sources.

The published entries depend on the given clock, so that a day can pass in a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.message import Message
from email.utils import format_datetime
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, html_answer, json_answer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn

SHOWN = 20
"""Number of entries in a feed, the newest ones."""
API = "/api/v1/wx"
ACCOUNT, PASSWORD = "demo", "demo"
_ZONE = timezone(timedelta(hours=8))
_XML = "application/rss+xml; charset=utf-8"


@dataclass(frozen=True, slots=True)
class SourceStandIn:
    """One source of the server.

    Attributes:
        form: rss, atom, jsonfeed, json, maccms or werss.
        times: Publication times in seconds, ascending.
        title: Its title.
        fault: Its fault; empty for none. See `FeedServer._faulty`.
        retry_after: Value of Retry-After in a throttling answer, in seconds.
        max_age: Declared lifetime of an answer in seconds; None declares none.
    """

    form: str
    times: Sequence[float]
    title: str = ""
    fault: str = ""
    retry_after: int = 600
    max_age: int | None = None


@dataclass(slots=True)
class RequestSeen:
    """One request: channel, time by the server's clock, and answer."""

    channel: str
    at: float
    status: int
    conditional: bool


@dataclass
class FeedServer(LoopbackStandIn):
    """Serves ``channels`` at ``/feed/NAME`` and WeRSS at its own paths, as a context manager.

    Attributes:
        now: The current time.
        channels: The sources by name; may be changed while it serves.
        seen: All requests.
        port: Port to listen on; 0 chooses a free one.
    """

    now: Callable[[], float]
    channels: dict[str, SourceStandIn]
    seen: list[RequestSeen] = field(default_factory=list)
    port: int = 0

    def url(self, name: str) -> str:
        """Return the address of a channel."""
        return f"{self.base}/feed/{name}"

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to a request; None keeps the client waiting."""
        parts = urlsplit(target)
        if parts.path.startswith(API):
            return self._werss(method, parts.path.removeprefix(API), parse_qs(parts.query), body, headers)
        name = parts.path.removeprefix("/feed/")
        channel = self.channels.get(name)
        if channel is None:
            return self._noted(name, headers, HttpAnswer(404, b"no such feed", "text/plain"))
        faulty, answer = self._faulty(channel)
        if not faulty:
            answer = self._good(channel, headers)
        return self._noted(name, headers, answer)

    def _noted(self, name: str, headers: Message, answer: HttpAnswer | None) -> HttpAnswer | None:
        conditional = "If-None-Match" in headers or "If-Modified-Since" in headers
        self.seen.append(RequestSeen(name, self.now(), answer.status if answer else 0, conditional))
        return answer

    def _faulty(self, channel: SourceStandIn) -> tuple[bool, HttpAnswer | None]:
        """Return whether a channel's fault replaces its answer, and the answer."""
        fault, _, target = channel.fault.partition(" ")
        items = self._published(channel)
        bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><rss version="2.0"/>'
        answers: Mapping[str, Callable[[], HttpAnswer | None]] = {
            "moved": lambda: HttpAnswer(301, b"", headers={"Location": target}),
            "elsewhere": lambda: HttpAnswer(302, b"", headers={"Location": target}),
            "throttled": lambda: HttpAnswer(429, b"slow down", headers={"Retry-After": str(channel.retry_after)}),
            "unauthorised": lambda: HttpAnswer(401, b"login"),
            "forbidden": lambda: HttpAnswer(403, b"no"),
            "missing": lambda: HttpAnswer(404, b"not now", headers={"Retry-After": str(channel.retry_after)}),
            "gone": lambda: HttpAnswer(410, b"gone"),
            "broken": lambda: HttpAnswer(200, b'<?xml version="1.0"?><oops><<<&&', _XML),
            "failing": lambda: HttpAnswer(500, b"oops"),
            "page": lambda: html_answer("Welcome", "no feed here"),
            "hanging": lambda: None,
            "large": lambda: HttpAnswer(200, b"<rss><channel>" + b" " * 20_000_000, _XML),
            "bomb": lambda: HttpAnswer(200, bomb, _XML),
            "empty": lambda: HttpAnswer(200, b"", _XML),
            "gbk": lambda: HttpAnswer(200, _rss(channel.title, items, "gbk"), "application/rss+xml; charset=utf-8"),
        }
        return (True, answers[fault]()) if fault in answers else (False, None)

    def _published(self, channel: SourceStandIn) -> list[tuple[int, float]]:
        now = self.now()
        numbered = [(number, moment) for number, moment in enumerate(channel.times) if moment <= now]
        return numbered[-SHOWN:][::-1]

    def _good(self, channel: SourceStandIn, headers: Message) -> HttpAnswer:
        items = self._published(channel)
        etag = '"' + hashlib.sha256(repr((channel.form, items)).encode()).hexdigest()[:20] + '"'
        sent = {"ETag": etag}
        if channel.max_age is not None:
            sent["Cache-Control"] = f"max-age={channel.max_age}"
        if channel.form in ("rss", "atom", "jsonfeed") and headers.get("If-None-Match") == etag:
            return HttpAnswer(304, b"", headers=sent)
        if channel.form == "rss":
            return HttpAnswer(200, _rss(channel.title, items), _XML, sent)
        if channel.form == "atom":
            return HttpAnswer(200, _atom(channel.title, items), "application/atom+xml", sent)
        if channel.form == "jsonfeed":
            return json_answer(_json_feed(channel.title, items), headers=sent)
        if channel.form == "maccms":
            return json_answer(_videos(items))
        return json_answer({"data": {"rows": [_row(number, moment) for number, moment in items]}})

    def _werss(
        self, method: str, path: str, query: Mapping[str, Sequence[str]], body: bytes, headers: Message
    ) -> HttpAnswer:
        if path == "/auth/login" and method == "POST":
            form = parse_qs(body.decode())
            if form.get("username") != [ACCOUNT] or form.get("password") != [PASSWORD]:
                return json_answer({"detail": {"code": 40101, "message": "用户名或密码错误", "data": None}}, 202)
            token = {"access_token": "demo-token", "token_type": "bearer", "expires_in": 259_200}
            return json_answer({"code": 0, "message": "success", "data": token})
        if headers.get("Authorization") != "Bearer demo-token":
            return json_answer({"detail": "Could not validate credentials"}, 401)
        if path != "/articles":
            return json_answer(None)
        [name], [offset], [limit] = (query.get(each, [default]) for each, default in _WERSS_DEFAULTS)
        channel = self.channels.get(name)
        items = self._published(channel) if channel is not None else []
        rows = [
            {
                "id": f"{name}-{number}",
                "mp_id": name,
                "mp_name": channel.title if channel else "",
                "title": f"{channel.title if channel else ''} {number}",
                "url": f"https://mp.weixin.qq.com/s/{name}-{number}",
                "description": "",
                "publish_time": int(moment),
                "status": 1,
            }
            for number, moment in items
        ]
        self.seen.append(RequestSeen(name, self.now(), 200, False))
        page = rows[int(offset) : int(offset) + int(limit)]
        return json_answer({"code": 0, "message": "success", "data": {"list": page, "total": len(rows)}})


_WERSS_DEFAULTS = (("mp_id", ""), ("offset", "0"), ("limit", "5"))


def _rss(title: str, items: Sequence[tuple[int, float]], encoding: str = "utf-8") -> bytes:
    rows = "".join(
        f"<item><guid isPermaLink='false'>item-{number}</guid><title>{escape(title)} 第 {number} 篇</title>"
        f"<link>/item/{number}</link><pubDate>{_http_date(moment)}</pubDate></item>"
        for number, moment in items
    )
    head = f'<?xml version="1.0" encoding="{encoding}"?><rss version="2.0"><channel>'
    return f"{head}<title>{escape(title)}</title>{rows}</channel></rss>".encode(encoding)


def _atom(title: str, items: Sequence[tuple[int, float]]) -> bytes:
    rows = "".join(
        f"<entry><id>tag:demo,{number}</id><title>{escape(title)} {number}</title><link href='/entry/{number}'/>"
        f"<published>{datetime.fromtimestamp(int(moment), UTC).isoformat()}</published></entry>"
        for number, moment in items
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(title)}</title>{rows}</feed>'.encode()


def _json_feed(title: str, items: Sequence[tuple[int, float]]) -> dict[str, object]:
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": title,
        "items": [
            {
                "id": str(number),
                "url": f"https://example.com/{number}",
                "title": f"{title} {number}",
                "date_published": datetime.fromtimestamp(int(moment), UTC).isoformat(),
            }
            for number, moment in items
        ],
    }


def _videos(items: Sequence[tuple[int, float]]) -> dict[str, object]:
    """Return the newest videos; every second publication is a new episode of the first video."""
    rows = {
        (1 if number % 2 else number + 2): {
            "vod_id": 1 if number % 2 else number + 2,
            "vod_name": f"示例剧 {1 if number % 2 else number + 2}",
            "type_id": 13,
            "type_name": "国产剧",
            "vod_time": f"{datetime.fromtimestamp(int(moment), _ZONE):%Y-%m-%d %H:%M:%S}",
            "vod_remarks": f"更新至第 {number} 集",
        }
        for number, moment in reversed(items)
    }
    return {"code": 1, "msg": "数据列表", "page": 1, "pagecount": 1, "list": list(rows.values())}


def _row(number: int, moment: float) -> dict[str, object]:
    address = f"https://example.com/notice/{number}"
    return {"no": number, "name": f"公告 {number}", "href": address, "at": int(moment * 1000)}


def _http_date(moment: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(moment), UTC))
