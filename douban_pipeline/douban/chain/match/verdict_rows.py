"""A verdict as it is stored, with everything that it was reached by, and as a run's report shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from douban_pipeline.douban.chain.match.descriptions import DescribedVideo
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.chain.match.rechecks import reasons_of
from douban_pipeline.douban.evidence.added_facts import stored_facts
from douban_pipeline.douban.evidence.known_names import KnownName, facts_of_names
from douban_pipeline.douban.store.states import ReviewStatus, TaskType, VerdictState
from douban_pipeline.douban.store.tasks import Task
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline.matching import RULE_VERSION, Candidate, Verdict

_KEPT_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """A stored verdict, as the run's report shows it; subject, score and points are the best candidate's."""

    vod_id: int
    shard: int
    title: str
    status: str
    douban_id: int
    score: float | None
    lead: float | None
    explanation: str
    points: str = ""
    candidates: int = 0
    recheck: bool = False
    with_evidence: bool = False


def summary_of(
    task: Task, described: DescribedVideo, verdict: Verdict, status: str, explanation: str
) -> VerdictSummary:
    """Return what the run's report shows of a verdict."""
    best = verdict.best
    return VerdictSummary(
        task.vod_id,
        task.shard,
        described.video.title,
        status,
        best.subject.douban_id if best else 0,
        verdict.score,
        verdict.lead,
        explanation,
        " ".join(f"{item.name} {item.points:g}" for item in best.items) if best else "",
        len(verdict.candidates),
        recheck=task.task_type is TaskType.RECHECK,
        with_evidence=described.added is not None,
    )


def verdict_row(
    task: Task,
    row: RowMapping,
    found: FoundCandidates,
    described: DescribedVideo,
    verdict: Verdict,
    status: str,
    explanation: str,
    *,
    names: Sequence[KnownName] = (),
    run_id: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the row of a verdict: PENDING where it is to be written to the CMS, APPLIED where nothing follows.

    Args:
        task: The task that it closes.
        row: The CMS's row that was judged.
        found: The candidates.
        described: The video, as it was judged.
        verdict: What the rules say.
        status: What becomes of it, given the link and the choices that are there.
        explanation: Why, for reviewers.
        names: The titles that people confirmed for its candidates.
        run_id: The Dagster run.
        now: The time (UTC).
    """
    best = verdict.best
    writes = status == ReviewStatus.CONFIRMED and task.task_type is not TaskType.RECHECK
    return {
        "vod_id": task.vod_id,
        "shard": task.shard,
        "task_id": task.task_id,
        "verdict": status,
        "douban_id": verdict.douban_id or 0,
        "score": verdict.score,
        "lead": verdict.lead,
        "complete": found.complete,
        "source_healthy": found.source_healthy,
        "rejects": list(best.comparison.rejects) if best else [],
        "reasons": reasons_of(verdict, explanation),
        "explanation": explanation[:500],
        "facts": {**stored_facts(described.video, described.added, found.posters), **facts_of_names(names)},
        "snapshots": [*found.snapshots, *(each.snapshot_id for each in found.subjects)],
        "fingerprint": fingerprint(row),
        "profile": verdict.profile,
        "strata": list(verdict.strata),
        "crowded": found.crowded,
        "rule_version": RULE_VERSION,
        "state": VerdictState.PENDING if writes else VerdictState.APPLIED,
        "run_id": run_id,
        "created_at": now,
    }


def shown_items(candidate: Candidate, described: DescribedVideo) -> list[dict[str, Any]]:
    """Return the items of a candidate's score for people: what another source added is marked."""
    return [{**item.to_json(), "note": described.shown(item.note)} for item in candidate.items]


def shown_conflicts(candidate: Candidate, described: DescribedVideo) -> dict[str, str]:
    """Return the objections to a candidate for people, by code."""
    return {finding.code: described.shown(finding.text) for finding in candidate.comparison.findings}


def candidate_rows(
    verdict_id: int, vod_id: int, found: FoundCandidates, described: DescribedVideo, verdict: Verdict, now: datetime
) -> list[dict[str, Any]]:
    """Return the rows of a verdict's best candidates, in their order."""
    snapshot_of: Mapping[int, int] = {each.douban_id: each.snapshot_id for each in found.subjects}
    return [
        {
            "verdict_id": verdict_id,
            "vod_id": vod_id,
            "rank": candidate.rank,
            "douban_id": candidate.subject.douban_id,
            "title": candidate.subject.title[:255],
            "year": candidate.subject.year,
            "score": candidate.score,
            "points": shown_items(candidate, described),
            "rejects": list(candidate.comparison.rejects),
            "conflicts": shown_conflicts(candidate, described),
            "facts": asdict(candidate.subject),
            "fetched": candidate.subject.fetched,
            "snapshot_id": snapshot_of.get(candidate.subject.douban_id),
            "created_at": now,
        }
        for candidate in verdict.candidates[:_KEPT_CANDIDATES]
    ]
