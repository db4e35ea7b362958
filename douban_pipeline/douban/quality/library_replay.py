"""Judges the library again under other rules and counts the differences. Changes nothing.

Several processes judge pieces of it, each some videos at a time; their results are merged.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess

from douban_pipeline.core.garbage_collection import without_garbage_collection
from douban_pipeline.douban.chain.match.rechecks import respect_choice, respect_current_id
from douban_pipeline.douban.quality.stored_verdicts import (
    LostVerdict,
    RescoreSelection,
    StoredVerdict,
    StoredVerdicts,
)
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.matching.profiles import Profile

PROGRESS_EVERY = 10_000

MOST_PROCESSES = 4
"""Most processes: with more of them the database is the bottleneck."""

WORTH_A_PROCESS = 5_000
"""Number of videos per process: starting a process takes as long as judging a thousand videos."""

_PIECES = 8
"""Pieces of the library per process, so that all processes finish at about the same time."""


@dataclass(frozen=True, slots=True)
class RejudgedVerdict:
    """A stored verdict with its new verdict under the rules to try.

    Attributes:
        stored: The stored verdict.
        status: The new status.
        douban_id: The new first subject, confirmed or not; 0 without candidates.
        explanation: The reason, for people.
        codes: Reasons against confirming.
        strata: Its strata.
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
        """Whether the result differs for people: another status, or another subject linked or shown first."""
        subject_shown = ReviewStatus.NOT_FOUND not in (self.status, self.stored.status)
        return self.status != self.stored.status or (subject_shown and self.other_subject)


@dataclass(slots=True)
class Replay:
    """The result of judging again.

    Attributes:
        moves: Numbers of verdicts by status before and after, and whether another subject comes first.
        lost: Numbers of videos that could not be judged again, by reason.
        lost_videos: The first few of these videos.
        codes_before: Reasons of the stored verdicts.
        codes_after: Reasons of the new verdicts.
        strata: Verdicts by stratum.
        strata_before: Those of them that were confirmed.
        strata_after: Those of them that would be confirmed.
        strata_changed: Those of them that would change.
        rule_versions: Rule versions of the stored verdicts.
        profiles: Profiles of the stored verdicts.
        people_before: Confirmed verdicts on videos whose subject a person chose, by whether it is the same subject.
        people_after: The same of the new verdicts.
        examples: Some examples of each kind of change.
        reconsidered: Changed videos that were not linked.
        seconds_reading: Time for reading and parsing, in all processes together.
        seconds_judging: Time for judging, likewise.
    """

    moves: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    lost_videos: list[LostVerdict] = field(default_factory=list)
    codes_before: Counter[str] = field(default_factory=Counter)
    codes_after: Counter[str] = field(default_factory=Counter)
    strata: Counter[str] = field(default_factory=Counter)
    strata_before: Counter[str] = field(default_factory=Counter)
    strata_after: Counter[str] = field(default_factory=Counter)
    strata_changed: Counter[str] = field(default_factory=Counter)
    rule_versions: Counter[str] = field(default_factory=Counter)
    profiles: Counter[str] = field(default_factory=Counter)
    people_before: Counter[bool] = field(default_factory=Counter)
    people_after: Counter[bool] = field(default_factory=Counter)
    examples: dict[tuple[str, str], list[RejudgedVerdict]] = field(default_factory=dict)
    reconsidered: list[int] = field(default_factory=list)
    seconds_reading: float = 0.0
    seconds_judging: float = 0.0

    def add(self, other: Replay, examples: int) -> None:
        """Merge the result of further videos, all of larger ids."""
        for each in fields(self):
            if isinstance(counts := getattr(self, each.name), Counter):
                counts.update(getattr(other, each.name))
        self.lost_videos = [*self.lost_videos, *other.lost_videos][:examples]
        for move, kept in other.examples.items():
            of_move = self.examples.setdefault(move, [])
            of_move += kept
            _keep(of_move, examples)
        self.reconsidered += other.reconsidered
        self.seconds_reading += other.seconds_reading
        self.seconds_judging += other.seconds_judging

    def sort(self) -> None:
        """Sort the examples by video."""
        for kept in self.examples.values():
            kept.sort(key=lambda judged: judged.stored.vod_id)

    @property
    def replayed(self) -> int:
        """Number of videos that were judged again."""
        return sum(self.moves.values())

    @property
    def videos(self) -> int:
        """Number of videos that were processed."""
        return self.replayed + sum(self.lost.values())

    @property
    def changed(self) -> int:
        """Number of videos whose verdict would change."""
        return sum(count for (before, after, other), count in self.moves.items() if before != after or other)

    def confirmed(self, *, before: bool) -> int:
        """Return how many verdicts were, or would be, confirmed."""
        return sum(count for move, count in self.moves.items() if move[0 if before else 1] == ReviewStatus.CONFIRMED)

    @property
    def microseconds_per_video(self) -> float:
        """Time per video, in microseconds."""
        return 1e6 * (self.seconds_reading + self.seconds_judging) / self.videos if self.videos else 0.0


