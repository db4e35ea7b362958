"""Cells for a video's newest verdict: the best candidate, the second, and labels of the objections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from douban_pipeline.cms.values import readable
from douban_pipeline.douban import links
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.matching import Code
from douban_pipeline.matching.codes import LABELS

_LABELS: Mapping[str, str] = {
    **LABELS,
    Code.TITLE_NOT_EXACT: "相似度低",
    Code.YEAR_OFF: LABELS[Code.YEAR_GAP],
    Code.MEDIUM_CONFLICT: LABELS[Code.KIND_CONFLICT],
    Code.SEASON_CONFLICT: "季数冲突",
    Code.TWIN_SUBJECTS: LABELS[Code.LEAD_TOO_SMALL],
    Code.RIVALS_UNSEEN: "候选不完整",
    Code.INCOMPLETE: "候选不完整",
    Code.BELOW_CONFIRM: "得分不足",
    Code.NO_CANDIDATES: "无候选",
    Code.PERSON_CHOSE_OTHER: "人工另选",
}


def labels_of(codes: Iterable[str], *, locked: bool = False) -> tuple[str, ...]:
    """Return the labels of the objections to a link, each once."""
    against = [*codes, *([Code.ID_LOCKED] if locked else [])]
    return tuple(dict.fromkeys(_LABELS[code] for code in against if code in _LABELS))


def subject_lines(candidate: ReviewCandidate) -> str:
    """Return a candidate as lines: title and year, then its other known facts."""
    facts = candidate.facts
    known = (
        "、".join(facts.get("regions") or ()),
        "导演 " + "、".join(list(facts.get("directors") or ())[:3]) if facts.get("directors") else "",
        f"评分 {facts['rating']:g}" if facts.get("rating") else "",
        f"{facts['votes']:,} 人" if facts.get("votes") else "",
        "" if candidate.fetched else "资料未查看",
    )
    first = f"{candidate.title or '（无片名）'}（{candidate.year or '?'}）"
    rest = " · ".join(filter(None, known))
    return f"{first}\n{rest}" if rest else first


def review_cells(
    row: Mapping[Any, Any], verdict: Mapping[Any, Any] | None, candidates: Sequence[ReviewCandidate]
) -> dict[str, Any]:
    """Return the cells about a video's candidates."""
    best = candidates[0] if candidates else None
    second = candidates[1] if len(candidates) > 1 else None
    reasons = list((verdict["reasons"] or ()) if verdict else ())
    against = [*(best.rejects if best else ()), *(best.conflicts if best else ()), *reasons]
    locked = bool(row["douban_id_locked"])
    return {
        "region": readable(row["vod_area"]) or None,
        "director": readable(row["vod_director"])[:60] or None,
        "douban_id": row["vod_douban_id"],
        "locks": tuple(text for text, holds in (("ID 已锁定", locked), ("简介已锁定", row["intro_locked"])) if holds),
        "best": subject_lines(best) if best else None,
        "best_id": best.douban_id if best else 0,
        "votes": best.facts.get("votes") if best else None,
        "score": round(best.score, 1) if best else None,
        "similarity": best.similarity if best else None,
        "second": f"{second.title}（{second.year or '?'}）{second.score:.1f}" if second else None,
        "lead": round(verdict["lead"], 1) if verdict and verdict["lead"] is not None else None,
        "labels": labels_of(against, locked=locked),
        "reason": row["douban_review_reason"] or None,
        "links": tuple(_actions(row, verdict, best)),
    }


def _actions(
    row: Mapping[Any, Any], verdict: Mapping[Any, Any] | None, best: ReviewCandidate | None
) -> Iterable[tuple[Any, ...]]:
    vod_id = row["vod_id"]
    yield ("compare", vod_id)
    if best is not None and verdict is not None:
        chosen = (vod_id, best.douban_id, verdict["verdict_id"])
        if row["douban_id_locked"]:
            yield ("replace", *chosen)
        else:
            yield ("choose", *chosen)
            yield ("choose_lock", *chosen)
    yield ("set", vod_id)
    yield ("rematch", vod_id)
    yield ("ignore", vod_id)
    yield ("search", links.searched(readable(row["vod_name"])))
    yield ("unlock" if row["douban_id_locked"] else "lock", vod_id) if row["vod_douban_id"] else ("history", vod_id)
    yield ("unlock_intro" if row["intro_locked"] else "lock_intro", vod_id)
