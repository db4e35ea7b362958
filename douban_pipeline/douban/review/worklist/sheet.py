"""Data of the review sheet: every field as text, for the video and the candidates, with the matcher's comparison.

Nothing is decided here: a reviewer's choice is checked when it is recorded.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.ui.tmdb_attribution import attribution_parts
from douban_pipeline.douban.evidence.added_facts import Added
from douban_pipeline.douban.match_inputs import profile_of, subject_facts
from douban_pipeline.douban.review.records.replacement import Replacement, archived, compared
from douban_pipeline.douban.review.records.snapshot import (
    LARGEST_ID,
    ReviewCandidate,
    SubjectHolders,
    holders_of,
    titles_of,
)
from douban_pipeline.douban.review.worklist.both_verdicts import BothVerdicts
from douban_pipeline.douban.review.worklist.queue import QueueEntry
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.wording import PROFILES, REVIEW_STATUSES, word_for
from douban_pipeline.matching import Code, Kind, clean_title
from douban_pipeline.matching.codes import labels_of
from douban_pipeline.matching.weights import TIE_BREAK

LABELS: Mapping[str, str] = {
    "title": "片名",
    "aliases": "别名",
    "year": "年份",
    "kind": "类别",
    "region": "地区",
    "language": "语言",
    "director": "导演",
    "actors": "主演",
    "genre": "类型",
    "length": "片长 / 集数",
    "rating": "豆瓣评分",
    "votes": "评分人数",
    "remarks": "备注",
}
"""The rows of the comparison, in order; rows for which the matcher gives points have the names of its items."""

_ITEM_ROWS = {TIE_BREAK: "rating"}
_AGAINST: Mapping[str, str] = {
    Code.SEASON_CONFLICT: "title",
    Code.EDITION_CONFLICT: "title",
    Code.MERGED_RECORD: "title",
    Code.ORIGINALS_DIFFER: "title",
    Code.KIND_CONFLICT: "kind",
    Code.MEDIUM_CONFLICT: "kind",
}
"""Rows that a conflict marks although their item does not: names may be equal while the seasons differ."""

_SAID_BY: Mapping[str, str] = {
    Code.TITLE_TOO_FAR: "title",
    Code.YEAR_GAP: "year",
    Code.YEAR_OFF: "year",
    Code.REGION_CONFLICT: "region",
    Code.DIRECTOR_CONFLICT: "director",
    Code.ACTORS_DISJOINT: "actors",
    Code.LENGTH_CONFLICT: "length",
}
"""Conflicts that a row of the comparison shows by its two values, where its mark says that they differ."""

_KINDS: Mapping[str | None, str] = {
    Kind.FILM: "电影",
    Kind.SERIES: "剧集",
    Kind.VARIETY: "综艺",
    Kind.ANIMATION: "动画",
    Kind.DOCUMENTARY: "纪录片",
    Kind.SHORT: "短片",
}
_MOST_NAMES, _MOST_ALIASES = 10, 6
_MOST_LETTERS = 200


def frame_of(services: Services, reviewer: str) -> dict[str, Any]:
    """Return the sheet's data that does not depend on the queue: current rules, words, and addresses of links.

    Args:
        services: Settings and time.
        reviewer: The logged-in user, empty if unknown.
    """
    settings, now = services.settings, services.clock.now()
    profile = profile_of(settings)
    return {
        # The same for every sheet of this library: choices are kept in the browser under it until they are recorded.
        "id": hashlib.sha256(f"{settings.shown_library_url} {settings.table_prefix}".encode()).hexdigest()[:16],
        "profile": word_for(PROFILES, profile.name),
        "made": f"{local_time(now, settings.zone)}（{settings.site_timezone}）",
        "highest": profile.most,
        # Where the score is a share of the compared points, leads are measured in points all the same.
        "share": profile.name != "plan",
        "confirm": settings.confirm_score,
        "review": settings.review_score,
        "lead": settings.lead_score,
        "ids": [SMALLEST_ID, LARGEST_ID],
        "labels": [[row, label] for row, label in LABELS.items()],
        "site": site_addresses(settings),
        "tmdb": attribution_parts(),
        "reviewer": reviewer,
    }


def site_addresses(settings: Settings) -> dict[str, str]:
    """Return the addresses of a video's page and player on the site, with ``{id}`` in them; empty if not known."""
    site = settings.site_url.rstrip("/")
    paths = {"page": settings.site_page, "player": settings.site_player}
    return {name: site + path if site and path else "" for name, path in paths.items()}


