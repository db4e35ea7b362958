"""The replay upstream with configurable faults, Douban's suggestions and Bocha; see `demo.stand_ins.replay`.

Further paths: ``/j/subject_suggest?q=`` (Douban's suggestions), ``/v1/web-search`` (Bocha); ``/control/faults`` (GET
the rules, PUT a list to replace them, POST to add one, DELETE all) and ``/control/requests`` (GET counts, times and
keys, DELETE to clear them).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.message import Message
from typing import Any
from urllib.parse import quote, urlsplit

from douban_pipeline.demo.stand_ins import answers, introductions
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, Subject, html_answer, json_answer
from douban_pipeline.demo.stand_ins.http_server import authorization
from douban_pipeline.demo.stand_ins.replay import ReplayServer as DemoReplayServer
from douban_pipeline.demo.stand_ins.replay import form_of, is_bearer
from douban_pipeline_tests.stand_ins import bocha, model_failures
from douban_pipeline_tests.stand_ins.faults import Fault, Faults, RequestLog
from douban_pipeline_tests.stand_ins.inventions import INVENTIONS, invented_answer

_CAPTCHA = "检测到有异常请求从您的IP发出，请输入验证码 <img src='/misc/captcha?size=s' alt='captcha'>"
_LOGIN = "<form action='/passport/login'>登录豆瓣 <input name='name'><input name='password'></form>"


class ReplayServer(DemoReplayServer):
    """The replay upstream with faults.

    `faults` and `requests` are the same as ``/control/faults`` and ``/control/requests``, without HTTP.

    Attributes:
        faults: The current fault rules.
        requests: Log of the requests.
        invent: Called for every introduction without a matching rule, with the request's number and the fact sheet;
            returns the rule for it, None for a faithful one. See `faults.inventing`.
        read: Returns the basis of a sentence of an introduction; `introductions.truthful` while it is None.
        silence: What a call that times out gets; None keeps it waiting.

    Args:
        subjects: Those of the demo's; a subject's ``fault`` may be any of `faults.FAULTS`.
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
        super().__init__(subjects, host, port, now=now)
        known = self.subjects.values()
        everybody = (name for one in known for key in ("directors", "writers", "actors") for name in one[key])
        self._people = list(dict.fromkeys(everybody))
        self._titles = list(dict.fromkeys(str(one["title"]) for one in known))

    def check_fault(self, fault: str) -> None:
        """Raise `ValueError` if douban.php cannot have ``fault``."""
        Fault("douban", fault)

    @property
    def suggest_url(self) -> str:
        """Address of Douban's suggest."""
        return f"{self.base}/j/subject_suggest"

    @property
    def bocha_url(self) -> str:
        """Address of Bocha's web search."""
        return f"{self.base}/v1/web-search"

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to one request, or ``None`` to keep the client waiting."""
        parts = urlsplit(target)
        match method, parts.path:
            case "GET", "/j/subject_suggest":
                return self._suggest(form_of(parts.query).get("q", "").strip())
            case "POST", "/v1/web-search":
                return self._web_search(body, authorization(headers))
            case "GET", "/passport/login":
                return html_answer("登录豆瓣", _LOGIN)
            case _, "/control/faults" | "/control/requests":
                return self._control(method, parts.path, body)
        return super().respond(method, target, body, headers)

    def douban(self, query: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer of douban.php."""
        key, callback = query.get("id", ""), query.get("callback")
        fault = self._noted("douban", key)
        lasting = self.subjects.get(int(key), {}).get("fault") if key.isdecimal() else None
        if not key.isdecimal() or (fault is None and lasting is None):
            return super().douban(query)
        fault = fault or Fault("douban", str(lasting), key)
        if fault.fault == "wrong_id":
            return answers.douban_answer(self.neighbour(int(key)), callback)
        own = {
            # PHP writes an empty record as a list.
            "empty": answers.maccms_answer({"code": 1, "msg": "ok", "data": []}, callback),
            "error_in_200": answers.maccms_answer({"code": 1309, "msg": "subject_ip_rate_limit"}, callback),
            "garbage": HttpAnswer(200, b'{"code":1,"msg":"ok","data":{"vod_name":"', "text/html; charset=utf-8"),
        }
        return self._misbehave(fault, own, f"/douban.php?id={key}")

    def search(self, query: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer of SearXNG."""
        asked = query.get("q", "").strip()
        fault = self._noted("search", asked)
        if fault is None or query.get("format") != "json" or not asked:
            return super().search(query)
        if fault.fault == "wrong_id":
            return answers.search_answer(asked, self._strangers(asked, 3), self.known_ids)
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
            return suggest_answer(asked, self.index.find(asked, 6) if asked else [])
        if fault.fault == "wrong_id":
            return suggest_answer(asked, self._strangers(asked, 3))
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
        if not is_bearer(key):
            return bocha.error_answer(401, "Invalid API KEY")
        if fault is None:
            return bocha.search_answer(request, self.index.find(asked, 8), self.known_ids)
        if fault.fault == "wrong_id":
            return bocha.search_answer(request, self._strangers(asked, 3), self.known_ids)
        return self._misbehave(fault, bocha.faults(asked, _retry_after(fault)), "/v1/web-search")

    def write(self, request: dict[str, Any], message: str, number: int) -> HttpAnswer | None:
        """Return the model's introduction; see the demo's."""
        question = introductions.read_request(message)
        fault = self._noted("llm", message, corrected=question.corrected)
        if fault is None and self.invent is not None:
            found = self.invent(number, question.facts)
            fault = found if found and found.applies("llm", message, corrected=question.corrected) else None
        if fault is None:
            return super().write(request, message, number)
        if fault.fault == "wrong_id":
            stranger = {"title": "别的片子", "year": 1901, "directors": ["无名氏"]}
            return introductions.chat_answer(request, number, self.now(), facts=stranger)
        if fault.fault in INVENTIONS:
            write = invented_answer(fault.fault, self._people, self._titles)
            return introductions.chat_answer(request, number, self.now(), write=write)
        own = model_failures.failures(request, number, self.now(), _retry_after(fault))
        return self._misbehave(fault, own, "/api/v1/chat/completions")

    def read_again(self, request: dict[str, Any], message: str, number: int) -> HttpAnswer | None:
        """Return the model's basis of each part of an introduction; see the demo's."""
        fault = self._noted("reading", message)
        if fault is None or fault.fault == "wrong_id":
            content = model_failures.of_another_text() if fault else introductions.reading(message, self.read)
            return json_answer(introductions.completion(request, number, self.now(), content))
        own = model_failures.failures(request, number, self.now(), _retry_after(fault))
        return self._misbehave(fault, own, "/api/v1/chat/completions")

    def _noted(self, endpoint: str, key: str, *, corrected: bool = False) -> Fault | None:
        self.requests.record(endpoint, key[:200], self.now())
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

    def _strangers(self, asked: str, limit: int) -> list[Subject]:
        found = {int(subject["id"]) for subject in self.index.find(asked, len(self.ids))}
        return [self.subjects[number] for number in self.ids if number not in found][:limit]

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


def _json(body: bytes) -> Any:
    try:
        return json.loads(body or b"null")
    except ValueError as error:
        raise ValueError(f"the body is no JSON: {error}") from error


def suggest_answer(query: str, hits: Sequence[Subject]) -> HttpAnswer:
    """Return Douban's suggestions for ``query``."""
    return json_answer(
        [
            {
                "episode": str(subject.get("episodes") or ""),
                "img": answers.picture_of(subject),
                "title": subject["title"],
                "url": f"https://movie.douban.com/subject/{subject['id']}/?suggest={quote(query)}",
                "type": "movie",
                "year": str(subject.get("year") or ""),
                "sub_title": subject.get("original_title") or subject["title"],
                "id": str(subject["id"]),
            }
            for subject in hits
        ]
    )


def _retry_after(fault: Fault) -> dict[str, str]:
    return {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
