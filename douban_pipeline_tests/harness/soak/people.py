"""Reviewers and operators in a soak: they decide, lock, unlock and take back through the project's own code.

A share of their acts takes the way that people take, a job launched with its config; the others call what the jobs
call. Either way nothing is waited for: whether a decision was applied is the auditor's question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any
from uuid import uuid4

import httpx
from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.decisions.withdrawal import revert_and_withdraw
from douban_pipeline.douban.review.records.record import DecisionError, record
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.undo.revert_request import (
    RevertError,
    RevertRequest,
    selection_of,
)
from douban_pipeline.douban.writes.revert import TooManyError
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.journal import Journal
from douban_pipeline_tests.harness.soak.site import Source

Launch = Callable[..., str]
"""Launches a job: its name and ``config``; returns the run's id."""

REVIEWERS = ("小王", "小李", "小陈")
THROUGH_JOBS = 0.3
_LOOKED_AT = 50
_MOST = 500

_ON_CONFIRMED = (
    *(DecisionAction.clear_id, DecisionAction.lock_id, DecisionAction.sync_now, DecisionAction.redo_intro),
    *(DecisionAction.lock_intro, DecisionAction.rematch, DecisionAction.replace_and_lock, DecisionAction.set_id),
)
_ON_OPEN = (
    *(DecisionAction.confirm_top1, DecisionAction.choose, DecisionAction.set_id, DecisionAction.replace_and_lock),
    *(DecisionAction.ignore, DecisionAction.rematch, DecisionAction.lock_id),
)
_ON_IGNORED = (DecisionAction.rematch, DecisionAction.set_id)
_NAMING = (DecisionAction.set_id, DecisionAction.replace_and_lock)