def candidate_of(services: Services, entry: QueueEntry, candidate: ReviewCandidate) -> dict[str, Any]:
    """Return a candidate beside those of a video's verdict, as on its card, with ``writes`` as lines."""
    holders = holders_of(services, {candidate.douban_id})
    titles = titles_of(services, {vod_id for each in holders.values() for vod_id in each.ends})
    lines = [_lines(each) for each in compared(services, {entry.vod_id: candidate.douban_id}, most=1)]
    return {
        **_candidate(candidate),
        **_held(entry, candidate.douban_id, holders, titles),
        "poster": "",
        "writes": lines[0] if lines else [],
    }


def cards_of(services: Services, entries: Sequence[QueueEntry]) -> list[dict[str, Any]]:
    """Return the cards of waiting videos, with all known facts of both sides, ready for JSON."""
    settings = services.settings
    subjects = {candidate.douban_id for entry in entries for candidate in entry.candidates}
    holders = holders_of(services, subjects)
    with_id = {entry.vod_id: entry for entry in entries if entry.douban_id}
    current = {vod_id: _current(services, entry) for vod_id, entry in with_id.items()}
    writes = _writes(services, with_id)
    titles = titles_of(services, {vod_id for each in holders.values() for vod_id in each.ends})
    return [
        {
            **_card(entry, holders, titles, settings.zone),
            "poster": picture_address(entry.picture, settings.site_url),
            "frame": picture_address(entry.frame, settings.site_url),
            "current": current.get(entry.vod_id),
            "writes": writes.get(entry.vod_id, {}),
        }
        for entry in entries
    ]


def _current(services: Services, entry: QueueEntry) -> dict[str, Any] | None:
    """Return the archived facts of a video's linked subject; None if it is among the candidates."""
    if any(candidate.douban_id == entry.douban_id for candidate in entry.candidates):
        return None
    record = archived(services, entry.douban_id)
    facts = asdict(subject_facts(record)) if record else {}
    title, year = (record.title, record.year) if record else ("（资料不在存档中）", None)
    return {"id": entry.douban_id, "title": plain(title), "year": year, "facts": _subject_rows(title, facts)}


def _writes(services: Services, entries: Mapping[int, QueueEntry]) -> dict[int, dict[str, list[str]]]:
    """Return the values that replacing the video's id would write, as lines by video and candidate."""
    found: dict[int, dict[str, list[str]]] = {}
    ranks = max((len(entry.candidates) for entry in entries.values()), default=0)
    for rank in range(ranks):
        targets = {
            vod_id: entry.candidates[rank].douban_id
            for vod_id, entry in entries.items()
            if rank < len(entry.candidates) and entry.candidates[rank].douban_id != entry.douban_id
        }
        for each in compared(services, targets, most=len(targets)) if targets else ():
            found.setdefault(each.vod_id, {})[str(each.new_id)] = _lines(each)
    return found


def _lines(each: Replacement) -> list[str]:
    return [plain(f"{value.name}：{value.local or '空'} → {value.written}") for value in each.values if value.written]


def plain(text: object) -> str:
    """Return outside text as one line that cannot break the layout: no control characters, no direction marks."""
    line = "".join(sign if unicodedata.category(sign) not in ("Cc", "Cf", "Cs") else " " for sign in str(text))
    return " ".join(line.split())[:_MOST_LETTERS]


def group_name(titles: Iterable[str]) -> str:
    """Return the name of a franchise: the shortest of its titles."""
    return min((plain(clean_title(title)) for title in titles), key=len)


