"""The bundled replay upstream: serves douban.php, SearXNG and OpenRouter on loopback, from the sample.

It answers over real HTTP, so that the demo uses the same clients as production. No answer refers to another machine.

Paths: ``/douban.php?id=&callback=``, ``/search?q=&format=json`` (SearXNG), ``/api/v1/chat/completions``,
``/api/v1/key`` and ``/healthz``.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, urlsplit

from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.demo.stand_ins import answers, introductions
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, Subject, html_answer, json_answer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn, authorization
from douban_pipeline.demo.stand_ins.title_index import TitleIndex

_FAULTS = ("server_error", "wrong_id", "empty")


class ReplayServer(LoopbackStandIn):
    """The replay upstream, as a context manager.

    Args:
        subjects: Subjects that the upstreams know, in the form described by `answers`. A subject's ``fault`` is what
            douban.php answers for its id: ``server_error`` is 500, ``wrong_id`` the answer for another subject,
            ``empty`` a well-formed answer without data.
        host: Address to bind; loopback by default.
        port: Port to bind; 0 chooses a free one.
        now: Returns the current time (unix seconds), for answers that contain it.

    Raises:
        ValueError: A subject's ``fault`` does not exist.
    """

    def __init__(
        self,
        subjects: Iterable[Subject],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Prepare the answers; the address is not bound yet."""
        self.host, self.port = host, port
        self.now = now
        self.subjects = {int(subject["id"]): subject for subject in subjects}
        self.ids = sorted(self.subjects)
        self.known_ids = frozenset(self.ids)
        self.index = TitleIndex(list(self.subjects.values()))
        self._calls = itertools.count(1)
        for fault in {subject["fault"] for subject in self.subjects.values() if subject.get("fault")}:
            self.check_fault(fault)

    def check_fault(self, fault: str) -> None:
        """Raise `ValueError` if douban.php cannot have ``fault``."""
        if fault not in _FAULTS:
            raise ValueError(f"fault {fault!r}: use one of {', '.join(_FAULTS)}")

    @property
    def douban_url(self) -> str:
        """Address of douban.php, called as ``URL?id=SUBJECT``."""
        return f"{self.base}/douban.php"

    @property
    def search_url(self) -> str:
        """Address of SearXNG's search."""
        return f"{self.base}/search"

    @property
    def llm_url(self) -> str:
        """Address of OpenRouter's chat completions."""
        return f"{self.base}/api/v1/chat/completions"

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to one request, or ``None`` to keep the client waiting."""
        key = authorization(headers)
        parts = urlsplit(target)
        query = form_of(parts.query)
        match method, parts.path:
            case "GET", "/douban.php":
                return self.douban(query)
            case "GET" | "POST", "/search":
                return self.search(query if method == "GET" else form_of(body.decode(errors="replace")))
            case "POST", "/api/v1/chat/completions":
                return self._chat(body, key)
            case "GET", "/api/v1/key":
                return introductions.key_answer() if is_bearer(key) else _unauthorized()
            case "GET", "/healthz":
                return json_answer({"status": "ok", "subjects": len(self.subjects)})
        return json_answer({"error": f"no {method} {parts.path} here"}, 404)

    def douban(self, query: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer of douban.php."""
        key, callback = query.get("id", ""), query.get("callback")
        if not key.isdecimal():
            return answers.maccms_answer({"code": 101, "msg": "参数错误"}, callback)
        subject = self.subjects.get(int(key))
        match (subject or {}).get("fault"):
            case "server_error":
                return html_answer("500 Internal Server Error", "", 500)
            case "wrong_id":
                return answers.douban_answer(self.neighbour(int(key)), callback)
            case "empty":  # PHP writes an empty record as a list
                return answers.maccms_answer({"code": 1, "msg": "ok", "data": []}, callback)
        return answers.douban_answer(subject, callback)

    def neighbour(self, number: int) -> Subject | None:
        """Return the subject after ``number``, None if it is the only one."""
        others = [other for other in self.ids if other != number]
        return self.subjects[others[bisect_right(others, number) % len(others)]] if others else None

    def search(self, query: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer of SearXNG."""
        asked = query.get("q", "").strip()
        if query.get("format") != "json":
            return html_answer("403 Forbidden", "this instance serves format=json only", 403)
        if not asked:
            return html_answer("400 Bad Request", "no query", 400)
        return answers.search_answer(asked, self.index.find(asked, 8), self.known_ids)

    def _chat(self, body: bytes, key: str) -> HttpAnswer | None:
        try:
            request = json.loads(body or b"null")
        except ValueError as error:
            return introductions.error_answer(400, f"the body is no JSON: {error}")
        if not isinstance(request, dict):
            return introductions.error_answer(400, "the body is no JSON object")
        if not is_bearer(key):
            return _unauthorized()
        message, number = introductions.last_user_message(request), next(self._calls)
        if introductions.is_reading(message):
            return self.read_again(request, message, number)
        return self.write(request, message, number)

    def write(self, request: dict[str, Any], message: str, number: int) -> HttpAnswer | None:
        """Return the model's introduction.

        Args:
            request: The request's body.
            message: Its last user message.
            number: Number of the call, from 1.
        """
        return introductions.chat_answer(request, number, self.now())

    def read_again(self, request: dict[str, Any], message: str, number: int) -> HttpAnswer | None:
        """Return the model's basis of each part of an introduction; for the arguments see `write`."""
        content = introductions.reading(message)
        return json_answer(introductions.completion(request, number, self.now(), content))


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


def form_of(text: str) -> dict[str, str]:
    """Return the fields of a query or form, the last of each name."""
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}


def is_bearer(key: str) -> bool:
    """Return whether a header Authorization has a bearer token."""
    return key.startswith("Bearer ") and len(key) > len("Bearer ")


def _unauthorized() -> HttpAnswer:
    return introductions.error_answer(401, "No auth credentials found")