class People:
    """Who works with the pipeline."""

    def __init__(self, services: Services, journal: Journal, *, rng: Random, source: Source, launch: Launch) -> None:
        self.services, self.journal, self.rng, self.source, self.launch = services, journal, rng, source, launch
        # One name for all direct calls: what one of them left half done, the next one settles.
        self.run_id = f"people-{uuid4().hex[:12]}"

    def decide(self, *, by_job: bool = False) -> int:
        """Record decisions about one to four videos; return how many rows were asked for."""
        chosen: dict[int, Decision] = {}
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            decision = self._choose()
            if decision is not None:
                chosen.setdefault(decision.vod_id, decision)
        if not chosen:
            return 0
        reviewer, rows = self.rng.choice(REVIEWERS), list(chosen.values())
        if by_job or self._through_a_job():
            row = [{**_row_of(decision), "action": decision.action.name} for decision in rows]
            config = {"reviewer": reviewer, "note": "巡检", "dry_run": False, "decisions": row}
            return self._launch(reviewer, "record_decisions", "store_decisions", config)
        try:
            recording = record(self.services, rows, reviewer=reviewer, note="巡检", run_id=self.run_id, dry_run=False)
        except DecisionError as error:
            self.journal.tell(reviewer, "record_decisions", note=f"refused: {error}")
            return 0
        for item in recording.items:
            what = f"{item.action} {item.douban_id or ''}".strip()
            self.journal.tell(reviewer, what, item.vod_id, f"{item.status}: {item.reason}")
        return len(recording.items)

    def revert_writes(self) -> int:
        """Take writes back: a change, a video's last step, a batch, what a decision wrote, or an earlier revert."""
        filters = self._revert_filters()
        if not filters:
            return 0
        operator = self.rng.choice(REVIEWERS)
        if self._through_a_job():
            return self._launch_revert(operator, filters)
        request = RevertRequest(operator, "巡检撤销", max_changes=_MOST, **filters)
        change_log = self.services.change_log(self.run_id)
        try:
            selection = selection_of(self.services, request)
            reverted = revert_and_withdraw(
                self.services,
                change_log,
                selection,
                operator=operator,
                reason=request.reason,
                dry_run=False,
                most=request.max_changes,
            )
        except (RevertError, TooManyError) as error:
            self.journal.tell(operator, "revert_changes", note=f"refused: {error}")
            return 0
        said = f"{len(reverted.changes)} changes, batch {change_log.batch_id}"
        self.journal.tell(operator, f"revert_changes {filters}", note=said)
        return len(reverted.changes)

    def revert_run(self, run_id: str) -> int:
        """Revert all that a run wrote, by the job; return whether it was launched. It says nothing of the links."""
        return self._launch_revert(self.rng.choice(REVIEWERS), {"run_id": run_id})

    def _launch_revert(self, operator: str, filters: Mapping[str, Any]) -> int:
        blank = {"change_ids": [], "vod_ids": [], "batch_id": "", "run_id": "", "decision_ids": []}
        said = {"reviewer": operator, "reason": "巡检撤销", "dry_run": False, "max_changes": _MOST}
        return self._launch(operator, "revert_changes", "revert_writes", {**blank, **filters, **said})

    def settle(self) -> None:
        """Settle what a direct call of ours left half done when the database went away."""
        self.services.change_log(self.run_id).reconcile()

    def _through_a_job(self) -> bool:
        return self.rng.random() < THROUGH_JOBS

    def _launch(self, who: str, job: str, op: str, config: Mapping[str, Any]) -> int:
        try:
            run_id = self.launch(job, config={"ops": {op: {"config": dict(config)}}})
        except (RigError, httpx.HTTPError) as error:
            # Nobody can launch while the webserver or the code server is down.
            self.journal.tell(who, job, note=f"not launched: {type(error).__name__}: {str(error)[:200]}")
            return 0
        self.journal.tell(who, job, note=f"run {run_id}")
        return 1

    def _choose(self) -> Decision | None:
        state = self._somebody()
        if state is None:
            return None
        vod_id, status = state["vod_id"], state["douban_review_status"]
        actions: tuple[DecisionAction, ...] = _ON_OPEN
        if status == ReviewStatus.IGNORED:
            actions = _ON_IGNORED
        elif status == ReviewStatus.CONFIRMED:
            actions = _ON_CONFIRMED
        # Locks are taken off now and then, or everything ends up locked.
        if state["douban_id_locked"] and self.rng.random() < 0.5:
            actions = (DecisionAction.unlock_id, DecisionAction.replace_and_lock)
        elif state["intro_locked"] and self.rng.random() < 0.4:
            actions = (DecisionAction.unlock_intro, DecisionAction.redo_intro, DecisionAction.lock_intro)
        action = self.rng.choice(actions)
        named = action in _NAMING
        subject = self.source.subject(vod_id) if named else 0
        if named and not subject:
            action, subject = DecisionAction.rematch, 0
        return Decision(
            vod_id,
            action,
            douban_id=subject,
            rank=self.rng.randint(1, 3) if action is DecisionAction.choose else 0,
            days=self.rng.choice((1, 30)) if action is DecisionAction.ignore else 0,
            lock=self.rng.random() < 0.2,
            accept_conflicts=self.rng.random() < 0.3,
        )

    def _somebody(self) -> Mapping[Any, Any] | None:
        video = self.services.tables.video
        wanted = (
            video.c.douban_review_status == ReviewStatus.REVIEW,
            video.c.douban_review_status == ReviewStatus.CONFIRMED,
            video.c.douban_review_status == ReviewStatus.NOT_FOUND,
            video.c.douban_review_status == ReviewStatus.IGNORED,
            video.c.douban_id_locked.is_(True),
            video.c.intro_locked.is_(True),
        )
        [condition] = self.rng.choices(wanted, (6, 4, 2, 1, 2, 3))
        query = select(video).where(condition, video.c.douban_last_sync_at.is_not(None))
        query = query.order_by(video.c.douban_last_sync_at.desc()).limit(_LOOKED_AT)
        with reading(self.services.engine) as connection:
            found = connection.execute(query).mappings().all()
        return self.rng.choice(found) if found else None

    def _revert_filters(self) -> dict[str, Any]:
        log, decision = self.services.tables.log, self.services.tables.decision
        newest = select(log).where(log.c.state == "applied").order_by(log.c.change_id.desc()).limit(_LOOKED_AT)
        decided = select(decision.c.decision_id).order_by(decision.c.decision_id.desc()).limit(_LOOKED_AT)
        with reading(self.services.engine) as connection:
            changes = connection.execute(newest).mappings().all()
            decisions = connection.execute(decided).scalars().all()
        if not changes:
            return {}
        change = self.rng.choice(changes)
        ways: list[dict[str, Any]] = [
            {"change_ids": [change["change_id"]]},
            {"vod_ids": [change["vod_id"]]},
            {"batch_id": change["batch_id"]},
        ]
        if decisions:
            ways.append({"decision_ids": [self.rng.choice(decisions)]})
        return self.rng.choice(ways)


def _row_of(decision: Decision) -> dict[str, Any]:
    names = ("vod_id", "douban_id", "rank", "days", "lock", "accept_conflicts", "verdict_id")
    return {name: getattr(decision, name) for name in names}
