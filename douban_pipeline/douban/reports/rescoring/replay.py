"""Judging the library again under other rules, and counting what would come out differently. Changes nothing."""

from __future__ import annotations

import gc
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from douban_pipeline.core.garbage_collection import without_garbage_collection
from douban_pipeline.douban.chain.linking.rechecks import respect_choice, respect_current_id
from douban_pipeline.douban.evidence.adding import respect_site
from douban_pipeline.douban.reports.rescoring.stored import LostVerdict, StoredVerdict
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.matching import judge
from douban_pipeline.matching.profiles import Profile

PROGRESS_EVERY = 10_000


@dataclass(frozen=True, slots=True)
class RejudgedVerdict:
    """A stored verdict beside what the rules in question say.

    Attributes:
        stored: As it was.
        status: As it would be.
        douban_id: The subject it would be about, confirmed or not; 0 without candidates.
        explanation: Why, for people.
        codes: Reasons against confirming.
        strata: Groups it belongs to.
    """

    stored: StoredVerdict
    status: str
    douban_id: int
    explanation: str
    codes: tuple[str, ...]
    strata: tuple[str, ...]

    @property
    def other_subject(self) -> bool:
        """Whether another subject would come first."""
        return self.douban_id != self.stored.douban_id

    @property
    def changed(self) -> bool:
        """Whether people would notice: another status, or another subject linked or shown first."""
        subject_shown = ReviewStatus.NOT_FOUND not in (self.status, self.stored.status)
        return self.status != self.stored.status or (subject_shown and self.other_subject)


@dataclass(slots=True)
class StratumCount:
    """Verdicts of one stratum: how many, confirmed before and after, and changed."""

    videos: int = 0
    before: int = 0
    after: int = 0
    changed: int = 0

    def add(self, other: StratumCount) -> None:
        """Add the counts of other videos."""
        self.videos += other.videos
        self.before += other.before
        self.after += other.after
        self.changed += other.changed


@dataclass(slots=True)
class AgainstPeople:
    """Confirmed verdicts on videos whose subject a person chose: the same subject, or another."""

    right_before: int = 0
    wrong_before: int = 0
    right_after: int = 0
    wrong_after: int = 0

    def add(self, other: AgainstPeople) -> None:
        """Add the counts of other videos."""
        self.right_before += other.right_before
        self.wrong_before += other.wrong_before
        self.right_after += other.right_after
        self.wrong_after += other.wrong_after


@dataclass(slots=True)
class Replay:
    """What came of judging again.

    Attributes:
        moves: Verdicts by status before and after, and whether another subject comes first.
        lost: Videos that could not be judged again, by reason.
        lost_videos: The first few of them.
        codes_before: Reasons of the stored verdicts.
        codes_after: Reasons of the new ones.
        strata: Counts by stratum.
        rule_versions: Rule versions of the stored verdicts.
        profiles: Their profiles.
        people: The confirmed ones against what people chose.
        examples: Some of each kind of change.
        reconsidered: Changed videos that were not linked.
        seconds_reading: Time that reading and parsing took, of all processes together.
        seconds_judging: Time that judging took, likewise.
    """

    moves: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    lost_videos: list[LostVerdict] = field(default_factory=list)
    codes_before: Counter[str] = field(default_factory=Counter)
    codes_after: Counter[str] = field(default_factory=Counter)
    strata: dict[str, StratumCount] = field(default_factory=dict)
    rule_versions: Counter[str] = field(default_factory=Counter)
    profiles: Counter[str] = field(default_factory=Counter)
    people: AgainstPeople = field(default_factory=AgainstPeople)
    examples: dict[tuple[str, str], list[RejudgedVerdict]] = field(default_factory=dict)
    reconsidered: list[int] = field(default_factory=list)
    seconds_reading: float = 0.0
    seconds_judging: float = 0.0

    def add(self, other: Replay, examples: int) -> None:
        """Take in what came of judging further videos, all of larger ids."""
        counts = ("moves", "lost", "codes_before", "codes_after", "rule_versions", "profiles")
        for name in counts:
            getattr(self, name).update(getattr(other, name))
        self.lost_videos = [*self.lost_videos, *other.lost_videos][:examples]
        for name, stratum in other.strata.items():
            self.strata.setdefault(name, StratumCount()).add(stratum)
        self.people.add(other.people)
        for move, kept in other.examples.items():
            of_move = self.examples.setdefault(move, [])
            of_move += kept
            _keep(of_move, examples)
        self.reconsidered += other.reconsidered
        self.seconds_reading += other.seconds_reading
        self.seconds_judging += other.seconds_judging

    def sort(self) -> None:
        """Put the examples into the order of their videos."""
        for kept in self.examples.values():
            kept.sort(key=lambda judged: judged.stored.vod_id)

    @property
    def replayed(self) -> int:
        """Videos that were judged again."""
        return sum(self.moves.values())

    @property
    def videos(self) -> int:
        """Videos that were looked at."""
        return self.replayed + sum(self.lost.values())

    @property
    def changed(self) -> int:
        """Videos whose verdict would be another."""
        return sum(count for (before, after, other), count in self.moves.items() if before != after or other)

    def confirmed(self, *, before: bool) -> int:
        """Return how many were, or would be, confirmed."""
        return sum(count for move, count in self.moves.items() if move[0 if before else 1] == ReviewStatus.CONFIRMED)

    @property
    def microseconds_per_video(self) -> float:
        """Time a video took, in millionths of a second."""
        return 1e6 * (self.seconds_reading + self.seconds_judging) / self.videos if self.videos else 0.0


