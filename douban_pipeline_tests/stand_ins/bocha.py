"""Answers of the simulated Bocha, following its public "Web Search API" (``POST /v1/web-search``); no I/O here."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, Subject, json_answer, web_results

MOST = 50
"""Maximum number of pages in one answer."""
_USUAL = 10


def read_request(body: bytes) -> dict[str, Any]:
    """Return the parameters ``query``, ``count`` and the hosts in ``include``; no hosts means any.

    Raises:
        ValueError: The request is invalid; the message is Bocha's.
    """
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise ValueError("The request body is not JSON")
    query, count = request.get("query"), request.get("count", _USUAL)
    if not isinstance(query, str) or not query.strip():
        raise ValueError("Missing parameter query")
    if not isinstance(count, int) or not 1 <= count <= MOST:
        raise ValueError("Invalid parameter count")
    hosts = [host for host in str(request.get("include") or "").replace(",", "|").split("|") if host]
    return {"query": query.strip(), "count": count, "hosts": hosts}


def search_answer(request: Mapping[str, Any], hits: Sequence[Subject], known_ids: frozenset[int]) -> HttpAnswer:
    """Return the pages found for ``request``: those of ``hits``, best first, and pages that are not films."""
    found = [page for page in web_results(request["query"], hits, known_ids) if _wanted(page["url"], request["hosts"])]
    return json_answer(response(request["query"], found[: request["count"]]))


def response(query: str, results: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return a successful response with ``results`` (in the form of `web_results`); ``None`` omits the pages."""
    pages = None
    if results is not None:
        pages = {
            "webSearchUrl": "",
            "totalEstimatedMatches": 1000 * len(results),
            "value": [_page(result) for result in results],
            "someResultsRemoved": True,
        }
    data = {"_type": "SearchResponse", "queryContext": {"originalQuery": query}, "webPages": pages, "images": None}
    return {"code": 200, "log_id": _log_id(query), "msg": None, "data": data}


def error_answer(
    code: int, message: str, *, http_status: int | None = None, headers: Mapping[str, str] | None = None
) -> HttpAnswer:
    """Return an error, whose code is text and usually equal to the HTTP status."""
    return json_answer(
        {"code": str(code), "message": message, "log_id": _log_id(message)}, http_status or code, headers
    )


def faults(query: str, retry: Mapping[str, str]) -> dict[str, HttpAnswer]:
    """Return the faults in Bocha's own form; ``retry`` are the headers of the throttled one."""
    return {
        "forbidden": error_answer(403, "You do not have enough money"),
        "throttled": error_answer(429, "You have reached the request limit", headers=retry),
        "server_error": error_answer(500, "search engine timeout"),
        "empty": json_answer(response(query, None)),
        "error_in_200": error_answer(500, "search engine timeout", http_status=200),
        "garbage": HttpAnswer(200, b'{"code":200,"log_id":"', "application/json"),
    }


def _page(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": None,
        "name": result["title"],
        "url": result["url"],
        "displayUrl": result["url"],
        "snippet": result["content"],
        "siteName": "豆瓣",
        "siteIcon": None,
        "dateLastCrawled": "2026-01-01T00:00:00Z",
        "cachedPageUrl": None,
        "language": None,
        "isFamilyFriendly": None,
        "isNavigational": None,
    }


def _wanted(url: str, hosts: Sequence[str]) -> bool:
    own = urlsplit(url).hostname or ""
    return not hosts or any(own == host or own.endswith(f".{host}") for host in hosts)


def _log_id(text: str) -> str:
    return f"{zlib.crc32(text.encode()):016x}"
