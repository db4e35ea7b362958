"""Which links are judged again by themselves, and putting them into the queue. Nothing is asked or judged here.

A confirmed link that nobody locked is judged again when the rules that confirmed it are not in force any more, when its
subject's facts changed since, when a decision whose title helped to confirm it does not hold any more, and, a small
share a day, when that was long ago. Where the archive still has what the
verdict was reached from, it is judged from that and costs no request; by age, it is searched for anew.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, func, select

from douban_pipeline.cms.maccms import recycled_condition
from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.douban.chain.due.due_videos import decision_pending, in_scope
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.chain.match.stored_candidates import StoredCandidates, stored_candidates
from douban_pipeline.douban.evidence.known_names import standing, stored_names
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskStage, TaskType
from douban_pipeline.douban.store.tasks import OPEN, RECHECK_PRIORITY, RECHECK_REASON, SEARCHED, NewTask
from douban_pipeline.douban.store.videos import cms_locked
from douban_pipeline.matching import RULE_VERSION

RECHECKS_PER_DAY = 5000
"""Maximum number of links judged again per day, including those without requests, so that new rules spread out."""

RECHECK_PERCENT = 0.2
"""Percentage of confirmed, unlocked links that are searched for and judged again each day: all in about 500 days."""

LEAST_AGE = timedelta(days=30)
"""A link that was judged later than this is not judged again for its age."""

_BATCH = 150
"""Verdicts read at once, see `quality.stored_verdicts`."""


class RecheckReason(enum.StrEnum):
    """Why a link is judged again; stored with the task. In the order of what comes first."""

    FACTS = "facts"
    NAMES = "names"
    RULES = "rules"
    AGE = "age"


@dataclass(frozen=True, slots=True)
class DueRecheck:
    """A link that is to be judged again.

    Attributes:
        vod_id: The video.
        douban_id: Its subject.
        reason: Why.
        judged_at: When it was judged last (UTC); None if it never was.
        found: What it is judged from; None to search for it.
    """

    vod_id: int
    douban_id: int
    reason: RecheckReason
    judged_at: datetime | None
    found: FoundCandidates | None = field(default=None, repr=False)


@dataclass(slots=True)
class RecheckReport:
    """What was looked at and queued.

    Attributes:
        links: Confirmed, unlocked links that were looked at.
        queued: The rechecks that were queued.
        left: Those that the allowances leave for another day, by reason.
        today: Automatic rechecks queued since the site's midnight, these among them.
    """

    links: int = 0
    queued: list[DueRecheck] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    today: int = 0

    def count(self, reason: RecheckReason) -> int:
        """Return how many were queued for a reason."""
        return sum(item.reason is reason for item in self.queued)

    @property
    def searched(self) -> int:
        """How many of them have to be searched for."""
        return sum(item.found is None for item in self.queued)


def queue_due_rechecks(
    services: Services, shards: Collection[int], *, parts: int, run_id: str, rule_version: str = RULE_VERSION
) -> RecheckReport:
    """Queue the links of ``shards`` that are to be judged again; return what was queued and what was left.

    Safe to repeat: what was judged again is not due any more, and no video gets a second open task.

    Args:
        services: Database and settings.
        shards: Where.
        parts: The share of the day's allowances for this call: one of so many.
        run_id: The Dagster run.
        rule_version: The rules in force.
    """
    report = RecheckReport()
    with reading(services.engine) as connection:
        report.today, searched_today = _queued_today(services, connection, shards)
        due = _due(services, connection, shards, rule_version, report)
    settings, now = services.settings, services.clock.now()
    day = day_of(now, settings.zone).date.toordinal()
    room = min(-(-RECHECKS_PER_DAY // parts), RECHECKS_PER_DAY - report.today)
    # So that a few links, too, get their share over the days.
    share = report.links * RECHECK_PERCENT / 100
    searches = int(share * (day + 1)) - int(share * day) - searched_today
    order = list(RecheckReason)
    for item in sorted(due, key=lambda item: (order.index(item.reason), _since(item), item.vod_id)):
        needs_search = item.found is None
        if room <= 0 or (needs_search and searches <= 0):
            # By age everything is due some day: only the others are waiting.
            report.left[item.reason] += item.reason is not RecheckReason.AGE
            continue
        room -= 1
        searches -= needs_search
        report.queued.append(item)
    tasks = [_task_for(item) for item in report.queued]
    queue = services.queue(run_id)
    report.today += run_transaction(services.engine, lambda connection: queue.enqueue(connection, tasks, run_id=run_id))
    return report


def _since(item: DueRecheck) -> float:
    return item.judged_at.timestamp() if item.judged_at else 0.0


def _task_for(item: DueRecheck) -> NewTask:
    found = item.found
    payload = {**(found.to_payload() if found else {}), RECHECK_REASON: str(item.reason), SEARCHED: found is None}
    stage = TaskStage.SCORE if found else TaskStage.SEARCH
    return NewTask(item.vod_id, TaskType.RECHECK, stage, RECHECK_PRIORITY, payload)


def _queued_today(services: Services, connection: Connection, shards: Collection[int]) -> tuple[int, int]:
    """Return how many automatic rechecks the site's day has seen, and how many of ``shards`` that are searched for."""
    task, zone = services.tables.task, services.settings.zone
    since = midnight(day_of(services.clock.now(), zone).date, zone)
    query = select(task.c.shard, task.c.payload).where(
        task.c.created_at >= since, task.c.task_type == TaskType.RECHECK, task.c.priority == RECHECK_PRIORITY
    )
    today = connection.execute(query).tuples().all()
    searched = sum(bool(payload and payload.get(SEARCHED)) for shard, payload in today if shard in set(shards))
    return len(today), searched


