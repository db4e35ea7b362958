"""Judges the library again in several processes, each some videos at a time, and merges their results."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess

from douban_pipeline.douban.quality.library_replay import Replay, replay
from douban_pipeline.douban.quality.stored_verdicts import RescoreSelection, StoredVerdicts
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.matching.profiles import Profile

MOST_PROCESSES = 4
"""Most processes: with more of them the database is the bottleneck."""

WORTH_A_PROCESS = 5_000
"""Number of videos per process: starting a process takes as long as judging a thousand videos."""

_PIECES = 8
"""Pieces of the library per process, so that all processes finish at about the same time."""


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
