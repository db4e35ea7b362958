"""Ranks the candidates of a video, best first.

Most candidates of a search have another name altogether. Their order among themselves is found out when somebody asks
for them: a verdict depends on it only where there is no other candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from douban_pipeline.matching import kinds
from douban_pipeline.matching.codes import Code
from douban_pipeline.matching.conflicts import KIND_REJECTED_BELOW
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.fields import compare_regions
from douban_pipeline.matching.profiles import PLAN, Profile
from douban_pipeline.matching.scoring import Comparison, Item, compare
from douban_pipeline.matching.similarity import NumberMatch


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject with its comparison and rank.

    Attributes:
        subject: The subject.
        comparison: Its comparison with the video.
        rank: 1 is the best; rejected ones come after the others, unless they are near and no other is.
        score: Score in the profile.
        profile: Profile that decides.
        near: Whether it is rejected, but would be worth a review without its conflict.
    """

    subject: Subject
    comparison: Comparison
    rank: int
    score: float
    profile: Profile
    near: bool = False

    @property
    def items(self) -> tuple[Item, ...]:
        """Items of the score with the profile's points; computed on each access, since few are displayed."""
        return self.profile.items(self.comparison)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form of the candidate."""
        return {
            "rank": self.rank,
            "douban_id": self.subject.douban_id,
            "title": self.subject.title,
            "year": self.subject.year,
            "score": self.score,
            "items": [item.to_json() for item in self.items],
            **self.comparison.to_json(),
        }


_WORTH_A_LOOK, _NEAR, _OTHER, _REJECTED = range(4)


class _Placed(NamedTuple):
    """A compared candidate: what it is sorted by, its score, whether it is near."""

    order: tuple[float, ...]
    comparison: Comparison
    score: float
    near: bool


class Ranking(Sequence[Candidate]):
    """The candidates of a video, best first.

    Attributes:
        comparisons: All of them, in no particular order.
        eligible: Those without a reject, best first.
    """

    def __init__(self, comparisons: Sequence[Comparison], profile: Profile) -> None:
        self.comparisons = comparisons
        self._profile = profile
        self._rejected: list[Comparison] = []
        head = []
        for comparison in comparisons:
            if is_certainly_out(comparison):
                self._rejected.append(comparison)
                continue
            placed = _placed(comparison, profile)
            if placed.order[0] == _REJECTED:
                self._rejected.append(comparison)
            else:
                head.append(placed)
        self._ranked: list[Candidate] = []
        self._append(head)
        self.eligible = [each for each in self._ranked if not each.near]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranking) and self._all() == other._all()

    def __len__(self) -> int:
        return len(self.comparisons)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, place: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(place, int) and 0 <= place < len(self._ranked):
            return self._ranked[place]
        return self._all()[place]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._all())

    def _all(self) -> list[Candidate]:
        """Return all candidates; those that are rejected are ranked now, if they are not yet."""
        rejected, self._rejected = self._rejected, []
        if rejected:
            self._append([_placed(each, self._profile) for each in rejected])
        return self._ranked

    def _append(self, compared: Iterable[_Placed]) -> None:
        compared = sorted(compared, key=lambda each: each.order)
        for place, (_, comparison, score, near) in enumerate(compared, start=len(self._ranked) + 1):
            self._ranked.append(Candidate(comparison.subject, comparison, place, score, self._profile, near))


def rank(video: Video, subjects: Iterable[Subject], profile: Profile = PLAN) -> Ranking:
    """Compare a video with every subject; return candidates, best first. A subject given twice counts once.

    Rejected candidates follow the others; near ones come before all that need no review. Equal scores are ordered by
    whether they are rated, number of ratings, conflicts, names, then id, so that the order never depends on the search
    engine's.
    """
    unique = {subject.douban_id: subject for subject in reversed(list(subjects))}
    return Ranking([compare(video, each, profile.weights, profile.thresholds) for each in unique.values()], profile)


def _placed(comparison: Comparison, profile: Profile) -> _Placed:
    score, near = profile.score(comparison), is_near(comparison, profile)
    tier = _WORTH_A_LOOK if score >= profile.thresholds.review else _OTHER
    if comparison.rejects:
        tier = _NEAR if near else _REJECTED
    order = (
        tier,
        -score,
        -profile.points(comparison),
        -comparison.points[-1],
        -(comparison.subject.votes or 0),
        len(comparison.conflicts),
        -comparison.title.names,
        -comparison.title.similarity,
        comparison.subject.douban_id,
    )
    return _Placed(order, comparison, score, near)


def is_certainly_out(comparison: Comparison) -> bool:
    """Return whether a candidate is certain to be rejected and not to be near, as a few fields tell: see `is_near`."""
    if not comparison.other_name:
        return False
    video, subject, year = comparison.video, comparison.subject, comparison.year
    if year is not None and year.gap >= comparison.thresholds.year_gap:
        return True
    casts = min(len(video.actors), len(subject.actors)) >= SAME_CAST
    if not casts and not (comparison.exact_year and video.directors and subject.directors):
        return True
    if compare_regions(video.regions, subject.regions).agree is False:
        return True
    return comparison.title.similarity < KIND_REJECTED_BELOW and kinds.agree(video, subject) is False


_ITEM_OF: Mapping[str, str] = {
    Code.YEAR_GAP: "year",
    Code.REGION_CONFLICT: "region",
    Code.DIRECTOR_CONFLICT: "director",
}
"""The item that a reject concerns; names and kinds have none, or none that could be unknown."""


def is_near(comparison: Comparison, profile: Profile) -> bool:
    """Return whether a rejected candidate is near: worth a review except for one conflict.

    Its score must reach the review threshold when the field of its most serious conflict counts as unknown, and people
    must agree or, under the same name, the year: many works share a name, and region or genre do not distinguish them.
    A candidate with another title is near if people support it, because names are translated in many ways. A candidate
    of another season or part is never near.
    """
    if not comparison.rejects or comparison.title.numbers is NumberMatch.CONFLICT:
        return False
    if Code.TITLE_TOO_FAR in comparison.rejects:
        return len(comparison.rejects) == 1 and people_speak(comparison)
    if not (comparison.people_agree or (comparison.title.near_exact and comparison.agrees("year"))):
        return False
    items = {_ITEM_OF[code] for code in comparison.rejects if code in _ITEM_OF}
    scores = [profile.score(comparison), *(profile.score_without(comparison, item) for item in items)]
    return max(scores) >= profile.thresholds.review


SAME_CAST = 3
"""Common actors that make two works with different names worth a review."""


def people_speak(comparison: Comparison) -> bool:
    """Return whether director and the work's own year agree, or three actors: enough for a review under any name."""
    if comparison.agrees("director") and comparison.exact_year:
        return True
    return comparison.fields.cast.matched >= SAME_CAST