def judge_again(stored: StoredVerdict, profile: Profile) -> RejudgedVerdict:
    """Return one stored verdict judged again under ``profile``, with all other inputs as they were then."""
    verdict = stored.case.judge(profile)
    status, explanation = respect_current_id(verdict, stored.current_id)
    status, explanation = respect_choice(status, explanation, stored.case.circumstances.chosen, stored.current_id)
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
    """Judge stored verdicts again and return the differences.

    Args:
        batches: What `StoredVerdicts.batches` yields.
        profile: The rules to try.
        chosen: Subjects that people chose, by video.
        examples: Number of examples kept for each kind of change, spread over the library.
        progress: Called from time to time with the number of videos done.
    """
    found = Replay()
    reported = 0
    moment = time.perf_counter()
    with without_garbage_collection():  # saves a fifth of the time
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
    found.strata.update(judged.strata)
    for holds, counts in ((was, found.strata_before), (now, found.strata_after), (changed, found.strata_changed)):
        if holds:
            counts.update(judged.strata)
    if chosen and was:
        found.people_before[stored.douban_id == chosen] += 1
    if chosen and now:
        found.people_after[judged.douban_id == chosen] += 1
    if not changed:
        return
    if not was:
        found.reconsidered.append(stored.vod_id)
    kept = found.examples.setdefault((stored.status, judged.status), [])
    kept.append(judged)
    _keep(kept, examples)


def _keep(kept: list[RejudgedVerdict], most: int) -> None:
    """Drop examples beyond ``most``, independent of the order in which they were found."""
    while len(kept) > most:
        # Ids grow with time. The smallest checksums are spread over the whole library, and are the same in every run.
        kept.remove(max(kept, key=_spread))


def _spread(judged: RejudgedVerdict) -> int:
    return zlib.crc32(str(judged.stored.vod_id).encode())


# --- in several processes ---------------------------------------------------------------------------------------------


def replay_all(
    services: Services,
    selection: RescoreSelection,
    profile: Profile,
    *,
    chosen: Mapping[int, int],
    examples: int,
    progress: Callable[[int], None] = lambda done: None,
    processes: int | None = None,
) -> Replay:
    """Judge the selected verdicts again; the result is that of `replay` over all of them.

    Args:
        services: Database and settings.
        selection: Which videos.
        profile: The rules to try.
        chosen: Subjects that people chose, by video.
        examples: Number of examples kept for each kind of change.
        progress: Called from time to time with the number of videos done.
        processes: Number of processes; None to choose it by the number of processors and of videos.
    """
    stored = StoredVerdicts(services, selection)
    if processes is None:
        processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)), stored.count() // WORTH_A_PROCESS)
    if processes <= 1:
        return replay(stored.batches(), profile, chosen=chosen, examples=examples, progress=progress)
    pieces = stored.pieces(_PIECES * processes)
    found = Replay()
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _open, (services.settings,))
    try:
        work = [pool.submit(_replay, piece, profile, _of(chosen, piece), examples) for piece in pieces]
        _gather(found, work, examples, progress)
    finally:
        # After Ctrl-C no more pieces are started.
        pool.shutdown(wait=True, cancel_futures=True)
    return found


def _gather(found: Replay, work: list[Future[Replay]], examples: int, progress: Callable[[int], None]) -> None:
    """Merge the results in the order of the videos, so that the outcome is deterministic."""
    for future in work:
        found.add(future.result(), examples)
        progress(found.videos)
    found.sort()


def _of(chosen: Mapping[int, int], piece: RescoreSelection) -> dict[int, int]:
    last = piece.until if piece.until is not None else max(chosen, default=0)
    return {vod_id: subject for vod_id, subject in chosen.items() if piece.after < vod_id <= last}


_services: Services | None = None


def _open(settings: Settings) -> None:
    """Open the database in a new process, and make the process end with its parent."""
    global _services
    # For all its pieces, not for each: the collection after a piece takes as long as judging hundreds of videos.
    gc.disable()
    _services = open_services(settings)
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _replay(piece: RescoreSelection, profile: Profile, chosen: Mapping[int, int], examples: int) -> Replay:
    assert _services is not None
    return replay(StoredVerdicts(_services, piece).batches(), profile, chosen=chosen, examples=examples)
