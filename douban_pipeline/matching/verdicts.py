"""The verdict on a video: which subject it is, who has to look, or that nothing fits.

A pure function of its arguments, so that the whole library can be judged again from archived answers.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.matching.acceptance import Case, refusals
from douban_pipeline.matching.codes import SENTENCES, Code
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.scoring import (
    DEFAULT_THRESHOLDS,
    DEFAULT_WEIGHTS,
    Comparison,
    Outcome,
    Thresholds,
    Weights,
    compare,
)


class Status(enum.StrEnum):
    """What is known of a video after judging."""

    CONFIRMED = "CONFIRMED"
    REVIEW = "REVIEW"
    NOT_FOUND = "NOT_FOUND"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject, its comparison, and its place: 1 is the best; rejected ones come last."""

    subject: Subject
    comparison: Comparison
    rank: int

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of the candidate."""
        return {
            "rank": self.rank,
            "douban_id": self.subject.douban_id,
            "title": self.subject.title,
            "year": self.subject.year,
            **self.comparison.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided, and why.

    Attributes:
        status: CONFIRMED, REVIEW, NOT_FOUND, or UNDECIDED when the source was ill.
        candidates: All candidates, best first.
        douban_id: The subject, of a CONFIRMED verdict only.
        score: Points of the best candidate; None without candidates.
        lead: Points it is ahead of the best one of another work; None without a rival.
        codes: Reasons, empty for CONFIRMED.
        explanation: One Chinese sentence for reviewers.
    """

    status: Status
    candidates: tuple[Candidate, ...]
    douban_id: int | None
    score: float | None
    lead: float | None
    codes: tuple[str, ...]
    explanation: str

    @property
    def best(self) -> Candidate | None:
        """The first candidate, confirmed or not."""
        return self.candidates[0] if self.candidates else None

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of the verdict."""
        return {
            "status": str(self.status),
            "douban_id": self.douban_id,
            "score": self.score,
            "lead": self.lead,
            "codes": list(map(str, self.codes)),
            "explanation": self.explanation,
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }


def rank(
    video: Video,
    subjects: Iterable[Subject],
    weights: Weights = DEFAULT_WEIGHTS,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> tuple[Candidate, ...]:
    """Compare a video with every subject, best first; a subject given twice counts once.

    Rejected candidates follow the others. Equal scores are ordered by title, then by id, so that the order never
    depends on the search engine's.
    """
    unique = {subject.douban_id: subject for subject in reversed(list(subjects))}
    compared = [(subject, compare(video, subject, weights, thresholds)) for subject in unique.values()]
    compared.sort(
        key=lambda pair: (bool(pair[1].rejects), -pair[1].score, -pair[1].title.similarity, pair[0].douban_id)
    )
    return tuple(Candidate(subject, comparison, place) for place, (subject, comparison) in enumerate(compared, start=1))


def judge(
    video: Video,
    subjects: Sequence[Subject],
    *,
    complete: bool = True,
    source_healthy: bool = True,
    weights: Weights = DEFAULT_WEIGHTS,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    reverted: frozenset[int] = frozenset(),
    has_siblings: bool = False,
) -> Verdict:
    """Judge a video against its candidates.

    Args:
        video: The local video.
        subjects: Every candidate that was found, in any order.
        complete: Whether no search and no detail call failed. An incomplete set never confirms and never proves
            that nothing was found.
        source_healthy: Whether the answers came from sources in good health. If not there is no verdict.
        weights: Points of the items.
        thresholds: Where verdicts change.
        reverted: Douban ids whose link to this video was reverted before.
        has_siblings: Whether other works of this name are known beside the candidates.

    Returns:
        The verdict. Its candidates are ranked even when it is UNDECIDED.
    """
    ranked = rank(video, subjects, weights, thresholds)
    standing = [candidate for candidate in ranked if not candidate.comparison.rejects]
    best = standing[0] if standing else None
    score = best.comparison.score if best else ranked[0].comparison.score if ranked else None
    lead = _lead(standing, ranked)

    def verdict(status: Status, codes: Iterable[str], text: str | None = None) -> Verdict:
        codes = tuple(dict.fromkeys(codes))
        douban_id = best.subject.douban_id if best and status is Status.CONFIRMED else None
        explanation = text if text is not None else _explain(status, ranked, codes, score, lead)
        return Verdict(status, ranked, douban_id, score, lead, codes, explanation)

    if not source_healthy:
        return verdict(Status.UNDECIDED, [Code.SOURCE_DEGRADED])
    if best is not None and best.comparison.score >= thresholds.confirm:
        case = Case(
            video,
            best.subject,
            best.comparison,
            [(other.subject, other.comparison) for other in ranked if other is not best],
            complete,
            has_siblings,
            reverted,
        )
        codes = [*_too_close(lead, thresholds), *refusals(case)]
        return verdict(Status.REVIEW if codes else Status.CONFIRMED, codes)
    if best is not None and best.comparison.score >= thresholds.review:
        return verdict(Status.REVIEW, [Code.BELOW_CONFIRM, *best.comparison.conflicts])
    clashing = next((candidate for candidate in ranked if _exact_but_rejected(candidate)), None)
    if clashing is not None:
        # Exact name and year with a conflict is where local data is often wrong.
        return verdict(Status.REVIEW, [Code.CONFLICT, *clashing.comparison.rejects])
    if not complete:
        # A failed call is not an empty answer.
        return verdict(Status.UNDECIDED, [Code.INCOMPLETE])
    if not ranked:
        return verdict(Status.NOT_FOUND, [Code.NO_CANDIDATES])
    if best is None:
        rejects = [code for candidate in ranked for code in candidate.comparison.rejects]
        return verdict(Status.NOT_FOUND, [Code.ALL_REJECTED, *rejects])
    return verdict(Status.NOT_FOUND, [Code.BELOW_REVIEW])


def _lead(standing: Sequence[Candidate], ranked: Sequence[Candidate]) -> float | None:
    """Points the best is ahead of the best other work; None without a rival.

    Other subjects are other works, of the same title or not: seasons, remakes, spin-offs. Rejected ones are ruled
    out, except those of the exact name and year: that is where a local field may be wrong, not the candidate.
    """
    if not standing:
        return None
    rivals = [*standing[1:], *filter(_exact_but_rejected, ranked)]
    if not rivals:
        return None
    return round(standing[0].comparison.score - max(rival.comparison.score for rival in rivals), 2)


def _too_close(lead: float | None, thresholds: Thresholds) -> tuple[str, ...]:
    return (Code.LEAD_TOO_SMALL,) if lead is not None and lead < thresholds.lead else ()


def _exact_but_rejected(candidate: Candidate) -> bool:
    comparison = candidate.comparison
    same_year = comparison.year is not None and comparison.year.gap == 0 and comparison.year.own
    return bool(comparison.rejects) and comparison.title.near_exact and same_year


_ITEM_NAMES = {
    "year": "年份",
    "region": "地区",
    "director": "导演",
    "actors": "主演",
    "genre": "类型",
    "length": "片长或集数",
}


def _explain(
    status: Status, ranked: Sequence[Candidate], codes: Sequence[str], score: float | None, lead: float | None
) -> str:
    if status is Status.UNDECIDED or not ranked:
        return "；".join(SENTENCES[code] for code in codes) + "。"
    shown = ranked[0]
    if Code.CONFLICT in codes:
        shown = next(candidate for candidate in ranked if _exact_but_rejected(candidate))
    comparison = shown.comparison
    head = f"《{shown.subject.title}》" + (f"（{shown.subject.year}）" if shown.subject.year else "")
    head += f"得分 {comparison.score:.1f}"
    if lead is not None and shown is ranked[0]:
        head += f"，领先 {lead:.1f}"
    if status is Status.CONFIRMED:
        agreed = [
            _ITEM_NAMES[item.name]
            for item in comparison.items
            if item.name in _ITEM_NAMES and item.outcome is Outcome.AGREE
        ]
        return f"{head}；片名一致，{'、'.join(agreed)}相符。"
    own = {finding.code: finding.text for finding in comparison.findings}
    return "；".join([head, *(own.get(code) or SENTENCES[code] for code in codes)]) + "。"
