"""What a site's operator does, through Dagster as people do: closes breakers, fills gaps, reads reports, clears up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.douban.chain.decision_lane.open_orders import open_orders
from douban_pipeline.douban.chain.due.shard_work import ShardWork
from douban_pipeline.douban.jobs import CHAIN, shard_range_tags
from douban_pipeline.douban.partitions import SHARDS_PER_RUN
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.upkeep.gates import not_closed
from douban_pipeline_tests.harness.rig.dagster_stack import LOCATION
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.ground import DOUBAN, Ground

OPERATOR = "小赵"
TAGS = {"soak": "operator"}
SPARED = timedelta(seconds=90)
"""A breaker that lets a probe pass within this time is left to itself."""
_AGAIN_SECONDS = 30.0
_BACKFILL_EVERY, _SWEEP_EVERY = 75.0, 300.0
_REPORTS_AT, _CLEAR_AT = 0.5, 0.7
"""Shares of the soak after which reports are renewed and history is cleared."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Work that waits: shards with due videos or decisions, tasks that could be done now, runs under way.

    `all_runs` counts all that there were: while it grows, something moves.
    """

    shards: int
    tasks: int
    runs: int
    all_runs: int = 0

    def __str__(self) -> str:
        return f"{self.shards} shards and {self.tasks} tasks wait, {self.runs} runs under way"

    @property
    def nothing(self) -> bool:
        """Whether all is done."""
        return not (self.shards or self.tasks or self.runs)


class Operator:
    """Somebody who looks after the pipeline; `step` is called every few seconds, by one thread."""

    def __init__(self, services: Services, ground: Ground) -> None:
        self._services, self._ground = services, ground
        seconds = ground.scale.minutes * 60
        self._next_at = {
            "backfill": _BACKFILL_EVERY / 2,
            "sweep": _SWEEP_EVERY / 2,
            "reports": seconds * _REPORTS_AT,
            "clear": seconds * _CLEAR_AT,
        }
        self._closing: dict[str, float] = {}
        self._first_shard = 0
        self.refused: Counter[str] = Counter()

    def step(self, passed: float, unhealthy: Collection[str]) -> None:
        """Do what is to be done ``passed`` seconds after the beginning, while the sources ``unhealthy`` are."""
        self.close_gates(passed, unhealthy)
        if self._is_time("backfill", passed, _BACKFILL_EVERY):
            self.visit_shards(self._first_shard, "backfill")
            self._first_shard = (self._first_shard + SHARDS_PER_RUN) % SHARDS
        if self._is_time("sweep", passed, _SWEEP_EVERY):
            self.sweep()
        if self._is_time("reports", passed, None):
            self.launch("nightly_reports")
        if self._is_time("clear", passed, None):
            self.launch("prune_history", {"ops": {"prune": {"config": {"dry_run": False}}}})
            self.launch("prune_archive", {"ops": {"delete_answers": {"config": {"dry_run": False}}}})

    def _is_time(self, duty: str, passed: float, every: float | None) -> bool:
        if passed < self._next_at.get(duty, float("inf")):
            return False
        self._next_at[duty] = float("inf") if every is None else passed + every
        return True

    def close_gates(self, passed: float, unhealthy: Collection[str]) -> None:
        """Close the breakers that would stay open long though their source is well again.

        A breaker stays open for half an hour or more after a wall; nobody would wait for that in a soak.
        """
        try:
            gates = not_closed(self._services.gate.status())
        except (GateUnreadable, SQLAlchemyError):
            return
        now = self._services.clock.now()
        for gate in gates:
            long = gate.open_until is not None and gate.open_until > now + SPARED
            if not long or gate.source in unhealthy or passed < self._closing.get(gate.source, 0.0):
                continue
            self._closing[gate.source] = passed + _AGAIN_SECONDS
            settings_given = {
                "reviewer": OPERATOR,
                "note": "对方已恢复",
                "dry_run": False,
                "source": gate.source,
                "action": "close",
            }
            self.launch("set_gate", {"ops": {"change_gate": {"config": settings_given}}})

    def visit_shards(self, first: int, pipeline: str) -> None:
        """Launch the chain for eight shards from ``first`` on, in the queue of the tag ``pipeline``."""
        self.launch(CHAIN, tags={"pipeline": pipeline, **shard_range_tags(first, first + SHARDS_PER_RUN - 1)})

    def sweep(self) -> str | None:
        """Launch a sweep over the whole library."""
        return self.launch("sweep_library", {"ops": {"sweep": {"config": {"dry_run": False, "part": 0, "parts": 1}}}})

    def take_in(self) -> None:
        """Launch what takes in all that changed."""
        self.sweep()
        self.launch("take_in_changes", {"ops": {"take_in": {"config": {"dry_run": False}}}})

    def visit_all(self) -> None:
        """Launch the chain for all shards."""
        for first in range(0, SHARDS, SHARDS_PER_RUN):
            self.visit_shards(first, "sync")

    def look_back(self) -> None:
        """Take in all again, for what was locked may have been unlocked since; renew reports, visit some shards."""
        self.sweep()
        self.launch("nightly_reports")
        self.visit_shards(0, "sync")

    def launch(
        self, job: str, config: Mapping[str, Any] | None = None, tags: Mapping[str, str] | None = None
    ) -> str | None:
        """Launch a job as the UI does; return the run's id, None if that failed."""
        try:
            run_id = self._ground.stack.launch(job, config=config, tags={**TAGS, **(tags or {})}, location=LOCATION)
        except (RigError, httpx.HTTPError, ValueError):
            self.refused[job] += 1
            return None
        return run_id

    def waiting(self) -> Waiting:
        """Return what is to be done now."""
        services = self._services
        shards = ShardWork(services.engine, services.tables, services.settings, services.clock).overview()
        ordered = open_orders(services)
        task, now = services.tables.task, services.clock.now()
        pending = (task.c.status == TaskStatus.PENDING) & (task.c.run_after <= now)
        query = select(func.count()).select_from(task).where(pending | (task.c.status == TaskStatus.RUNNING))
        with reading(services.engine) as connection:
            tasks = connection.execute(query).scalar_one()
        runs = self._ground.runs_by_status(DOUBAN)
        return Waiting(len(shards) + ordered.decisions, tasks, self._ground.under_way(DOUBAN), sum(runs.values()))
