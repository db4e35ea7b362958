"""What a search would have named for generated videos, and what Douban said of it: cheap, and the same each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from douban_pipeline.demo.stand_ins.answers import douban_answer
from douban_pipeline.douban.match_inputs import glimpsed_facts, subject_facts
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.matching import Subject
from douban_pipeline_tests.harness.generated.works import known, subject_id_of, work_id_of, work_of

_CANDIDATES = (2, 3, 4, 5, 5, 5, 5, 5, 6, 8)
"""Candidates of a video: 4.8, as runs on real records left them."""

_FETCHED = (1, 1, 1, 1, 1, 2, 2, 2, 3, 3)
"""Those of them that Douban was asked about."""

_START = 2
"""First letters of a title that its neighbours in a search share."""

_NEAR = range(-3, 4)
"""Where works of one family stand, around each of them."""

Work = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subject that a search named: its work, whether Douban was asked about it, and what is known of it then."""

    work: Work
    fetched: bool
    subject: Subject

    @property
    def douban_id(self) -> int:
        """The subject's id."""
        return self.subject.douban_id


@dataclass(slots=True)
class Searches:
    """Names candidates for videos, from the works of all videos that are looked at together.

    A video's own work comes first, if Douban knows it, then its family, then works that begin alike.

    Attributes:
        seed: What the library was generated from.
        vod_ids: The videos.
    """

    seed: int
    vod_ids: Sequence[int]
    _works: dict[int, Work] = field(default_factory=dict)
    _alike: dict[str, list[int]] = field(default_factory=dict)
    _fetched: dict[int, Subject] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look at the works of all videos."""
        for work_id in dict.fromkeys(work_id_of(vod_id, self.seed) for vod_id in self.vod_ids):
            if known(work_id, self.seed):
                self._alike.setdefault(self._work(work_id)["title"][:_START], []).append(work_id)

    def candidates(self, vod_id: int) -> list[Candidate]:
        """Return the candidates of a video, those asked about first."""
        work_id, dice = work_id_of(vod_id, self.seed), crc32(str(vod_id).encode())
        most, asked = _CANDIDATES[dice % 10], _FETCHED[dice // 10 % 10]
        found = list(dict.fromkeys([*self._family(work_id), *self._others(work_id, most, dice)]))[:most]
        return [self._candidate(each, fetched=place < asked) for place, each in enumerate(found)]

    def _family(self, work_id: int) -> list[int]:
        start = self._work(work_id)["title"][:_START]
        near = [work_id + step for step in sorted(_NEAR, key=abs) if work_id + step > 0]
        return [each for each in near if known(each, self.seed) and self._work(each)["title"][:_START] == start]

    def _others(self, work_id: int, most: int, dice: int) -> list[int]:
        """Return works that begin alike, and any others where these are too few."""
        alike = self._alike.get(self._work(work_id)["title"][:_START], [])
        if len(alike) <= most:
            any_work = work_id_of(self.vod_ids[dice % len(self.vod_ids)], self.seed)
            steps = range(7, 7 + 3 * most, 2)
            return [*alike, *(each for step in steps if known(each := any_work + step, self.seed))]
        at = dice % len(alike)
        return [*alike[at : at + most], *alike[: max(0, at + most - len(alike))]]

    def _work(self, work_id: int) -> Work:
        if work_id not in self._works:
            self._works[work_id] = work_of(work_id, self.seed)
        return self._works[work_id]

    def _candidate(self, work_id: int, *, fetched: bool) -> Candidate:
        work = self._work(work_id)
        if not fetched:
            return Candidate(work, False, glimpsed_facts(hit_of(work)))
        if work_id not in self._fetched:
            douban_id = subject_id_of(work_id)
            record = parse_subject(douban_answer(work).body, douban_id)
            self._fetched[work_id] = subject_facts(record, hit_of(work).kind)
        return Candidate(work, True, self._fetched[work_id])


def hit_of(work: Work) -> Hit:
    """Return what Douban's own suggestions say of a work."""
    original = work.get("original_title") or ""
    return Hit(
        int(work["id"]),
        title=work["title"],
        url=f"https://movie.douban.com/subject/{work['id']}/",
        original_title="" if original == work["title"] else original,
        year=work.get("year"),
        kind="tv" if work.get("kind") == "tv" else "",
        episodes=work.get("episodes"),
    )
