"""Decides the verdict on a video: the confirmed subject, a review by a person, or that nothing fits.

A pure function of its arguments, so that the whole library can be judged again from archived answers.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.matching.acceptance import refusals
from douban_pipeline.matching.case import Case
from douban_pipeline.matching.codes import SENTENCES, Code
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.profiles import PLAN, Profile
from douban_pipeline.matching.ranking import Candidate, Ranking, people_speak, rank
from douban_pipeline.matching.rivals import has_relatives, is_live, rules_out
from douban_pipeline.matching.scoring import Comparison
from douban_pipeline.matching.strata import opening_of, strata_of, stratum_name
from douban_pipeline.matching.weights import Thresholds


class Status(enum.StrEnum):
    """Result of judging a video."""

    CONFIRMED = "CONFIRMED"
    REVIEW = "REVIEW"
    NOT_FOUND = "NOT_FOUND"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision about a video, with its reasons.

    Attributes:
        status: CONFIRMED, REVIEW, NOT_FOUND, or UNDECIDED when the source was unhealthy.
        candidates: All candidates, best first.
        douban_id: The subject, of a CONFIRMED verdict only.
        score: Points of the best candidate; None without candidates.
        lead: Points by which it leads the best candidate of another work; None without a rival.
        codes: Reasons, empty for CONFIRMED.
        explanation: One Chinese sentence for reviewers.
        profile: Name of the profile that decided.
        strata: Groups the best candidate belongs to, for measuring precision; see `matching.strata`.
    """

    status: Status
    candidates: Ranking
    douban_id: int | None
    score: float | None
    lead: float | None
    codes: tuple[str, ...]
    explanation: str
    profile: str = PLAN.name
    strata: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate | None:
        """The first candidate, confirmed or not."""
        return self.candidates[0] if self.candidates else None

    def to_json(self) -> dict[str, Any]:
        """Return the stored form of the verdict."""
        return {
            "status": str(self.status),
            "douban_id": self.douban_id,
            "score": self.score,
            "lead": self.lead,
            "codes": list(map(str, self.codes)),
            "explanation": self.explanation,
            "profile": self.profile,
            "strata": list(self.strata),
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }


def judge(
    video: Video,
    subjects: Sequence[Subject],
    *,
    profile: Profile = PLAN,
    complete: bool = True,
    source_healthy: bool = True,
    crowded: bool = False,
    reverted: frozenset[int] = frozenset(),
    has_siblings: bool = False,
    linked: Mapping[int, Sequence[str]] | None = None,
    chosen: int | None = None,
    braked: frozenset[str] = frozenset(),
    opened: frozenset[str] = frozenset(),
    posters: Collection[int] = (),
) -> Verdict:
    """Judge a video against its candidates.

    Args:
        video: The local video.
        subjects: Every candidate that was found, in any order.
        complete: Whether no detail call failed, and no search that could still have found the subject. An incomplete
            set never confirms and never proves that nothing was found.
        source_healthy: Whether the answers came from healthy sources. If not, there is no verdict.
        profile: How points become the deciding score, and the thresholds of the verdicts.
        crowded: Whether there may be more works of this name than were found.
        reverted: Douban ids whose link to this video was reverted before.
        has_siblings: Whether other works of this name are known beside the candidates.
        linked: Titles of the other videos that are linked to a subject, by its id.
        chosen: The Douban id that a person chose for this video; no other is confirmed.
        braked: Strata in which nothing is confirmed until a person allows it again.
        opened: Strata of `matching.strata.OPENINGS` that a person opened: what they lack is not asked for.
        posters: Douban ids whose poster equals the video's: one more fact, where others agree.

    Returns:
        The verdict. Its candidates are ranked even when it is UNDECIDED.
    """
    thresholds = profile.thresholds
    ranked = rank(video, subjects, profile)
    eligible = ranked.eligible
    best = eligible[0] if eligible else None
    top = ranked[0] if ranked else None
    score = top.score if top else None
    lead = _lead(ranked, profile) if top is best else None
    case: Case | None = None
    strata: tuple[str, ...] = ()
    if top is not None:
        others = [(other.subject, other) for other in ranked.comparisons if other is not top.comparison]
        linked_titles = (linked or {}).get(top.subject.douban_id, ())
        case = Case(
            video,
            top.subject,
            top.comparison,
            others,
            complete,
            crowded,
            has_siblings,
            reverted,
            linked_titles,
            chosen,
            same_poster=top.subject.douban_id in posters,
        )
        strata = strata_of(video, top.subject, top.comparison, has_relatives(case))

    def verdict(status: Status, codes: Iterable[str], text: str | None = None) -> Verdict:
        codes = tuple(dict.fromkeys(codes))
        douban_id = best.subject.douban_id if best and status is Status.CONFIRMED else None
        explanation = text if text is not None else _explain(status, ranked, codes, score, lead, posters)
        return Verdict(status, ranked, douban_id, score, lead, codes, explanation, profile.name, strata)

    if not source_healthy:
        return verdict(Status.UNDECIDED, [Code.SOURCE_DEGRADED])
    if case is not None and best is not None and best.score >= thresholds.confirm:
        codes = [*_too_close(eligible, lead, thresholds), *refusals(case)]
        lacks = opening_of(codes)
        if lacks:
            strata = (*strata, lacks)
        if lacks in opened:
            codes = []
        if not codes and braked.intersection(strata):
            codes = [Code.STRATUM_BRAKED]
        if codes:
            return verdict(Status.REVIEW, codes)
        text = _explain(Status.CONFIRMED, ranked, (), score, lead, posters)
        return verdict(Status.CONFIRMED, (), f"{text}{stratum_name(lacks)}，人工已放行。" if lacks else text)
    worth_a_look = best is not None and (best.score >= thresholds.review or people_speak(best.comparison))
    if best is not None and worth_a_look:
        return verdict(Status.REVIEW, [Code.BELOW_CONFIRM, *best.comparison.conflicts])
    if top is not None and top.near:
        # If much agrees and one field conflicts, the local data is often wrong.
        return verdict(Status.REVIEW, [Code.CONFLICT, *top.comparison.rejects])
    if not complete:
        # A failed call is not an empty answer.
        return verdict(Status.UNDECIDED, [Code.INCOMPLETE])
    if not ranked:
        return verdict(Status.NOT_FOUND, [Code.NO_CANDIDATES])
    if best is None:
        rejects = [code for candidate in ranked for code in candidate.comparison.rejects]
        return verdict(Status.NOT_FOUND, [Code.ALL_REJECTED, *rejects])
    return verdict(Status.NOT_FOUND, [Code.BELOW_REVIEW])


