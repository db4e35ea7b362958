"""Simulates four generations of WeRSS, including their pitfalls, and serves them beside `completions`.

All behaviour was observed in the real program, so that a client tested with it works with all these versions.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, urlsplit

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.completions import ModelStandIn
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn, authorization

API = "/api/v1/wx"
COMPLETIONS = "/chat/completions"
ACCOUNT, PASSWORD = "demo", "demo"
ACCESS_KEY = "WKdemo:SKdemo"
GENERATIONS = ("1.4.1", "1.4.8", "1.4.9", "main")
_LOCKED_AFTER = 5
_ZONE = timezone(timedelta(hours=8))
_STYLE = "<style>" + "".join(f".rich_media_{number}{{color:#333;margin:0 auto}}" for number in range(90)) + "</style>"


@dataclass
class Article:
    """One article of the simulation.

    Attributes:
        article_id: Its id.
        mp_id: Id of its account.
        title: Its title.
        published_at: When it was published, in seconds; None for an article without a time.
        html: Its body: HTML, None if it was not fetched yet, ``DELETED`` if its publisher deleted it.
        description: Its description in the list.
        millis: Whether its time is in milliseconds, as in some answers of main.
        deleted: Whether WeRSS hides it.
    """

    article_id: str
    mp_id: str
    title: str
    published_at: float | None
    html: str | None = ""
    description: str = ""
    millis: bool = False
    deleted: bool = False


@dataclass
class WeRssStandIn:
    """Simulates one generation of WeRSS.

    Attributes:
        now: The current time, in seconds.
        generation: One of `GENERATIONS`.
        accounts: Names of the public accounts by id.
        articles: All articles; those in the future are not listed yet.
        synced_at: When each account was last synced; by default just now.
        down: Whether it answers 503.
        logins: Number of logins, including refused ones.
        renewals: Number of renewed tokens.
        asked: Path and query of every request.
    """

    now: Callable[[], float]
    generation: str = "1.4.8"
    accounts: dict[str, str] = field(default_factory=dict)
    articles: list[Article] = field(default_factory=list)
    synced_at: dict[str, float] = field(default_factory=dict)
    down: bool = False
    logins: int = 0
    renewals: int = 0
    asked: list[str] = field(default_factory=list)
    _refused: int = 0
    _revoked_before: int = 0
    _tokens: int = 0

    @property
    def life(self) -> int:
        """Lifetime of a token in seconds."""
        return 3600 if self.generation == "1.4.1" else 259_200

    def revoke(self) -> None:
        """Invalidate all tokens issued until now, as after a restart with another secret."""
        self._revoked_before = self._tokens

    def answer(self, method: str, target: str, body: bytes, authorization: str) -> HttpAnswer:
        """Return the answer to a request."""
        self.asked.append(f"{method} {target}")
        if self.down:
            return HttpAnswer(503, b"upstream is not there", "text/plain")
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        if not parts.path.startswith(API):
            return json_answer(None)  # the app's page, for every unknown path
        path = parts.path.removeprefix(API)
        if path == "/auth/login" and method == "POST":
            return self._log_in(body)
        if found := re.fullmatch(r"/articles/(.+)", path):
            return self._detail(found[1])  # requires no authentication
        if found := re.fullmatch(r"/mps/(.+)", path):
            return self._account(found[1])
        if not self._is_known(path, authorization):
            return json_answer({"detail": "Could not validate credentials"}, 401)
        if path == "/auth/refresh" and method == "POST":
            self.renewals += 1
            return self._token()
        if path == "/mps":
            return self._accounts(query)
        return self._list(query) if path == "/articles" else json_answer(None)

    def _log_in(self, body: bytes) -> HttpAnswer:
        self.logins += 1
        form = parse_qs(body.decode())
        if "username" not in form or "password" not in form:
            return json_answer({"detail": [{"loc": ["body", "username"], "msg": "field required"}]}, 422)
        good = form["username"] == [ACCOUNT] and form["password"] == [PASSWORD]
        if self._refused >= _LOCKED_AFTER or not good:
            self._refused += 1
            left = max(_LOCKED_AFTER - self._refused, 0)
            said = f"用户名或密码错误，您还有{left}次机会" if left else "账号已锁定，请稍后再试"
            refused = {"detail": {"code": 40101, "message": said, "data": None}}
            return json_answer(refused, 401 if self.generation == "1.4.1" else 202)
        self._refused = 0
        return self._token()

    def _token(self) -> HttpAnswer:
        self._tokens += 1
        claims = {"sub": ACCOUNT, "exp": int(self.now()) + self.life, "n": self._tokens}
        coded = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        token = {"access_token": f"head.{coded}.sign", "token_type": "bearer", "expires_in": self.life}
        return json_answer({"code": 0, "message": "success", "data": token})

    def _is_known(self, path: str, authorization: str) -> bool:
        if authorization.startswith("AK-SK "):
            newer = self.generation in ("1.4.9", "main")
            return newer and not path.startswith("/auth/") and authorization == f"AK-SK {ACCESS_KEY}"
        try:
            coded = authorization.removeprefix("Bearer ").split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)))
        except (IndexError, ValueError):
            return False
        return claims["exp"] > self.now() and claims["n"] > self._revoked_before

    def _accounts(self, query: Mapping[str, Sequence[str]]) -> HttpAnswer:
        limit, offset = _page(query, 10)
        if not 1 <= limit <= 100:
            return json_answer({"detail": [{"loc": ["query", "limit"], "msg": "out of range"}]}, 422)
        rows = [
            {
                "id": mp_id,
                "mp_name": name,
                "mp_cover": "",
                "mp_intro": "",
                "status": 1,
                "created_at": "2026-01-01T00:00:00",
            }
            for mp_id, name in self.accounts.items()
        ]
        page = {"limit": limit, "offset": offset, "total": len(rows)}
        return _good({"list": rows[offset : offset + limit], "page": page, "total": len(rows)})

    def _account(self, mp_id: str) -> HttpAnswer:
        if mp_id not in self.accounts:
            return json_answer({"detail": {"code": 50001, "message": "公众号不存在", "data": None}}, 201)
        synced = int(self.synced_at.get(mp_id, self.now()))
        row = {
            "id": mp_id,
            "mp_name": self.accounts[mp_id],
            "sync_time": synced,
            "update_time": synced,
            "faker_id": "x",
        }
        return _good(row)

    def _list(self, query: Mapping[str, Sequence[str]]) -> HttpAnswer:
        limit, offset = _page(query, 5)
        if not 1 <= limit <= 100 or offset < 0:
            return json_answer({"detail": [{"loc": ["query", "limit"], "msg": "out of range"}]}, 422)
        rows = [each for each in self.articles if not each.deleted and (each.published_at or 0) <= self.now()]
        wanted = query.get("mp_id", [""])[0]
        rows = [each for each in rows if not wanted or each.mp_id == wanted]
        has_content = query.get("has_content", [""])[0]
        if self.generation == "main" and has_content:
            rows = [each for each in rows if bool(each.html) == (has_content == "true")]
        # Times in milliseconds sort first, rows without a time last.
        rows.sort(key=lambda each: _stored_time(each) or 0, reverse=True)
        shown = [self._row(each, has_content) for each in rows[offset : offset + limit]]
        return _good({"list": shown, "total": len(rows)})

    def _row(self, article: Article, has_content: str) -> dict[str, Any]:
        written = datetime.fromtimestamp(article.published_at or 0, _ZONE).replace(tzinfo=None)
        row: dict[str, Any] = {
            "id": article.article_id,
            "mp_id": article.mp_id,
            "mp_name": self.accounts.get(article.mp_id, "未知公众号"),
            "title": article.title,
            "pic_url": "",
            "url": f"https://mp.weixin.qq.com/s/{article.article_id}",
            "description": article.description,
            "status": 1,
            "publish_time": _stored_time(article),
            "created_at": written.isoformat(),
            "updated_at": written.isoformat(),
            "is_export": 0,
            "is_read": 0,
        }
        if self.generation == "1.4.1" or (has_content == "true" and self.generation != "main"):
            row["content"] = article.html
        if self.generation == "1.4.9":
            row |= {"updated_at": str(written), "updated_at_millis": int(written.timestamp() * 1000), "extinfo": None}
        if self.generation == "main":
            row |= {"has_content": int(bool(article.html)), "is_favorite": 0}
        return row

    def _detail(self, article_id: str) -> HttpAnswer:
        article = next((each for each in self.articles if each.article_id == article_id), None)
        if article is None or article.deleted:
            return json_answer({"detail": {"code": 40401, "message": "文章不存在", "data": None}}, 404)
        row = self._row(article, "")
        row.pop("mp_name")
        row["content"] = self._content(article.html)
        if self.generation in ("1.4.9", "main"):
            row["content_html"] = None
        return _good(row)

    def _content(self, html: str | None) -> str | None:
        if self.generation == "1.4.1":
            return html
        if html is None:
            return "<p>转换失败: 'NoneType' object has no attribute 'strip'</p>"
        if self.generation == "1.4.8":
            inner = f"<p>{html}</p>" if html == "DELETED" else re.sub(r"<script.*?</script>", "", html, flags=re.S)
            return f"<!DOCTYPE html><html><head><meta charset='utf-8'>{_STYLE}</head><body>{inner}</body></html>"
        return f"<p>{html}</p>" if html == "DELETED" else html


def _page(query: Mapping[str, Sequence[str]], usual: int) -> tuple[int, int]:
    return int(query.get("limit", [str(usual)])[0]), int(query.get("offset", ["0"])[0])


def _stored_time(article: Article) -> int | None:
    if article.published_at is None:
        return None
    return int(article.published_at * 1000) if article.millis else int(article.published_at)


def _good(data: Any) -> HttpAnswer:
    return json_answer({"code": 0, "message": "success", "data": data})


@dataclass
class DigestServer(LoopbackStandIn):
    """Serves WeRSS and chat completions, as the digest asks them, at one address.

    Attributes:
        werss: Answers requests to WeRSS.
        model: Answers requests to the model.
    """

    werss: WeRssStandIn
    model: ModelStandIn = field(default_factory=ModelStandIn)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def model_url(self) -> str:
        """The address of the model."""
        return f"{self.base}{COMPLETIONS}"

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer of WeRSS or of the model, one at a time."""
        with self._lock:
            if target.startswith(COMPLETIONS):
                return self.model.answer(body, authorization(headers))
            return self.werss.answer(method, target, body, authorization(headers))
