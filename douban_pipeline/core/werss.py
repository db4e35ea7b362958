"""Client of WeRSS (rachelos/we-mp-rss), which reads public accounts; works with release 1.4.1 and later.

Its answers need care. A 2xx status does not mean success: an error may come as 201, 202 or 406 with ``detail``, and a
wrong path as 200 with ``null``. After five wrong passwords it locks the account until it is restarted, so a refused
login is not retried. ``has_content`` is never sent: its meaning differs between four releases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import NotFound, SourceError, SourceUnavailable, SourceWall
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.http_answers import HttpExchange
from douban_pipeline.core.payload import AnswerRules, as_int
from douban_pipeline.core.werss_login import MemorySessions, SessionStore, WeRssLogin, WeRssSession, expiry_of

SOURCE = "werss"
RULES = AnswerRules(wall_statuses=frozenset(), wall_words=("captcha",))
"""Rules for the fetcher of this source: a 401 means an expired token, not a wall."""
PARSER_VERSION = "werss-1"
API_PATH = "/api/v1/wx"
"""Where every release of WeRSS serves its API, below its address."""
PAGE = 50
MOST_PAGES = 10
_ACCOUNTS_PAGE = 100
_OVERLAP = 1
_WRONG_PASSWORD, _NO_ARTICLE, _NO_ACCOUNT = 40101, 40401, 50001
_MILLISECONDS = 100_000_000_000
_REFUSED = "WeRSS 拒绝登录：用户名或密码错误（或已被锁定）。请核对账号；WeRSS 错五次即锁定，须重启 WeRSS 才能解除"


@dataclass(frozen=True, slots=True)
class WeRssArticle:
    """One article of a public account, as listed; ``published_at`` is None if unknown."""

    article_id: str
    account_id: str
    account_name: str
    title: str
    url: str
    description: str
    published_at: int | None


@dataclass(frozen=True, slots=True)
class WeRssAccount:
    """One public account; ``synced_at`` no longer changes once WeRSS's own login at WeChat has expired."""

    account_id: str
    name: str
    synced_at: int | None