def _card(
    entry: QueueEntry,
    holders: Mapping[int, SubjectHolders],
    titles: Mapping[int, str],
    zone: ZoneInfo,
) -> dict[str, Any]:
    candidates = [
        _candidate(candidate) | _held(entry, candidate.douban_id, holders, titles) | {"poster": ""}
        for candidate in entry.candidates
    ]
    return {
        "vod": entry.vod_id,
        "title": plain(entry.title),
        "year": plain(entry.year),
        "category": plain(entry.category),
        "hits": entry.hits,
        "updated": day_of(entry.updated, zone),
        "id": entry.douban_id,
        "locked": entry.locked,
        "introLocked": entry.intro_locked,
        "cmsLocked": entry.cms_locked,
        "status": word_for(REVIEW_STATUSES, entry.status),
        "reason": plain(entry.reason),
        "labels": list(entry.labels),
        "verdict": entry.verdict_id,
        "stale": entry.stale,
        "score": entry.score,
        "lead": entry.lead,
        "search": plain(clean_title(entry.title)),
        "both": _both(entry.both, zone) if entry.both else None,
        "facts": _local(entry),
        "tmdb": _tmdb(entry.added) if entry.added is not None else None,
        "linked": bool(candidates and candidates[0]["holders"]),
        "candidates": candidates,
    }


def _tmdb(added: Added) -> dict[str, Any]:
    """Return what TMDB added, by kind; empty once it has expired."""
    shown = {name: "、".join(values[:_MOST_NAMES]) for name, values in added.shown.items()}
    return {"key": added.key, "facts": [[name, plain(text)] for name, text in shown.items()]}


def _both(both: BothVerdicts, zone: ZoneInfo) -> dict[str, Any]:
    """Return the rows of the table that compares both verdicts, each with whether it differs."""
    sides = (both.then, both.now)
    rows: list[list[str]] = [
        ["结论", *(word_for(REVIEW_STATUSES, side.status) for side in sides)],
        ["时间", *(local_time(side.judged_at, zone) for side in sides)],
        ["规则", *(side.rules for side in sides)],
        ["得分", *("不在候选中" if side.score is None else f"{side.score:.1f}" for side in sides)],
        ["领先", *("—" if side.lead is None else f"{side.lead:.1f}" for side in sides)],
    ]
    items = [{item["name"]: item for item in side.items} for side in sides]
    for name in dict.fromkeys(name for side in items for name in side):
        rows.append([f"{item_label(name)}（分）", *(_points_of(side.get(name)) for side in items)])
    facts = [_subject_rows(str(side.facts.get("title", "")), side.facts) for side in sides]
    for name, label in LABELS.items():
        words = ["、".join(side.get(name, ())) for side in facts]
        # Rating and votes change with every answer and do not matter.
        if name not in ("rating", "votes") and words[0] != words[1]:
            rows.append([f"{label}（条目）", *(word or "—" for word in words)])
    rows.append(["冲突", *("；".join(side.conflicts) or "无" for side in sides)])
    return {
        "rows": [[label, plain(then), plain(now), then != now and label != "时间"] for label, then, now in rows],
        "id": both.then.verdict_id,
    }


def _points_of(item: Mapping[str, Any] | None) -> str:
    if item is None or (item.get("outcome") == "unknown" and not item["points"]):
        return "未比较"
    return f"{item['points']:g}/{item['weight']:g}" if item.get("weight") else f"{item['points']:g}"


def day_of(moment: datetime | None, zone: ZoneInfo) -> str:
    """Return the day of a moment as text; empty for None."""
    return f"{moment.astimezone(zone):%Y-%m-%d}" if moment else ""


def _local(entry: QueueEntry) -> dict[str, list[str]]:
    facts = entry.facts
    return _filled(
        {
            "title": [entry.title],
            "aliases": facts["aliases"][:_MOST_ALIASES],
            # The CMS's value if it cannot be read as a year.
            "year": [facts["year"] or entry.year],
            "kind": dict.fromkeys([entry.category, _KINDS.get(facts.get("kind"), "")]),
            "region": facts["regions"],
            "language": facts["languages"],
            "director": facts["directors"][:_MOST_NAMES],
            "actors": facts["actors"][:_MOST_NAMES],
            "genre": facts["genres"],
            "length": _length(facts),
            "remarks": [facts["remarks"]],
        }
    )


def item_label(name: str) -> str:
    """Return the label of an item of the matcher's points."""
    return LABELS.get(_ITEM_ROWS.get(name, name), name)


