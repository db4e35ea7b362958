"""A clock that stands, so that what is due does not depend on when a library was made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.services import Services
from douban_pipeline_tests.harness.benchmarks.measuring import World


@dataclass(frozen=True, slots=True)
class StandingClock:
    """It is always the same moment; nobody waits."""

    moment: datetime

    def now(self) -> datetime:
        """Return the moment."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Return at once."""


def when_due(world: World, share: float) -> Services:
    """Return the services at the moment when ``share`` (0 to 1) of the library is due."""
    services, video = world.services, world.services.tables.video
    due = video.c.douban_next_sync_at
    query = select(due).where(due.is_not(None)).order_by(due).offset(max(0, int(share * world.size) - 1)).limit(1)
    with reading(services.engine) as connection:
        moment = connection.execute(query).scalar_one_or_none()
        moment = moment or connection.execute(select(due).order_by(due.desc()).limit(1)).scalar_one()
    return replace(services, clock=StandingClock(moment))