def _lead(ranked: Ranking, profile: Profile) -> float | None:
    """Return the points by which the best candidate leads the best other work; None without a rival.

    Other subjects are other works, with the same title or not: seasons, remakes, spin-offs. Rejected ones and those of
    another kind do not count, except those with the exact name and year: there a local field may be wrong, not the
    candidate. If the best candidate's original title is the video's, subjects with another one do not count.
    """
    if not ranked.eligible:
        return None
    best = ranked.eligible[0].comparison
    others = [other for other in ranked.comparisons if other is not best]
    rivals = [profile.points(other) for other in others if _rivals(other) and not rules_out(best, other)]
    return round(profile.points(best) - max(rivals), 2) if rivals else None


def _too_close(eligible: Sequence[Candidate], lead: float | None, thresholds: Thresholds) -> tuple[str, ...]:
    if lead is None or lead >= thresholds.lead:
        return ()
    return (Code.LEAD_TOO_SMALL, Code.TWIN_SUBJECTS) if _twins(eligible[:2]) else (Code.LEAD_TOO_SMALL,)


def _twins(pair: Sequence[Candidate]) -> bool:
    """Return whether two candidates look like two entries of one work: same name, year and people."""
    if len(pair) < 2 or not all(is_live(each.comparison) for each in pair):
        return False
    years = [each.subject.year for each in pair]
    same_year = None not in years and abs((years[0] or 0) - (years[1] or 0)) <= 1
    return same_year and all(each.comparison.people_agree for each in pair)


def _rivals(other: Comparison) -> bool:
    return not other.excluded or (other.title.near_exact and other.exact_year)


_ITEM_NAMES = {
    "year": "年份",
    "region": "地区",
    "director": "导演",
    "actors": "主演",
    "genre": "类型",
    "length": "片长或集数",
}


def _explain(
    status: Status,
    ranked: Sequence[Candidate],
    codes: Sequence[str],
    score: float | None,
    lead: float | None,
    posters: Collection[int],
) -> str:
    if status is Status.UNDECIDED or not ranked:
        return "；".join(SENTENCES[code] for code in codes) + "。"
    shown = ranked[0]
    comparison = shown.comparison
    head = f"《{shown.subject.title}》" + (f"（{shown.subject.year}）" if shown.subject.year else "")
    head += f"得分 {shown.score:.1f}"
    if lead is not None:
        head += f"，领先 {lead:.1f}"
    if shown.subject.douban_id in posters:
        head += "，海报相同"
    if status is Status.CONFIRMED:
        agreed = [word for item, word in _ITEM_NAMES.items() if comparison.agrees(item)]
        name = "片名一致" if comparison.title.near_exact else "片名相近"
        return f"{head}；{name}，{'、'.join(agreed)}相符。"
    own = {finding.code: finding.text for finding in comparison.findings}
    return "；".join([head, *(own.get(code) or SENTENCES[code] for code in codes)]) + "。"
