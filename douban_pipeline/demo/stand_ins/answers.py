"""Answers of the replayed upstreams, with the format and quirks of the real ones; no I/O here.

A *subject* is a mapping as in the bundled sample: ``id``, ``title``, ``original_title``, ``aka``, ``year``,
``regions``, ``languages``, ``directors``, ``writers``, ``actors``, ``genres``, ``duration_min``, ``episodes``,
``kind``, ``rating``, ``votes``, ``pubdates``, ``summary``. Quirks depend only on the subject id, so that the same
request always gets the same answer.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

Subject = Mapping[str, Any]

_CALLBACK = re.compile(r"[A-Za-z_$][\w$.]{0,63}")
_SEPARATORS = (",", "/", " / ", "、")
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One HTTP answer: status, body, content type and further headers."""

    status: int
    body: bytes
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return ``value`` as a JSON answer."""
    return HttpAnswer(status, json.dumps(value, ensure_ascii=False).encode(), headers=headers or {})


def html_answer(title: str, text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return a small HTML page."""
    page = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{text}</body></html>"
    return HttpAnswer(status, page.encode(), _HTML, headers or {})


def maccms_answer(payload: Mapping[str, Any], callback: str | None, *, escape: bool = False) -> HttpAnswer:
    """Return ``payload`` as douban.php does: JSON with content type HTML, or JSONP if a callback is requested.

    Args:
        payload: ``code``, ``msg`` and optionally ``data``.
        callback: The function's name, ``None`` for plain JSON.
        escape: Whether non-ASCII is written as ``\\uXXXX``, PHP's default.
    """
    text = json.dumps(payload, ensure_ascii=escape)
    if callback is None:
        return HttpAnswer(200, text.encode(), _HTML)
    if not _CALLBACK.fullmatch(callback):
        return html_answer("400 Bad Request", "bad callback", 400)
    return HttpAnswer(200, f"{callback}({text});".encode(), "application/javascript; charset=utf-8")


def douban_answer(subject: Subject | None, callback: str | None = None) -> HttpAnswer:
    """Return the answer of douban.php for ``subject``; ``None`` is an id that Douban does not have."""
    if subject is None:
        return maccms_answer({"code": 102, "msg": "条目不存在"}, callback)
    variant = _variant(subject)
    payload = {"code": 1, "msg": ("数据列表", "ok")[variant % 2], "data": douban_fields(subject)}
    return maccms_answer(payload, callback, escape=variant % 3 == 0)


def douban_fields(subject: Subject) -> dict[str, Any]:
    """Return ``data`` of an answer in the form read by maccms's admin form.

    As in scripts used by real sites: numbers are text (integers sometimes not), lists are joined by ``,``, ``/``,
    ``" / "`` or ``、``, people may be ``内详``, the vote columns are made up, and unknown values are ``""``. If the
    fields may contain the id, it is in `vod_douban_id` for two subjects of three, and always in `vod_reurl`.
    """
    variant = _variant(subject)
    unknown = "内详" if variant % 5 < 3 else ""
    original = subject.get("original_title") or ""
    names = [name for name in (original, *_list(subject, "aka")) if name and name != subject["title"]]
    joined = {
        key: _join(subject, key)
        for key in ("regions", "languages", "genres", "directors", "writers", "actors", "pubdates")
    }
    rating, votes = subject.get("rating"), int(subject.get("votes") or 0)
    minutes, episodes = subject.get("duration_min"), subject.get("episodes")
    made_up = 1 + variant % 40 / 10
    score = f"{rating if rating is not None else made_up:.1f}"
    numbers: dict[str, int] = {"vod_total": int(episodes or 0), "vod_score_num": votes or 100 + variant % 900}
    fields: dict[str, Any] = {
        "vod_name": subject["title"],
        "vod_sub": _separator(subject, names).join(dict.fromkeys(names)),
        "vod_pic": subject.get("picture") or picture_of(subject),
        "vod_year": str(subject.get("year") or ""),
        "vod_lang": joined["languages"],
        "vod_area": joined["regions"],
        "vod_state": "正片",
        "vod_class": joined["genres"],
        "vod_tag": joined["genres"],
        "vod_actor": joined["actors"] or unknown,
        "vod_director": joined["directors"] or unknown,
        "vod_writer": joined["writers"] or unknown,
        "vod_pubdate": joined["pubdates"],
        "vod_behind": original if re.fullmatch(r"[\x20-\x7e]+", original) else "",
        "vod_total": str(numbers["vod_total"] or ""),
        "vod_serial": "",
        "vod_isend": "1" if subject.get("kind") == "movie" else "",
        "vod_score": score,
        "vod_score_num": str(numbers["vod_score_num"]),
        "vod_score_all": str(round(float(score) * numbers["vod_score_num"])),
        "vod_douban_score": "0.0" if rating is None else f"{rating:.1f}",
        "vod_duration": "" if not minutes else f"{minutes}{('', '分钟')[variant % 2]}",
        "vod_content": ("", "　　")[variant % 4 == 0] + subject["summary"] if subject.get("summary") else "",
        "vod_reurl": f"https://movie.douban.com/subject/{subject['id']}/",
        "vod_author": "",
    }
    if variant % 3:
        fields["vod_douban_id"] = (str(subject["id"]), subject["id"])[variant % 2]
    if variant % 7 == 0:
        fields.update(numbers)
    return fields


def search_answer(query: str, hits: Sequence[Subject], known_ids: frozenset[int]) -> HttpAnswer:
    """Return a page of SearXNG results for ``query`` that finds ``hits``, best first; see `web_results`."""
    return json_answer(searxng_page(query, web_results(query, hits, known_ids)))


