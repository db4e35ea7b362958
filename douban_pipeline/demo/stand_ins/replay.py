"""The bundled replay upstream: serves douban.php, three searches and OpenRouter on loopback, from the sample.

It answers over real HTTP, so that demo, tests and benchmark use the same clients as production, and simulates
configurable faults (`faults`). No answer refers to another machine: even its login redirect stays on this server.

Paths: ``/douban.php?id=&callback=``, ``/search?q=&format=json`` (SearXNG), ``/j/subject_suggest?q=`` (Douban's
suggestions), ``/v1/web-search`` (Bocha), ``/api/v1/chat/completions``, ``/api/v1/key``, ``/healthz``;
``/control/faults`` (GET the rules, PUT a list to replace them, POST to add one, DELETE all) and ``/control/requests``
(GET counts, times and keys, DELETE to clear them).
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.stand_ins import answers, bocha, introductions
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, Subject, html_answer, json_answer
from douban_pipeline.demo.stand_ins.faults import Fault, Faults, RequestLog
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn, authorization
from douban_pipeline.demo.stand_ins.inventions import INVENTIONS
from douban_pipeline.demo.stand_ins.title_index import TitleIndex

_CAPTCHA = "检测到有异常请求从您的IP发出，请输入验证码 <img src='/misc/captcha?size=s' alt='captcha'>"
_LOGIN = "<form action='/passport/login'>登录豆瓣 <input name='name'><input name='password'></form>"


class ReplayServer(LoopbackStandIn):
    """The replay upstream, as a context manager.

    `faults` and `requests` are the same as ``/control/faults`` and
    ``/control/requests``, without HTTP.

    Attributes:
        faults: The current fault rules.
        requests: Log of the requests.
        invent: Called for every introduction without a matching rule, with the request's number and the fact sheet;
            returns the rule for it, None for a faithful one. See `faults.inventing`.
        read: Returns the basis of a sentence of an introduction; `introductions.nearest` while it is None.
        silence: What a call that times out gets; None keeps it waiting.

    Args:
        subjects: Subjects that the upstreams know, in the form described by `answers`. A subject's ``fault`` (one of
            `faults.FAULTS`) is a permanent fault of douban.php for that id.
        host: Address to bind; loopback by default.
        port: Port to bind; 0 chooses a free one.
        now: Returns the current time (unix seconds), for `requests` and for answers that contain it.

    Raises:
        ValueError: A subject's ``fault`` does not exist.
    """

    silence: HttpAnswer | None = None

    def __init__(
        self,
        subjects: Iterable[Subject],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Prepare the answers; the address is not bound yet."""
        self.faults = Faults()
        self.requests = RequestLog()
        self.invent: Callable[[int, Mapping[str, Any]], Fault | None] | None = None
        self.read: introductions.Read | None = None
        self.host, self.port = host, port
        self._now = now
        self._subjects = {int(subject["id"]): subject for subject in subjects}
        self._ids = sorted(self._subjects)
        self._known_ids = frozenset(self._ids)
        everybody = (
            name
            for subject in self._subjects.values()
            for key in ("directors", "writers", "actors")
            for name in subject[key]
        )
        self._people = list(dict.fromkeys(everybody))
        self._titles = list(dict.fromkeys(str(subject["title"]) for subject in self._subjects.values()))
        self._index = TitleIndex(list(self._subjects.values()))
        self._lasting = {
            str(number): Fault("douban", subject["fault"], str(number))
            for number, subject in self._subjects.items()
            if subject.get("fault")
        }

    @property
    def douban_url(self) -> str:
        """Address of douban.php, called as ``URL?id=SUBJECT``."""
        return f"{self.base}/douban.php"

    @property
    def search_url(self) -> str:
        """Address of SearXNG's search."""
        return f"{self.base}/search"

    @property
    def suggest_url(self) -> str:
        """Address of Douban's suggest."""
        return f"{self.base}/j/subject_suggest"

    @property
    def bocha_url(self) -> str:
        """Address of Bocha's web search."""
        return f"{self.base}/v1/web-search"

    @property
    def llm_url(self) -> str:
        """Address of OpenRouter's chat completions."""
        return f"{self.base}/api/v1/chat/completions"

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to one request, or ``None`` to keep the client waiting."""
        key = authorization(headers)
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        match method, parts.path:
            case "GET", "/douban.php":
                return self._douban(query)
            case "GET" | "POST", "/search":
                return self._search(query if method == "GET" else _form(body))
            case "GET", "/j/subject_suggest":
                return self._suggest(query.get("q", "").strip())
            case "POST", "/v1/web-search":
                return self._web_search(body, key)
            case "POST", "/api/v1/chat/completions":
                return self._chat(body, key)
            case "GET", "/api/v1/key":
                return introductions.key_answer(self._model_calls()) if _bearer(key) else _unauthorized()
            case "GET", "/passport/login":
                return html_answer("登录豆瓣", _LOGIN)
            case "GET", "/healthz":
                return json_answer({"status": "ok", "subjects": len(self._subjects)})
            case _, "/control/faults" | "/control/requests":
                return self._control(method, parts.path, body)
        return json_answer({"error": f"no {method} {parts.path} here"}, 404)

    def _douban(self, query: dict[str, str]) -> HttpAnswer | None:
        key, callback = query.get("id", ""), query.get("callback")
        fault = self._noted("douban", key) or self._lasting.get(key)
        if not key.isdecimal():
            return answers.maccms_answer({"code": 101, "msg": "参数错误"}, callback)
        number = int(key)
        if fault is None:
            return answers.douban_answer(self._subjects.get(number), callback)
        if fault.fault == "wrong_id":
            return answers.douban_answer(self._neighbour(number), callback)
        own = {
            # PHP writes an empty record as a list.
            "empty": answers.maccms_answer({"code": 1, "msg": "ok", "data": []}, callback),
            "error_in_200": answers.maccms_answer({"code": 1309, "msg": "subject_ip_rate_limit"}, callback),
            "garbage": HttpAnswer(200, b'{"code":1,"msg":"ok","data":{"vod_name":"', "text/html; charset=utf-8"),
        }
        return self._misbehave(fault, own, f"/douban.php?id={key}")

    def _search(self, query: dict[str, str]) -> HttpAnswer | None:
        asked = query.get("q", "").strip()
        fault = self._noted("search", asked)
        if query.get("format") != "json":
            return html_answer("403 Forbidden", "this instance serves format=json only", 403)
        if not asked:
            return html_answer("400 Bad Request", "no query", 400)
        if fault is None:
            return answers.search_answer(asked, self._index.find(asked, 8), self._known_ids)
        if fault.fault == "wrong_id":
            return answers.search_answer(asked, self._strangers(asked, 3), self._known_ids)
        blocked = (("bing", "CAPTCHA"), ("google", "Suspended: CAPTCHA"), ("duckduckgo", "access denied"))
        own = {
            "captcha": json_answer(answers.searxng_page(asked, [], blocked)),
            "empty": json_answer(answers.searxng_page(asked, [])),
            "error_in_200": json_answer({"error": "search error"}),
            "garbage": HttpAnswer(200, b'{"query": "', "application/json"),
        }
        return self._misbehave(fault, own, f"/search?q={quote(asked)}")

    def _suggest(self, asked: str) -> HttpAnswer | None:
        fault = self._noted("suggest", asked)
        if fault is None:
            return answers.suggest_answer(asked, self._index.find(asked, 6) if asked else [])
        if fault.fault == "wrong_id":
            return answers.suggest_answer(asked, self._strangers(asked, 3))
        limit = {"msg": "search_access_rate_limit", "code": 1080, "request": "GET /j/subject_suggest"}
        own = {
            "empty": json_answer([]),
            "error_in_200": json_answer(limit),
            "garbage": HttpAnswer(200, b'[{"episode":"","img":"', "application/json"),
        }
        return self._misbehave(fault, own, f"/j/subject_suggest?q={quote(asked)}")

    def _web_search(self, body: bytes, key: str) -> HttpAnswer | None:
        try:
            request = bocha.read_request(body)
        except ValueError as error:
            return bocha.error_answer(400, str(error))
        asked = request["query"]
        fault = self._noted("bocha", asked)
        if not _bearer(key):
            return bocha.error_answer(401, "Invalid API KEY")
        if fault is None:
            return bocha.search_answer(request, self._index.find(asked, 8), self._known_ids)
        if fault.fault == "wrong_id":
            return bocha.search_answer(request, self._strangers(asked, 3), self._known_ids)
        return self._misbehave(fault, bocha.faults(asked, _retry_after(fault)), "/v1/web-search")

    def _chat(self, body: bytes, key: str) -> HttpAnswer | None:
        try:
            request = _json(body)
        except ValueError as error:
            return introductions.error_answer(400, str(error))
        if not isinstance(request, dict):
            return introductions.error_answer(400, "the body is no JSON object")
        message = introductions.last_user_message(request)
        if introductions.is_reading(message):
            return self._read_again(request, message, key)
        question = introductions.read_request(message)
        fault = self._noted("llm", message, corrected=question.corrected)
        if not _bearer(key):
            return _unauthorized()
        number, now = self._model_calls(), self._now()
        if fault is None and self.invent is not None:
            found = self.invent(number, question.facts)
            fault = found if found and found.applies("llm", message, corrected=question.corrected) else None
        if fault is None:
            return introductions.chat_answer(request, number, now)
        if fault.fault == "wrong_id":
            stranger = {"title": "别的片子", "year": 1901, "directors": ["无名氏"]}
            return introductions.chat_answer(request, number, now, facts=stranger)
        if fault.fault in INVENTIONS:
            return introductions.chat_answer(
                request, number, now, invention=fault.fault, people=self._people, titles=self._titles
            )
        own = introductions.failures(request, number, now, _retry_after(fault))
        return self._misbehave(fault, own, "/api/v1/chat/completions")

    def _read_again(self, request: dict[str, Any], message: str, key: str) -> HttpAnswer | None:
        fault = self._noted("reading", message)
        if not _bearer(key):
            return _unauthorized()
        number, now = self._model_calls(), self._now()
        if fault is None or fault.fault == "wrong_id":
            content = introductions.of_another_text() if fault else introductions.reading(message, self.read)
            return json_answer(introductions.completion(request, number, now, content))
        own = introductions.failures(request, number, now, _retry_after(fault))
        return self._misbehave(fault, own, "/api/v1/chat/completions")

    def _model_calls(self) -> int:
        return self.requests.count("llm") + self.requests.count("reading")

    def _noted(self, endpoint: str, key: str, *, corrected: bool = False) -> Fault | None:
        self.requests.record(endpoint, key[:200], self._now())
        return self.faults.take(endpoint, key, corrected=corrected)

    def _misbehave(self, fault: Fault, own: dict[str, HttpAnswer], target: str) -> HttpAnswer | None:
        """Return the upstream's ``own`` form of ``fault``, or the common one; `silence` for a timeout."""
        common = {
            "captcha": html_answer("禁止访问", _CAPTCHA),
            "login_redirect": html_answer(
                "302 Found", "", 302, {"Location": f"{self.base}/passport/login?redir={quote(target, safe='')}"}
            ),
            "forbidden": html_answer("403 Forbidden", "<h1>403 Forbidden</h1>", 403),
            "throttled": html_answer("429 Too Many Requests", "", 429, _retry_after(fault)),
            "empty_body": HttpAnswer(200, b"", "text/html; charset=utf-8"),
            "wrong_page": html_answer("Welcome to nginx!", "<h1>Welcome to nginx!</h1><p>Further configuration …</p>"),
            "server_error": html_answer("500 Internal Server Error", "", 500),
        }
        return (common | own).get(fault.fault, self.silence)

    def _neighbour(self, number: int) -> Subject | None:
        others = [other for other in self._ids if other != number]
        return self._subjects[others[bisect_right(others, number) % len(others)]] if others else None

    def _strangers(self, asked: str, limit: int) -> list[Subject]:
        found = {int(subject["id"]) for subject in self._index.find(asked, len(self._ids))}
        return [self._subjects[number] for number in self._ids if number not in found][:limit]

    def _control(self, method: str, path: str, body: bytes) -> HttpAnswer:
        try:
            match method, path:
                case "GET", "/control/requests":
                    return json_answer(self.requests.describe())
                case "DELETE", "/control/requests":
                    self.requests.clear()
                case "PUT", "/control/faults":
                    rules = _json(body)
                    if not isinstance(rules, list):
                        raise ValueError("PUT a list of rules")
                    self.faults.replace([Fault.parse(rule) for rule in rules])
                case "POST", "/control/faults":
                    self.faults.append(Fault.parse(_json(body)))
                case "DELETE", "/control/faults":
                    self.faults.clear()
                case "GET", _:
                    pass
                case _:
                    return json_answer({"error": f"no {method} {path} here"}, 405)
        except ValueError as error:
            return json_answer({"error": str(error)}, 400)
        return json_answer({"rules": self.faults.describe()})


def serve(host: str = "127.0.0.1", port: int = 8790, subjects: Iterable[Subject] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, then stop cleanly; print one line on standard output when ready.

    Args:
        host: Address to bind.
        port: Port to bind; 0 chooses a free one, which the line states.
        subjects: Subjects that the upstreams know; the bundled sample by default.

    Raises:
        OSError: The address cannot be bound.
    """
    if subjects is None:
        subjects = load_subjects()
    ended = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: ended.set()) for number in signals]
    try:
        with ReplayServer(subjects, host, port) as server:
            sys.stdout.write(f"replay upstream ready at {server.base}\n")
            sys.stdout.flush()
            ended.wait()
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body or b"null")
    except ValueError as error:
        raise ValueError(f"the body is no JSON: {error}") from error


def _form(body: bytes) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(body.decode(errors="replace")).items()}


def _bearer(key: str) -> bool:
    return key.startswith("Bearer ") and len(key) > len("Bearer ")


def _unauthorized() -> HttpAnswer:
    return introductions.error_answer(401, "No auth credentials found")


def _retry_after(fault: Fault) -> dict[str, str]:
    return {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
