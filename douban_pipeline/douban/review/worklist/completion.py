"""Fetches candidates that are known from the search only, so that all cards show the same facts.

This has the lowest priority: a limited number of requests per queue, a fifth of that while due videos wait, and none if
the source has no allowance left. Stored verdicts do not change: the points and conflicts computed here are only shown.
The answers go into the archive, so that the next queue and the next verdict do not request them again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.chain.match.descriptions import DescribedVideo
from douban_pipeline.douban.chain.match.verdict_rows import shown_conflicts, shown_items
from douban_pipeline.douban.match_inputs import profile_of, subject_facts
from douban_pipeline.douban.pace import SUBJECT_CACHE_AGE
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.douban.review.worklist.queue import QueueEntry, ReviewQueue
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SubjectRecord
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing
from douban_pipeline.matching import Video
from douban_pipeline.matching.profiles import Profile
from douban_pipeline.matching.ranking import rank

_BUSY_SHARE = 5
_MOST_TIME = timedelta(minutes=5)


@dataclass(slots=True)
class CompletedCandidates:
    """Numbers of candidates that were not fetched before: requested now, found in the archive, or left."""

    requests: int = 0
    known: int = 0
    left: int = 0


class _Asking:
    """Fetches subjects while there is allowance, each subject once."""

    def __init__(self, services: Services, most: int) -> None:
        self.services = services
        self.done = CompletedCandidates()
        self.until = services.clock.now() + _MOST_TIME
        waiting = ShardWork(services.engine, services.tables, services.settings, services.clock).overview()
        self.most = most // _BUSY_SHARE if waiting else most
        self.found: dict[int, SubjectRecord | None] = {}

    def record(self, douban_id: int) -> SubjectRecord | None:
        """Return a subject; None if it does not exist or cannot be fetched now."""
        if douban_id not in self.found:
            self.found[douban_id] = self._ask(douban_id)
        return self.found[douban_id]

    def _ask(self, douban_id: int) -> SubjectRecord | None:
        douban = self.services.douban
        try:
            known = douban.archived(douban_id, max_age=SUBJECT_CACHE_AGE)
        except SubjectMissing:
            return None
        if known is not None:
            self.done.known += 1
            return known.record
        if self.done.requests >= self.most or self.services.clock.now() >= self.until:
            self.done.left += 1
            return None
        self.done.requests += 1
        try:
            return douban.subject(douban_id, max_age=None).record
        except (SubjectMissing, SubjectMismatch):
            return None
        except SourceError:
            # The gate is closed, the quota is used up or the source is down: no more requests. No verdict needs them.
            self.most = 0
            self.done.left += 1
            return None


def completed(services: Services, queue: ReviewQueue, *, most: int) -> tuple[ReviewQueue, CompletedCandidates]:
    """Return the queue with Douban's facts of candidates that were known from the search only, and the counts.

    Args:
        services: Sources, archive and settings.
        queue: The queue as it was judged.
        most: Most requests.
    """
    asking = _Asking(services, most)
    groups = tuple(tuple(_completed(services, entry, asking) for entry in group) for group in queue.groups)
    return replace(queue, groups=groups), asking.done


def _completed(services: Services, entry: QueueEntry, asking: _Asking) -> QueueEntry:
    if all(candidate.fetched for candidate in entry.candidates):
        return entry
    described, profile = DescribedVideo(Video(**entry.facts)), profile_of(services.settings)

    def whole(candidate: ReviewCandidate) -> ReviewCandidate:
        record = None if candidate.fetched else asking.record(candidate.douban_id)
        return candidate if record is None else with_details(candidate, described, record, profile)

    return replace(entry, candidates=tuple(map(whole, entry.candidates)))


def with_details(
    candidate: ReviewCandidate, described: DescribedVideo, record: SubjectRecord, profile: Profile
) -> ReviewCandidate:
    """Return a candidate as Douban's answer describes it, compared with the video."""
    found = rank(described.video, [subject_facts(record)], profile)[0]
    return replace(
        candidate,
        title=found.subject.title,
        year=found.subject.year,
        score=found.score,
        items=tuple(shown_items(found, described)),
        conflicts=shown_conflicts(found, described),
        rejects=tuple(found.comparison.rejects),
        facts=asdict(found.subject),
        fetched=True,
    )