def held_by_others(
    entry: QueueEntry, douban_id: int, holders: Mapping[int, SubjectHolders]
) -> tuple[int, tuple[int, ...]]:
    """Return how many other videos have a subject, and one or two of them."""
    found = holders.get(douban_id)
    if found is None:
        return 0, ()
    carries = (entry.douban_id, entry.status) == (douban_id, ReviewStatus.CONFIRMED)
    return found.others(entry.vod_id, carries=carries)


def _held(
    entry: QueueEntry, douban_id: int, holders: Mapping[int, SubjectHolders], titles: Mapping[int, str]
) -> dict[str, Any]:
    count, others = held_by_others(entry, douban_id, holders)
    return {"holders": count, "held": [[vod_id, plain(titles.get(vod_id, ""))] for vod_id in others]}


def _candidate(candidate: ReviewCandidate) -> dict[str, Any]:
    facts = candidate.facts
    earned = sum(item["points"] for item in candidate.items if item["name"] != TIE_BREAK)
    return {
        "rank": candidate.rank,
        "id": candidate.douban_id,
        "title": plain(candidate.title),
        "year": candidate.year,
        "score": candidate.score,
        "earned": round(earned, 2),
        "fetched": candidate.fetched,
        "samePoster": candidate.same_poster,
        "labels": list(labels_of(candidate.rejects)),
        "conflicts": [plain(text) for text in candidate.conflicts.values()],
        "saidBy": {_SAID_BY[code]: plain(text) for code, text in candidate.conflicts.items() if code in _SAID_BY},
        "marks": _marks(candidate),
        "facts": _subject_rows(candidate.title, facts),
    }


def _subject_rows(title: str, facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the known facts of a subject, by row of the comparison."""
    years = [facts.get("year"), *facts.get("release_years", ())]
    return _filled(
        {
            "title": dict.fromkeys([title, facts.get("original_title", "")]),
            "aliases": facts.get("aliases", ())[:_MOST_ALIASES],
            "year": dict.fromkeys(years),
            "kind": [_KINDS.get(facts.get("kind"), "")],
            "region": facts.get("regions", ()),
            "language": facts.get("languages", ()),
            "director": facts.get("directors", ())[:_MOST_NAMES],
            "actors": facts.get("actors", ())[:_MOST_NAMES],
            "genre": facts.get("genres", ()),
            "length": _length(facts),
            "rating": [facts.get("rating")],
            "votes": [shown_votes(facts.get("votes"))],
        }
    )


def shown_votes(votes: int | None) -> str:
    """Return the number of ratings of a subject as text; empty if unknown."""
    return f"{votes:,}" if votes else ""


def shown_rating(facts: Mapping[str, Any]) -> str:
    """Return the rating and the votes of a subject in short; empty without a rating."""
    rating, votes = facts.get("rating"), shown_votes(facts.get("votes"))
    return f"{rating:.1f}{f'（{votes} 人）' if votes else ''}" if rating else ""


def _marks(candidate: ReviewCandidate) -> dict[str, list[Any]]:
    """Return outcome, points and most points of every row of the comparison that the matcher compared."""
    marks: dict[str, list[Any]] = {}
    for item in candidate.items:
        row = _ITEM_ROWS.get(item["name"], item["name"])
        # The item for having a rating only breaks ties; it compares nothing and is part of no score.
        outcome = "" if row == "rating" else item.get("outcome", "")
        marks[row] = [outcome, item["points"], item.get("weight", 0)]
    for code in candidate.conflicts:
        if code in _AGAINST:
            row = _AGAINST[code]
            marks[row] = ["disagree", *marks.get(row, ["", None, None])[1:]]
    return marks


def _length(facts: Mapping[str, Any]) -> list[str]:
    minutes, episodes = facts.get("duration_minutes"), facts.get("episodes")
    return [*([f"{minutes} 分钟"] if minutes else []), *([f"{episodes} 集"] if episodes else [])]


def _filled(rows: Mapping[str, Iterable[Any]]) -> dict[str, list[str]]:
    """Return the rows that are not empty, each as its words."""
    filled = {row: [word for each in values if (word := plain(each or ""))] for row, values in rows.items()}
    return {row: words for row, words in filled.items() if words}