def web_results(query: str, hits: Sequence[Subject], known_ids: frozenset[int]) -> list[dict[str, Any]]:
    """Return the pages that a web search finds for ``query``, with ``url``, ``title`` and ``content``.

    A subject is found under one of Douban's many addresses, the best one twice or more, between results that are not
    films: a book, an album, a review, a page elsewhere.
    """
    narrow = "site:movie.douban.com" in query
    results: list[dict[str, Any]] = []
    for rank, subject in enumerate(hits):
        urls = [_address(subject, rank, narrow)]
        if rank == 0:
            urls += _other_addresses(subject, narrow)
        results += [_result(url, f"{subject['title']} (豆瓣)", _snippet(subject)) for url in urls]
    for place, noise in enumerate(_noise(query, narrow, known_ids)):
        results.insert(min(1 + 3 * place, len(results)), noise)
    return results


def searxng_page(
    query: str, results: Sequence[Mapping[str, Any]], unresponsive: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """Return the JSON page of SearXNG with ``results`` and the engines that did not answer, with reasons.

    ``number_of_results`` is 0, as SearXNG mostly says.
    """
    scored = [{**result, "positions": [n], "score": round(1 / n, 3)} for n, result in enumerate(results, 1)]
    return {
        "query": query,
        "number_of_results": 0,
        "results": scored,
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [list(engine) for engine in unresponsive],
    }


def _variant(subject: Subject) -> int:
    return zlib.crc32(str(subject["id"]).encode())


def _list(subject: Subject, key: str) -> list[str]:
    return [str(item) for item in subject.get(key) or ()]


def _join(subject: Subject, key: str) -> str:
    items = _list(subject, key)
    return _separator(subject, items).join(items)


def _separator(subject: Subject, items: Sequence[str]) -> str:
    # The scripts split their lists before joining: a separator that is part of a name never joins names.
    usable = [mark for mark in _SEPARATORS if not any(mark.strip() in item for item in items)]
    return usable[_variant(subject) % len(usable)] if usable else " / "


def picture_of(subject: Subject) -> str:
    """Return the address of a subject's poster, in the form of Douban's."""
    number = 2_000_000_000 + _variant(subject) % 900_000_000
    return f"https://img{1 + number % 9}.doubanio.com/view/photo/s_ratio_poster/public/p{number}.jpg"


def _address(subject: Subject, rank: int, narrow: bool) -> str:
    desktop = f"https://movie.douban.com/subject/{subject['id']}"
    forms = [
        f"{desktop}/",
        f"{desktop}/?from=showing",
        f"{desktop}/comments?status=P",
        desktop.replace("https", "http"),
    ]
    if not narrow:
        forms.append(f"https://m.douban.com/movie/subject/{subject['id']}/")
    return forms[(_variant(subject) + rank) % len(forms)]


def _other_addresses(subject: Subject, narrow: bool) -> list[str]:
    number = subject["id"]
    reviews = f"https://movie.douban.com/subject/{number}/reviews?sort=hotest"
    if narrow:
        return [reviews]
    wrapped = f"https://www.douban.com/link2/?url={quote(f'https://movie.douban.com/subject/{number}/', safe='')}"
    app = f"https://www.douban.com/doubanapp/dispatch?uri=/movie/{number}&from=mdouban"
    return [reviews, (wrapped, app)[_variant(subject) % 2]]


def _snippet(subject: Subject) -> str:
    parts = [
        ("导演", " / ".join(_list(subject, "directors"))),
        ("主演", " / ".join(_list(subject, "actors")[:4])),
        ("类型", " / ".join(_list(subject, "genres"))),
        ("制片国家/地区", " / ".join(_list(subject, "regions"))),
        ("上映日期", " / ".join(_list(subject, "pubdates"))),
        ("又名", " / ".join(_list(subject, "aka"))),
    ]
    return " ".join(f"{name}: {value}" for name, value in parts if value)


def _result(url: str, title: str, content: str) -> dict[str, Any]:
    host = url.split("/")[2]
    return {
        "url": url,
        "title": title,
        "content": content,
        "engine": "bing",
        "engines": ["bing"],
        "template": "default.html",
        "parsed_url": [url.split(":")[0], host, url.split(host, 1)[1], "", "", ""],
        "category": "general",
        "publishedDate": None,
        "thumbnail": "",
    }


def _noise(query: str, narrow: bool, known_ids: frozenset[int]) -> list[dict[str, Any]]:
    seed = zlib.crc32(query.encode())
    # An id of no known subject: code that mistakes the book for a film finds nothing instead of a wrong film.
    number = next(n for n in range(4_000_000 + seed % 20_000_000, 99_000_000) if n not in known_ids)
    if narrow:
        return [
            _result(f"https://movie.douban.com/review/{number}/", "一篇影评", "这篇影评可能有剧透"),
            _result(f"https://movie.douban.com/celebrity/{number}/", "影人 (豆瓣)", "影人资料"),
        ]
    pages = [
        _result(f"https://book.douban.com/subject/{number}/", "同名原著 (豆瓣)", "作者 出版社 出版年 页数 定价"),
        _result(f"https://music.douban.com/subject/{number}/", "电影原声 (豆瓣)", "表演者 流派 专辑类型"),
        _result(f"https://www.zhihu.com/question/{number}", "如何评价这部片子？ - 知乎", "谢邀"),
        _result(f"https://www.douban.com/doulist/{number}/", "片单 (豆瓣)", "豆列"),
    ]
    return pages[seed % 2 :: 2]
