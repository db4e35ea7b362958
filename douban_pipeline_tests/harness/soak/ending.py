"""The end of a soak: what waits is done by a pipeline that nothing ails any more, then everything comes to rest."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.douban.partitions import SHARDS_PER_RUN
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.soak.duties import Operator, Waiting

DRAIN_SECONDS = 3600.0
"""How long the drain may take. What is deferred until an open breaker's time is not waited for: it is in its place."""
PATIENCE_SECONDS = 300.0
"""How long the drain waits for a change of what waits: a slow machine is waited for, a standstill is not."""
_REST_SECONDS = 90.0
_LOOK_SECONDS = 3.0
_SAY_SECONDS = 30.0


def drain(
    operator: Operator,
    say: Callable[[str], None],
    hurried: Callable[[], bool],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Let the pipeline finish what waits; return whether it did.

    First everything that changed is taken in, then all shards are visited until nothing is due; last all is taken in
    again, the reports are renewed and eight shards are visited once more, for a run settles what dead ones left half
    written. It goes on as long as something moves: it is left when nothing did for `PATIENCE_SECONDS`, or after
    `DRAIN_SECONDS`.

    Args:
        operator: Who launches the runs.
        say: Told what is waited for.
        hurried: Asked now and then whether to leave it.
        clock: Monotonic time in seconds.
        sleep: Waits so many seconds.
    """
    began = reported_at = moved_at = clock()
    stages = [_take_in, _visit_all, _look_back]
    done = [False] * len(stages)
    seen: Waiting | None = None
    while not hurried():
        now = clock()
        if now - moved_at > PATIENCE_SECONDS or now - began > DRAIN_SECONDS:
            say(f"the drain is left after {now - began:,.0f} s: {seen}")
            return False
        operator.close_gates(now, ())
        try:
            waiting = operator.waiting()
        except SQLAlchemyError:
            sleep(_LOOK_SECONDS)
            continue
        if waiting != seen:
            seen, moved_at = waiting, now
        if now - reported_at >= _SAY_SECONDS:
            reported_at = now
            say(f"draining: {waiting}")
        if waiting.runs == 0:
            if all(done) and waiting.nothing:
                return True
            stage = done.index(False) if False in done else None
            if stage is None or (stage == 2 and not waiting.nothing):
                stage = 1  # more came due: once more round the shards
            stages[stage](operator)
            done[stage] = True
        sleep(_LOOK_SECONDS)
    return False


def _take_in(operator: Operator) -> None:
    operator.sweep()
    operator.launch("take_in_changes", {"ops": {"take_in": {"config": {"dry_run": False}}}})


def _visit_all(operator: Operator) -> None:
    for first in range(0, SHARDS, SHARDS_PER_RUN):
        operator.visit_shards(first, "sync")


def _look_back(operator: Operator) -> None:
    operator.sweep()  # once more: what was locked at the first time may have been unlocked since
    operator.launch("nightly_reports")
    operator.visit_shards(0, "sync")


def come_to_rest(operator: Operator) -> bool:
    """Wait until the runs that are under way have ended; return whether they did."""
    return operator.rest(_REST_SECONDS)
