"""Simulates TMDB's API on loopback: replays recorded answers, searches their entities by name.

Recordings are exchanges as read by `douban-pipeline tmdb load`: the bundled ones or a whole file. Other answers are
composed from the recordings: details with other parts appended, searches and discoveries over the known entities.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from douban_pipeline.core.console import console
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.demo.sample import DATA
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn, authorization
from douban_pipeline.tmdb.recorded_answers import read_lines

BUNDLED = DATA / "tmdb.jsonl"
_TYPES = ("movie", "tv", "person")
_IGNORED = frozenset({"api_key", "language", "include_adult", "append_to_response", "include_image_language", "region"})
PARTS = [
    "aggregate_credits",
    "alternative_titles",
    "changes",
    "combined_credits",
    "credits",
    "episode_groups",
    "external_ids",
    "images",
    "keywords",
    "movie_credits",
    "tagged_images",
    "translations",
    "tv_credits",
    "videos",
]
_EMPTY_PARTS: Mapping[str, Any] = {
    "alternative_titles": {"titles": [], "results": []},
    "external_ids": {},
    "translations": {"translations": []},
    "keywords": {"keywords": []},
    "images": {"backdrops": [], "posters": []},
}
_FILTERS = {"with_genres", "with_origin_country", "with_original_language"}
_YEARS = {"primary_release_year", "first_air_date_year", "year"}
_PAGE = 20


@dataclass(frozen=True, slots=True)
class _Recording:
    path: str
    query: Mapping[str, str]
    status: int
    body: Any


@dataclass
class TmdbServer(LoopbackStandIn):
    """Serves recordings as a context manager.

    Attributes:
        recordings: Exchanges: path, query, status, body; of several for one request the last is used.
        key: Key that requests must send, as a parameter or bearer token; empty requires none.
        port: Port to listen on; 0 chooses a free one.
        seconds: Duration of each answer.
        asked: Path and query of every request, in order.
    """

    recordings: Iterable[Mapping[str, Any]] = ()
    key: str = ""
    port: int = 0
    seconds: float = 0.0
    asked: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Index the recordings."""
        self._by_path: dict[str, list[_Recording]] = {}
        self._known: dict[str, dict[int, dict[str, Any]]] = {kind: {} for kind in _TYPES}
        self._details: dict[str, set[int]] = {kind: set() for kind in _TYPES}
        for item in self.recordings or bundled():
            self.learn(item)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop immediately, even if clients are waiting for an answer."""
        self._stopped.set()
        super().__exit__(kind, error, trace)

    @property
    def api_url(self) -> str:
        """The address of the API."""
        return f"{self.base}/3"

    @property
    def exports_url(self) -> str:
        """The address of the daily lists of ids."""
        return f"{self.base}/p/exports"

    def count(self, part: str = "") -> int:
        """Return the number of requests that contain ``part``."""
        with self._lock:
            return sum(part in target for target in self.asked)

    # --- answering ----------------------------------------------------------------------------------------------------

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to a request; None keeps the client waiting."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        with self._lock:
            self.asked.append(target)
        if self.seconds:
            self._stopped.wait(self.seconds)
        if parts.path.startswith("/p/exports/"):
            return self._export(parts.path.rpartition("/")[2])
        if self.key and self.key not in (query.get("api_key"), authorization(headers).removeprefix("Bearer ")):
            return tmdb_error(7, "Invalid API key: You must be granted a valid key.", 401)
        return self.answer(parts.path.removeprefix("/3"), query)

    def answer(self, path: str, query: Mapping[str, str]) -> HttpAnswer | None:
        """Return the answer of the API to a request with a good key; None keeps the client waiting."""
        words = path.strip("/").split("/")
        appended = [each for each in query.get("append_to_response", "").split(",") if each]
        if len(appended) > 20:
            return tmdb_error(27, "Too many append to response objects: The maximum number of remote calls is 20.", 400)
        page = int(query.get("page") or 1)
        if not 1 <= page <= 500:
            return tmdb_error(22, "Invalid page: Pages start at 1 and max at 500.", 400)
        found = self._recorded(path, query, exactly=words[0] in ("search", "discover", "find"))
        if found is not None:
            if words[0] in _TYPES and len(words) == 2 and found.status == 200:
                return json_answer(self._with_parts(found.body, path, appended))
            return json_answer(found.body, found.status)
        if words[0] in ("search", "discover") and len(words) == 2:
            items = self._searched(words[1], query) if words[0] == "search" else self._discovered(words[1], query)
            shown = items[_PAGE * (page - 1) : _PAGE * page]
            pages = max(1, -(-len(items) // _PAGE))
            return json_answer({"page": page, "results": shown, "total_pages": pages, "total_results": len(items)})
        if words[0] == "find" and len(words) == 2:
            return json_answer({f"{kind}_results": [] for kind in (*_TYPES, "tv_episode", "tv_season")})
        if words[1:] == ["changes"]:
            return json_answer({"page": 1, "results": [], "total_pages": 1, "total_results": 0})
        return tmdb_error(34, "The resource you requested could not be found.", 404)

    def _recorded(self, path: str, query: Mapping[str, str], *, exactly: bool) -> _Recording | None:
        """Return the recording of a request, in the requested language if there is one."""

        def said(given: Mapping[str, str]) -> dict[str, str]:
            return {
                name: value.casefold()
                for name, value in given.items()
                if name not in _IGNORED and (name, value) != ("page", "1")
            }

        wanted = said(query)
        fitting = [each for each in self._by_path.get(path, ()) if not exactly or said(each.query) == wanted]
        page = query.get("page", "1")
        fitting = [each for each in fitting if each.query.get("page", "1") == page]
        language = query.get("language")
        return max(
            enumerate(fitting),
            key=lambda pair: (pair[1].query.get("language") == language, len(pair[1].body), pair[0]),
            default=(0, None),
        )[1]

    def _with_parts(self, body: Mapping[str, Any], path: str, appended: Sequence[str]) -> dict[str, Any]:
        answer = {name: value for name, value in body.items() if name not in PARTS or name in appended}
        for part in appended:
            if part not in answer:
                answer[part] = self._part(body, path, part)
        return answer

    def _part(self, body: Mapping[str, Any], path: str, part: str) -> Any:
        for each in self._by_path.get(path, ()):
            if each.status == 200 and part in each.body:
                return each.body[part]
        for each in self._by_path.get(f"{path}/{part}", ()):
            if each.status == 200:
                return {name: value for name, value in each.body.items() if name != "id"}
        return _EMPTY_PARTS.get(part, {"cast": [], "crew": []} if part.endswith("credits") else {})

    # --- searching the known entities ---------------------------------------------------------------------------------

    def learn(self, item: Mapping[str, Any]) -> None:
        """Add an exchange; it replaces an earlier one of the same request, so recordings can change while it serves."""
        path = "/" + urlsplit(str(item["path"])).path.strip("/").removeprefix("3/")
        body, status = item["body"], int(item.get("status", 200))
        self._by_path.setdefault(path, []).append(_Recording(path, dict(item.get("query") or {}), status, body))
        words = path.strip("/").split("/")
        if status != 200 or not isinstance(body, Mapping):
            return
        if words[0] in _TYPES and len(words) == 2:
            self._details[words[0]].add(body.get("id", 0))
            self._know(words[0], body)
        elif words[0] == "search" and len(words) == 2:
            for each in body.get("results", ()):
                self._know(each.get("media_type", words[1]), each)

    def _know(self, kind: str, item: Mapping[str, Any]) -> None:
        if kind in _TYPES and isinstance(item.get("id"), int):
            known = {name: value for name, value in item.items() if name not in PARTS}
            known.setdefault("genre_ids", [genre["id"] for genre in item.get("genres", ())])
            self._known[kind].setdefault(item["id"], {}).update(known)

    def _searched(self, kind: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        asked = query.get("query", "").strip().casefold()
        kinds = _TYPES if kind == "multi" else (kind,)
        found = [
            (_likeness(item, asked), {**item, "media_type": each})
            for each in kinds
            for item in self._known.get(each, {}).values()
            if asked and _likeness(item, asked)
        ]
        year = next((query[name] for name in _YEARS if name in query), "")
        kept = [(like, item) for like, item in found if not year or _day(item).startswith(year)]
        return [item for _, item in sorted(kept, key=lambda pair: (-pair[0], -float(pair[1].get("popularity") or 0)))]

    def _discovered(self, kind: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        def fits(item: Mapping[str, Any]) -> bool:
            values = {
                "with_genres": {str(each) for each in item.get("genre_ids", ())},
                "with_origin_country": set(item.get("origin_country", ())),
                "with_original_language": {item.get("original_language")},
            }
            years = [query[name] for name in _YEARS if name in query]
            wanted = {name: set(query[name].replace("|", ",").split(",")) for name in _FILTERS & query.keys()}
            return all(wanted[name] & values[name] for name in wanted) and all(map(_day(item).startswith, years))

        found = [
            item for tmdb_id, item in self._known.get(kind, {}).items() if tmdb_id in self._details[kind] and fits(item)
        ]
        return sorted(found, key=lambda item: -float(item.get("popularity") or 0))

    def _export(self, name: str) -> HttpAnswer:
        kinds = {"movie_ids": "movie", "tv_series_ids": "tv", "person_ids": "person"}
        kind = next((kind for begins, kind in kinds.items() if name.startswith(begins)), "")
        if not kind:
            return HttpAnswer(403, b"<Error><Code>AccessDenied</Code></Error>", "application/xml")
        title = {"movie": "original_title", "tv": "original_name", "person": "name"}[kind]
        lines = "".join(
            json.dumps({"id": tmdb_id, title: item.get(title), "popularity": item.get("popularity")}) + "\n"
            for tmdb_id, item in sorted(self._known[kind].items())
        )
        return HttpAnswer(200, gzip.compress(lines.encode()), "application/gzip")


def bundled() -> Iterator[dict[str, Any]]:
    """Yield the bundled recordings."""
    with BUNDLED.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def serve(recorded: Path | None, port: int) -> None:
    """Serve until Ctrl-C, and print the settings for it.

    Args:
        recorded: File of recorded answers; the bundled ones by default.
        port: Port on loopback; 0 chooses a free one.

    Raises:
        ProblemsError: The port cannot be bound.
    """
    known = [json.loads(line) for _, line in read_lines(recorded) if line.strip()] if recorded else ()
    try:
        with TmdbServer(known, port=port) as server:
            console.print(f"DOUBAN_PIPELINE_TMDB_API_URL={server.api_url}", highlight=False, soft_wrap=True)
            console.print(terminal_text("DOUBAN_PIPELINE_TMDB_API_KEY may be anything; Ctrl-C stops"))
            threading.Event().wait()
    except KeyboardInterrupt:
        console.print(terminal_text("stopped"))
    except OSError as error:
        raise ProblemsError(
            [
                terminal_text("cannot listen on port {port} ({error}): choose another with --port").format(
                    port=port, error=error.strerror
                )
            ]
        ) from None


def _likeness(item: Mapping[str, Any], asked: str) -> int:
    """Return 2 for an entity with that name, 1 for one whose name contains it, 0 otherwise."""
    names = [str(item.get(name) or "").casefold() for name in ("title", "name", "original_title", "original_name")]
    return 2 if asked in names else int(any(asked in name for name in names))


def _day(item: Mapping[str, Any]) -> str:
    return str(item.get("release_date") or item.get("first_air_date") or "")


def tmdb_error(code: int, message: str, status: int, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return an error in TMDB's form."""
    return json_answer({"success": False, "status_code": code, "status_message": message}, status, headers)
