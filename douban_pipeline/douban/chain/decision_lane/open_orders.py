"""Open work that people requested, counted by index for the sensor of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import and_, not_, or_, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.decisions.leases import decision_leases, due_decision
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import SERVED_RUN
from douban_pipeline.douban.store.states import TaskStage
from douban_pipeline.douban.store.task_queue import task_leases
from douban_pipeline.douban.store.tasks import OPEN, ORDERED_INTRO_PRIORITY, ORDERED_PRIORITY

MOST_COUNTED = 100
"""How far open orders are counted; beyond that it is enough to know that there are more."""

SERVICE_TIME = timedelta(seconds=15)
"""How long decisions of the served sheet are left to the service, which applies them itself within seconds."""


@dataclass(frozen=True, slots=True)
class OpenOrders:
    """Decisions, requested syncs and intros that can be done now and that no run holds, up to `MOST_COUNTED`."""

    decisions: int
    syncs: int
    intros: int


def open_orders(services: Services) -> OpenOrders:
    """Return the requested work that can be done now.

    Left out is what waits for a source, belongs to a live run, or was recorded by the service a moment ago.
    """
    now = services.clock.now()
    decision, task = services.tables.decision, services.tables.task
    left_alone = or_(
        decision.c.created_at <= now - SERVICE_TIME, not_(decision.c.run_id.startswith(SERVED_RUN, autoescape=True))
    )
    pending = and_(due_decision(services.tables, now), left_alone)
    free = select(decision.c.decision_id).where(pending, decision_leases(services.tables).free(now)).limit(MOST_COUNTED)
    held = select(decision.c.lease_owner).where(pending, decision.c.lease_until > now)
    ordered = or_(
        and_(task.c.stage == TaskStage.SYNC, task.c.priority >= ORDERED_PRIORITY),
        and_(task.c.stage == TaskStage.INTRO, task.c.priority >= ORDERED_INTRO_PRIORITY),
    )
    tasks = (
        select(task.c.stage)
        .where(
            task.c.status.in_(OPEN),
            task.c.run_after <= now,
            task_leases(services.tables).free(now),
            ordered,
        )
        .limit(MOST_COUNTED)
    )
    with reading(services.engine) as connection:
        decisions = len(connection.execute(free).all())
        # What a dead run held need not wait until its lease has run out.
        decisions += sum(map(is_dead, connection.execute(held).scalars()))
        stages = list(connection.execute(tasks).scalars())
    intros = stages.count(TaskStage.INTRO) if services.settings.ai_intros else 0
    return OpenOrders(decisions, stages.count(TaskStage.SYNC), intros)
