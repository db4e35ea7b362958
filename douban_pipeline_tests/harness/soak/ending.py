"""The end of a soak: what waits is done by a pipeline that nothing ails any more, then everything comes to rest."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.douban.partitions import SHARDS_PER_RUN
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.soak.duties import Operator

DRAIN_SECONDS = 600.0
"""How long the drain may take. What is deferred until an open breaker's time is not waited for: it is in its place."""
_REST_SECONDS = 90.0
_LOOK_SECONDS = 3.0
_SAY_SECONDS = 30.0


def drain(
    operator: Operator, say: Callable[[str], None], hurried: Callable[[], bool], *, seconds: float = DRAIN_SECONDS
) -> bool:
    """Let the pipeline finish what waits; return whether it did within ``seconds``.

    First everything that changed is taken in, then all shards are visited until nothing is due; last all is taken in
    again, the reports are renewed and eight shards are visited once more, for a run settles what dead ones left half
    written.

    Args:
        operator: Who launches the runs.
        say: Told what is waited for.
        hurried: Asked now and then whether to leave it.
        seconds: How long it may take.
    """
    began = reported_at = time.monotonic()
    until = began + seconds
    stages = [_take_in, _visit_all, _look_back]
    done = [False] * len(stages)
    while time.monotonic() < until and not hurried():
        operator.close_gates(time.monotonic(), ())
        try:
            waiting = operator.waiting()
        except SQLAlchemyError:
            time.sleep(_LOOK_SECONDS)
            continue
        if time.monotonic() - reported_at >= _SAY_SECONDS:
            reported_at = time.monotonic()
            say(f"draining: {waiting.shards} shards and {waiting.tasks} tasks wait, {waiting.runs} runs under way")
        if waiting.runs == 0:
            if all(done) and waiting.nothing:
                return True
            stage = done.index(False) if False in done else None
            if stage is None or (stage == 2 and not waiting.nothing):
                stage = 1  # more came due: once more round the shards
            stages[stage](operator)
            done[stage] = True
        time.sleep(_LOOK_SECONDS)
    return False


def _take_in(operator: Operator) -> None:
    operator.sweep()
    operator.launch("take_in_changes")


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