class WeRss:
    """Reads accounts and articles. Safe to share between threads; logs in once, when first needed.

    Args:
        fetcher: A fetcher whose source is `SOURCE`, with `RULES`.
        url: Address of WeRSS.
        login: Credentials.
        clock: Source of the current time, for the token's age.
        sessions: Where the token is stored; by default in this process only.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        url: str,
        login: WeRssLogin,
        clock: Clock,
        sessions: SessionStore | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._base = f"{url.rstrip('/')}{API_PATH}"
        self._login = login
        self._clock = clock
        self._sessions = sessions or MemorySessions()
        self._own_token = ""

    def articles(self, account_id: str, since: int, most: int = PAGE * MOST_PAGES) -> list[WeRssArticle]:
        """Return an account's articles, newest first; stops after a page that is entirely older than ``since``.

        Raises:
            SourceError: WeRSS did not answer, or answered with an error; see `core.errors`.
        """
        found: dict[str, WeRssArticle] = {}
        offset = 0
        while len(found) < most and offset < PAGE * MOST_PAGES:
            query = {"mp_id": account_id, "limit": PAGE, "offset": offset}
            page = self._get("/articles", query, f"articles {account_id} {offset}")
            rows = page.get("list")
            if not isinstance(rows, list):
                raise SourceUnavailable(SOURCE, "an answer without a list of articles")
            articles = [article for row in rows if (article := _article(row)) is not None]
            found.update({article.article_id: article for article in articles})
            times = [article.published_at for article in articles if article.published_at is not None]
            if len(rows) < PAGE or (times and max(times) < since):
                break
            # A new article shifts all others by one while pages are read.
            offset += PAGE - _OVERLAP
        return list(found.values())[:most]

    def article_html(self, article_id: str) -> str | None:
        """Return an article's body as HTML, as returned by this release of WeRSS; None if it has none yet.

        Raises:
            NotFound: WeRSS does not know the article, or its publisher deleted it.
            SourceError: WeRSS did not answer, or answered with another error.
        """
        found = self._get(f"/articles/{quote(article_id, safe='')}", {}, f"article {article_id}")
        content = found.get("content")
        return content if isinstance(content, str) else None

    def accounts(self) -> list[WeRssAccount]:
        """Return every account that WeRSS follows, without `synced_at`, which only `account` returns.

        Raises:
            SourceError: WeRSS did not answer, or answered with an error.
        """
        found: dict[str, WeRssAccount] = {}
        for page_number in range(MOST_PAGES):
            offset = page_number * (_ACCOUNTS_PAGE - _OVERLAP)
            page = self._get("/mps", {"limit": _ACCOUNTS_PAGE, "offset": offset}, f"accounts {offset}")
            rows = page.get("list")
            if not isinstance(rows, list):
                raise SourceUnavailable(SOURCE, "an answer without a list of accounts")
            for row in rows:
                if isinstance(row, dict) and row.get("id"):
                    account_id = str(row["id"])
                    found.setdefault(account_id, WeRssAccount(account_id, str(row.get("mp_name") or ""), None))
            if len(rows) < _ACCOUNTS_PAGE:
                break
        return list(found.values())

    def account(self, account_id: str) -> WeRssAccount:
        """Return one account.

        Raises:
            NotFound: WeRSS does not follow it.
            SourceError: WeRSS did not answer, or answered with another error.
        """
        row = self._get(f"/mps/{quote(account_id, safe='')}", {}, f"account {account_id}")
        return WeRssAccount(account_id, str(row.get("mp_name") or ""), seconds_of(row.get("sync_time")))

    def _get(self, path: str, query: Mapping[str, Any], key: str) -> dict[str, Any]:
        url = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        token = self._current_token()
        try:
            return self._ask(url, token, key)
        except _Unauthorised:
            if self._login.access_key:
                raise SourceWall(SOURCE, "WeRSS refused the access key (HTTP 401)") from None
            return self._ask(url, self._current_token(refused=token), key)

    def _ask(self, url: str, token: str, key: str) -> dict[str, Any]:
        headers = {"Authorization": token}
        return self._fetcher.exchange(url, _read, key=key, parser_version=PARSER_VERSION, headers=headers).value

    def _current_token(self, refused: str = "") -> str:
        """Return the Authorization header, logging in if there is no valid token."""
        if self._login.access_key:
            return f"AK-SK {self._login.access_key}"
        try:
            return self._session_token(refused)
        except OSError as error:
            raise SourceUnavailable(SOURCE, f"the login cannot be kept: {error.strerror or error}") from error

    def _session_token(self, refused: str) -> str:
        with self._sessions.held():
            now = self._clock.now().timestamp()
            session = self._sessions.read()
            if refused:
                session = replace(session, ends=0.0) if refused == f"Bearer {session.token}" else session
                if refused == f"Bearer {self._own_token}":
                    raise SourceUnavailable(SOURCE, "WeRSS refuses a token that it has just issued (HTTP 401)")
            if not session.is_good(now) or session.is_old(now):
                # Fails where the disk is full: a refused login that cannot be stored would be repeated.
                self._sessions.write(session)
                session = self._renewed(session, now) or self._logged_in(session, now)
                self._sessions.write(session)
            return f"Bearer {session.token}"

    def _renewed(self, session: WeRssSession, now: float) -> WeRssSession | None:
        """Return the session with a renewed token, for one that is still valid; None if that failed."""
        if not session.is_good(now):
            return None
        headers = {"Authorization": f"Bearer {session.token}"}
        try:
            data = self._fetcher.log_in(f"{self._base}/auth/refresh", {}, _read, key="refresh", headers=headers)
            return _session(data, now)
        except SourceError:
            return None

    def _logged_in(self, session: WeRssSession, now: float) -> WeRssSession:
        due = session.next_login(self._login)
        if due is None or due > now:
            again = "不再自动重试" if due is None else f"{(due - now) / 3600:.1f} 小时后再试一次"
            raise SourceWall(SOURCE, f"{_REFUSED}。已被拒绝 {session.refused} 次，{again}")
        form = {"username": self._login.username, "password": self._login.password}
        try:
            data = self._fetcher.log_in(f"{self._base}/auth/login", form, _read, key="login")
        except SourceWall:
            known = session.refused if session.refused_login == self._login.fingerprint else 0
            self._sessions.write(WeRssSession(refused=known + 1, refused_at=now, refused_login=self._login.fingerprint))
            raise
        found = _session(data, now)
        self._own_token = found.token
        return found


def _session(data: Mapping[str, Any], now: float) -> WeRssSession:
    token = data.get("access_token")
    if not isinstance(token, str) or not token:
        raise SourceUnavailable(SOURCE, "a login without a token")
    life = as_int(data.get("expires_in"))
    ends = now + life if life and life > 0 else expiry_of(token) or now + 3600
    return WeRssSession(token, now, max(ends, now + 60))


class _Unauthorised(SourceError):  # noqa: N818 (as the other kinds of `SourceError`)
    """The token is no longer accepted; WeRSS itself is healthy."""

    healthy = True


def _read(answer: HttpExchange) -> dict[str, Any]:
    """Return the content of an answer's envelope, whatever its status.

    Raises:
        SourceError: The matching subclass; the message says what an operator has to do.
    """
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        if answer.status == 401:
            raise _Unauthorised(SOURCE, "HTTP 401") from None
        raise SourceUnavailable(SOURCE, f"HTTP {answer.status} with an answer that is not JSON") from None
    if not isinstance(found, dict):
        raise SourceUnavailable(
            SOURCE, "null instead of an answer: the path of the API is wrong (the setting WERSS_URL)"
        )
    detail = found.get("detail")
    code = as_int(detail.get("code")) if isinstance(detail, dict) else None
    if code == _WRONG_PASSWORD:
        raise SourceWall(SOURCE, _REFUSED)
    if answer.status == 401:
        raise _Unauthorised(SOURCE, "HTTP 401")
    # 50001 with 201 means an unknown account; with 406 it is any error of its own, also about an article that exists.
    if code == _NO_ARTICLE or (code == _NO_ACCOUNT and answer.status < 400):
        raise NotFound(SOURCE, f"WeRSS does not know it (code {code})")
    if isinstance(detail, str) and answer.status in (404, 405):
        raise SourceUnavailable(
            SOURCE,
            f"HTTP {answer.status} ({detail[:60]}): the path of the API is wrong (the setting WERSS_URL)",
            retryable=False,
        )
    if detail is not None:
        raise SourceUnavailable(SOURCE, f"HTTP {answer.status} with an error (code {code})", retryable=False)
    if "data" not in found:
        return found if found.get("access_token") else _no_envelope(answer.status)
    if as_int(found.get("code")) != 0:
        raise SourceUnavailable(SOURCE, f"HTTP {answer.status} with code {str(found.get('code'))[:20]}")
    data = found["data"]
    return data if isinstance(data, dict) else _no_envelope(answer.status)


def _no_envelope(status: int) -> dict[str, Any]:
    raise SourceUnavailable(SOURCE, f"HTTP {status} with an answer of another form")


def _article(row: object) -> WeRssArticle | None:
    if not isinstance(row, dict) or not row.get("id"):
        return None
    return WeRssArticle(
        article_id=str(row["id"]),
        account_id=str(row.get("mp_id") or ""),
        account_name=str(row.get("mp_name") or ""),
        title=str(row.get("title") or ""),
        url=str(row.get("url") or ""),
        description=str(row.get("description") or ""),
        published_at=seconds_of(row.get("publish_time")),
    )


def seconds_of(value: object) -> int | None:
    """Return a time in seconds; WeRSS gives seconds or milliseconds; None for none, and for one that cannot be."""
    moment = as_int(value)
    if moment is None or not 0 < moment <= 1000 * _MILLISECONDS:
        return None
    return moment // 1000 if moment > _MILLISECONDS else moment