def _due(
    services: Services, connection: Connection, shards: Collection[int], rule_version: str, report: RecheckReport
) -> list[DueRecheck]:
    video, task = services.tables.video, services.tables.task
    prefix = services.settings.table_prefix
    queued = select(task.c.vod_id).where(
        task.c.shard.in_(shards), task.c.task_type == TaskType.RECHECK, task.c.status.in_(OPEN)
    )
    query = (
        select(video.c.vod_id, video.c.vod_douban_id)
        .where(
            video.c.shard.in_(shards),
            video.c.douban_review_status == ReviewStatus.CONFIRMED,
            video.c.vod_douban_id > 0,
            video.c.douban_id_locked.is_(False),
            video.c.douban_next_sync_at.is_not(None),
            *in_scope(services.tables, services.settings),
            ~decision_pending(services.tables),
            ~recycled_condition(services.cms, video.c.vod_id),
            *([~cms_locked(services.tables, prefix)] if services.settings.respect_vod_lock else []),
        )
        .order_by(video.c.vod_id)
    )
    open_already = set(connection.execute(queued).scalars())
    confirmed = connection.execute(query).tuples().all()
    report.links = len(confirmed)
    links = {vod_id: douban_id for vod_id, douban_id in confirmed if vod_id not in open_already}
    due: list[DueRecheck] = []
    for start in range(0, len(links), _BATCH):
        some = dict(list(links.items())[start : start + _BATCH])
        verdicts = _newest_verdicts(services, connection, some)
        stored = stored_candidates(services, connection, list(verdicts.values()), some)
        names = {verdict["verdict_id"]: stored_names(verdict["facts"]) for verdict in verdicts.values()}
        holds = standing(connection, services.tables, {name for each in names.values() for name in each})
        for vod_id, douban_id in some.items():
            verdict = verdicts.get(vod_id)
            known = stored.get(verdict["verdict_id"]) if verdict is not None else None
            lost = verdict is not None and any(
                name.douban_id == douban_id and name.decision_id not in holds for name in names[verdict["verdict_id"]]
            )
            item = _recheck(services, vod_id, douban_id, verdict, known, rule_version, name_lost=lost)
            due += [item] if item is not None else []
    return due


def _newest_verdicts(services: Services, connection: Connection, vod_ids: Collection[int]) -> Mapping[int, RowMapping]:
    verdict = services.tables.verdict
    newest = select(func.max(verdict.c.verdict_id)).where(verdict.c.vod_id.in_(vod_ids)).group_by(verdict.c.vod_id)
    # In two steps: MariaDB runs a subquery of this form once for each row.
    verdict_ids = list(connection.execute(newest).scalars())
    wanted = "verdict_id vod_id rule_version profile created_at snapshots crowded complete source_healthy facts"
    query = select(*(verdict.c[name] for name in wanted.split())).where(verdict.c.verdict_id.in_(verdict_ids))
    return {row["vod_id"]: row for row in connection.execute(query).mappings()} if verdict_ids else {}


def _recheck(
    services: Services,
    vod_id: int,
    douban_id: int,
    verdict: RowMapping | None,
    known: StoredCandidates | None,
    rule_version: str,
    *,
    name_lost: bool,
) -> DueRecheck | None:
    """Return why and from what a link is judged again, None if it is not."""
    if verdict is None or known is None:
        return DueRecheck(vod_id, douban_id, RecheckReason.AGE, None)
    judged_at, found = verdict["created_at"], known.found
    if known.changed:
        return DueRecheck(vod_id, douban_id, RecheckReason.FACTS, judged_at, found)
    if name_lost:
        return DueRecheck(vod_id, douban_id, RecheckReason.NAMES, judged_at, found)
    if (verdict["rule_version"], verdict["profile"]) != (rule_version, services.settings.match_profile):
        return DueRecheck(vod_id, douban_id, RecheckReason.RULES, judged_at, found)
    if judged_at <= services.clock.now() - LEAST_AGE:
        return DueRecheck(vod_id, douban_id, RecheckReason.AGE, judged_at)
    return None
