"""Videos with verdicts and best candidates, put into a library in a few statements however many they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline_tests.harness.fixtures.library import Library, video


@dataclass(frozen=True)
class Case:
    """A video under test, good enough to be confirmed in bulk unless something is changed.

    Attributes:
        cms: Columns of its CMS row.
        state: Columns of our state row.
        verdict: Columns of its newest verdict; None for none.
        candidate: Columns of the best candidate; None for none.
    """

    vod_id: int
    cms: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] | None = field(default_factory=dict)
    candidate: Mapping[str, Any] | None = field(default_factory=dict)

    @property
    def subject(self) -> int:
        """The subject that the best candidate is by default."""
        return 90_000_000 + self.vod_id


def shelved(library: Library, cases: Iterable[Case]) -> Library:
    """Put the cases in place of everything that ``library`` holds, and return it as it is then."""
    cases = list(cases)
    fresh = library.renewed([video(case.vod_id, **case.cms) for case in cases], **library.options)
    verdict, candidate = fresh.tables.verdict, fresh.tables.candidate
    with fresh.engine.begin() as connection:
        rows = fresh.cms.rows(connection, [case.vod_id for case in cases])
        alike: dict[tuple[tuple[str, Any], ...], list[int]] = {}
        for case in cases:
            state = {"douban_review_status": "REVIEW", **case.state}
            alike.setdefault(tuple(sorted(state.items())), []).append(case.vod_id)
        table = fresh.tables.video
        for state, vod_ids in alike.items():
            connection.execute(sa.update(table).where(table.c.vod_id.in_(vod_ids)).values(**dict(state)))
        judged = [case for case in cases if case.verdict is not None]
        if judged:
            connection.execute(
                sa.insert(verdict), [_verdict(fresh, case, fingerprint(rows[case.vod_id])) for case in judged]
            )
        newest = dict(
            connection.execute(
                sa.select(verdict.c.vod_id, sa.func.max(verdict.c.verdict_id)).group_by(verdict.c.vod_id)
            ).all()
        )
        named = [case for case in judged if case.candidate is not None]
        if named:
            connection.execute(sa.insert(candidate), [_candidate(fresh, case, newest[case.vod_id]) for case in named])
    return fresh


def _verdict(library: Library, case: Case, judged: str) -> dict[str, Any]:
    return {
        "vod_id": case.vod_id,
        "shard": shard_of(case.vod_id),
        "task_id": 1,
        "verdict": "REVIEW",
        "douban_id": 0,
        "score": 92.0,
        "lead": 20.0,
        "complete": True,
        "source_healthy": True,
        "rejects": [],
        "reasons": ["TWIN_SUBJECTS"],
        "facts": {},
        "snapshots": [],
        "fingerprint": judged,
        "rule_version": "shelf",
        "state": "applied",
        "run_id": "shelf",
        "created_at": library.clock.now(),
        **(case.verdict or {}),
    }


def _candidate(library: Library, case: Case, verdict_id: int) -> dict[str, Any]:
    return {
        "verdict_id": verdict_id,
        "vod_id": case.vod_id,
        "rank": 1,
        "douban_id": case.subject,
        "title": f"条目{case.vod_id}",
        "year": 2024,
        "score": (case.verdict or {}).get("score", 92.0),
        "points": [],
        "rejects": [],
        "conflicts": {},
        "facts": {},
        "fetched": True,
        "snapshot_id": None,
        "created_at": library.clock.now(),
        **(case.candidate or {}),
    }


def decision_of(library: Library, vod_id: int, action: DecisionAction, douban_id: int, state: str) -> dict[str, Any]:
    """Return a decision about a video as a row of its table."""
    key = Decision(vod_id, action, douban_id).identity
    return {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "action": action,
        "douban_id": douban_id,
        "reviewer": "小李",
        "state": state,
        "pending_key": key if state == "pending" else None,
        "run_id": "r",
        "created_at": library.clock.now(),
    }
