"""Judging a video against its candidates and Douban's answers about them, with posters if it would wait for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.evidence.added_facts import Added, judge_with_evidence
from douban_pipeline.douban.evidence.known_names import KnownName, judge_with_names
from douban_pipeline.douban.match_inputs import glimpsed_facts, profile_of, subject_facts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SubjectRecord, parse_subject
from douban_pipeline.matching import Status, Subject, Verdict, Video, judge
from douban_pipeline.matching.profiles import Profile


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else a verdict depends on, beside the video and its candidates.

    Attributes:
        reverted: Douban ids whose link to this video was reverted before.
        linked: Titles of the other videos that are linked to a subject, by its id.
        chosen: The Douban id that a person chose for the video, None if nobody did.
        braked: Strata in which nothing is confirmed for now.
        opened: Strata that a person opened.
        names: Titles like the video's that people confirmed for some of its candidates.
    """

    reverted: frozenset[int] = frozenset()
    linked: Mapping[int, Sequence[str]] = field(default_factory=dict)
    chosen: int | None = None
    braked: frozenset[str] = frozenset()
    opened: frozenset[str] = frozenset()
    names: tuple[KnownName, ...] = ()


NO_CIRCUMSTANCES = Circumstances()
"""Nothing is reverted, linked, chosen, braked, opened or named."""


@dataclass(frozen=True, slots=True)
class Case:
    """All that a verdict depends on, beside the rules: as it was found now, or as it was stored with a verdict.

    Attributes:
        video: The video, with the added facts.
        subjects: Its candidates, those with Douban's answers first.
        complete: See `FoundCandidates`, as for the next three.
        circumstances: What else is known.
        added: The facts that another source added to the video's own.
    """

    video: Video
    subjects: Sequence[Subject]
    complete: bool = True
    source_healthy: bool = True
    crowded: bool = False
    posters: tuple[int, ...] = ()
    circumstances: Circumstances = NO_CIRCUMSTANCES
    added: Added | None = None

    def judge(self, profile: Profile) -> Verdict:
        """Return the verdict by the rules of ``profile``."""
        return judge_with_names(self.subjects, self.circumstances.names, partial(self._judge, profile))

    def _judge(self, profile: Profile, subjects: Sequence[Subject]) -> Verdict:
        judged = partial(
            judge,
            subjects=subjects,
            profile=profile,
            complete=self.complete,
            source_healthy=self.source_healthy,
            crowded=self.crowded,
            reverted=self.circumstances.reverted,
            linked=self.circumstances.linked,
            chosen=self.circumstances.chosen,
            braked=self.circumstances.braked,
            opened=self.circumstances.opened,
            posters=self.posters,
        )
        return judge_with_evidence(self.video, self.added, judged, profile)


def judge_found(
    video: Video,
    found: FoundCandidates,
    records: Mapping[int, SubjectRecord],
    profile: Profile,
    circumstances: Circumstances = NO_CIRCUMSTANCES,
    added: Added | None = None,
) -> Verdict:
    """Judge ``video`` against its candidates.

    Args:
        video: The local video, with the added facts.
        found: Its candidates.
        records: Douban's answers about those that were asked about, by id.
        profile: The profile in force.
        circumstances: What else is known.
        added: The facts that another source added; None for none.
    """
    subjects = [subject_facts(records[each.douban_id], each.kind) for each in found.subjects]
    subjects += [glimpsed_facts(hit) for hit in found.hits]
    case = Case(
        video,
        subjects,
        complete=found.complete,
        source_healthy=found.source_healthy,
        crowded=found.crowded,
        posters=found.posters,
        circumstances=circumstances,
        added=added,
    )
    return case.judge(profile)


MOST_COMPARED = 3
"""Candidates whose poster is looked at: the best one, and those that may be mistaken for it."""


def with_posters(services: Services, row: Mapping[Any, Any], video: Video, found: FoundCandidates) -> FoundCandidates:
    """Return the candidates with those whose poster is the video's, where a person would have to look.

    What cannot be fetched, or is no picture, leaves the candidates as they are.

    Args:
        services: The site, the archive and who compares posters, if anybody.
        row: The video's row in the CMS.
        video: The same as the matcher sees it.
        found: Its candidates.
    """
    posters = services.posters
    if posters is None or not row["vod_pic"] or not found.subjects:
        return found
    with reading(services.engine) as connection:
        bodies = services.archive.bodies(connection, {each.snapshot_id for each in found.subjects})
    if any(each.snapshot_id not in bodies for each in found.subjects):
        return found
    records = {each.douban_id: parse_subject(bodies[each.snapshot_id], each.douban_id) for each in found.subjects}
    verdict = judge_found(video, found, records, profile_of(services.settings))
    if verdict.status is not Status.REVIEW:
        return found
    best = [each.subject.douban_id for each in verdict.candidates if each.subject.fetched][:MOST_COMPARED]
    same = posters.same(video.vod_id, row["vod_pic"], [(subject, records[subject].picture) for subject in best])
    return replace(found, posters=same)
