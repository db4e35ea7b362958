"""Judging a video against its candidates and Douban's answers about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from douban_pipeline.douban.chain.linking.found import FoundCandidates
from douban_pipeline.douban.match_inputs import glimpsed_facts, subject_facts
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.matching import Verdict, Video, judge
from douban_pipeline.matching.profiles import Profile


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else a verdict depends on, beside the video and its candidates.

    Attributes:
        reverted: Douban ids whose link to this video was reverted before.
        linked: Titles of the other videos that are linked to a subject, by its id.
        chosen: The Douban id that a person chose for the video, None if nobody did.
        braked: Strata in which nothing is confirmed for now.
    """

    reverted: frozenset[int] = frozenset()
    linked: Mapping[int, Sequence[str]] = field(default_factory=dict)
    chosen: int | None = None
    braked: frozenset[str] = frozenset()


NO_CIRCUMSTANCES = Circumstances()
"""Nothing is reverted, linked, chosen or braked."""


def judge_found(
    video: Video,
    found: FoundCandidates,
    records: Mapping[int, SubjectRecord],
    profile: Profile,
    circumstances: Circumstances = NO_CIRCUMSTANCES,
) -> Verdict:
    """Judge ``video`` against its candidates.

    Args:
        video: The local video.
        found: Its candidates.
        records: Douban's answers about those that were asked about, by id.
        profile: The profile in force.
        circumstances: What else is known.
    """
    subjects = [subject_facts(records[each.douban_id], each.kind) for each in found.subjects]
    subjects += [glimpsed_facts(hit) for hit in found.hits]
    return judge(
        video,
        subjects,
        profile=profile,
        complete=found.complete,
        source_healthy=found.source_healthy,
        crowded=found.crowded,
        reverted=circumstances.reverted,
        linked=circumstances.linked,
        chosen=circumstances.chosen,
        braked=circumstances.braked,
        posters=found.posters,
    )