def judge_again(stored: StoredVerdict, profile: Profile) -> RejudgedVerdict:
    """Judge one stored verdict under ``profile``, everything else being as it was then."""
    verdict = judge(
        stored.video,
        stored.subjects,
        profile=profile,
        complete=stored.complete,
        source_healthy=stored.source_healthy,
        crowded=stored.crowded,
        reverted=stored.reverted,
        linked=stored.linked,
        chosen=stored.chosen,
        braked=stored.braked,
        posters=stored.posters,
    )
    verdict = respect_site(verdict, stored.video, stored.added, profile)
    status, explanation = respect_current_id(verdict, stored.current_id)
    status, explanation = respect_choice(status, explanation, stored.chosen, stored.current_id)
    douban_id = verdict.douban_id or (verdict.best.subject.douban_id if verdict.best else 0)
    return RejudgedVerdict(stored, str(status), douban_id, explanation, verdict.codes, verdict.strata)


def replay(
    batches: Iterable[Iterable[StoredVerdict | LostVerdict]],
    profile: Profile,
    *,
    chosen: Mapping[int, int],
    examples: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Replay:
    """Judge stored verdicts again.

    Args:
        batches: What `StoredVerdicts.batches` yields.
        profile: The rules in question.
        chosen: Subjects that people chose, by video.
        examples: How many of each kind of change are kept, spread over the library.
        progress: Called with the number done now and then.
    """
    found = Replay()
    reported = 0
    moment = time.perf_counter()
    with without_garbage_collection():  # a fifth of the time
        for batch in batches:
            read = time.perf_counter()
            found.seconds_reading += read - moment
            for item in batch:
                if isinstance(item, LostVerdict):
                    found.lost[item.why] += 1
                    if len(found.lost_videos) < examples:
                        found.lost_videos.append(item)
                else:
                    _count(found, judge_again(item, profile), chosen.get(item.vod_id, 0), examples)
            moment = time.perf_counter()
            found.seconds_judging += moment - read
            if found.videos // PROGRESS_EVERY > reported:
                reported = found.videos // PROGRESS_EVERY
                progress(found.videos)
                gc.collect(1)
    found.seconds_reading += time.perf_counter() - moment
    found.sort()
    return found


def _count(found: Replay, judged: RejudgedVerdict, chosen: int, examples: int) -> None:
    stored = judged.stored
    was, now = stored.status == ReviewStatus.CONFIRMED, judged.status == ReviewStatus.CONFIRMED
    changed = judged.changed
    found.moves[stored.status, judged.status, changed and judged.other_subject] += 1
    found.rule_versions[stored.rule_version] += 1
    found.profiles[stored.profile] += 1
    found.codes_before.update(stored.codes)
    found.codes_after.update(judged.codes)
    for name in judged.strata:
        stratum = found.strata.setdefault(name, StratumCount())
        stratum.videos += 1
        stratum.before += was
        stratum.after += now
        stratum.changed += changed
    if chosen:
        people = found.people
        people.right_before += was and stored.douban_id == chosen
        people.wrong_before += was and stored.douban_id != chosen
        people.right_after += now and judged.douban_id == chosen
        people.wrong_after += now and judged.douban_id != chosen
    if not changed:
        return
    if not was:
        found.reconsidered.append(stored.vod_id)
    kept = found.examples.setdefault((stored.status, judged.status), [])
    kept.append(judged)
    _keep(kept, examples)


def _keep(kept: list[RejudgedVerdict], most: int) -> None:
    """Drop what is too much, whoever found it."""
    while len(kept) > most:
        # Ids run with time: the smallest check sums are spread over the whole library, and are the same ones each time.
        kept.remove(max(kept, key=_spread))


def _spread(judged: RejudgedVerdict) -> int:
    return zlib.crc32(str(judged.stored.vod_id).encode())
