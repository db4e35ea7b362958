"""Read sites: replicas in order of preference, failover, and a notice when all of them lag behind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from douban_pipeline.comments.cache.lists import RedisLists
from douban_pipeline.comments.store import shards
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")
LATE = "数据更新稍有延迟，请稍后刷新"
"""Notice shown when every replica lags behind."""
_LOOK_EVERY = timedelta(seconds=1)
_LEAVE_ALONE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Site:
    """One replica: a database, and its lists if it has any."""

    name: str
    engine: Engine
    lists: RedisLists | None = None


class SitesError(RuntimeError):
    """No replica could be read."""


class Sites:
    """The replicas, the preferred one first.

    Args:
        max_lag: Maximum lag of a replica before another one is read; None if there is only the primary database, which
            never lags.
    """

    def __init__(self, sites: Sequence[Site], clock: Clock, max_lag: timedelta | None) -> None:
        self._sites, self._clock, self._max_lag = tuple(sites), clock, max_lag
        self._behind: dict[str, tuple[datetime, timedelta]] = {}
        self._down: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def read(self, work: Callable[[Site], _Result]) -> tuple[_Result, str]:
        """Return the result of ``work`` at the first replica that answers within the maximum lag, and a notice or "".

        If all that answer lag too much, the one with the least lag is read, with a notice.

        Raises:
            SitesError: No replica answers.
        """
        late: list[tuple[timedelta, Site]] = []
        for site in self._order():
            try:
                lag = self._lag(site)
                if self._max_lag is not None and lag > self._max_lag:
                    late.append((lag, site))
                    continue
                return work(site), ""
            except (DBAPIError, PoolTimeoutError) as error:
                self._fail(site, error)
        for _, site in sorted(late, key=lambda item: item[0]):
            try:
                return work(site), LATE
            except (DBAPIError, PoolTimeoutError) as error:
                self._fail(site, error)
        raise SitesError("没有可读的站点")

    def _order(self) -> list[Site]:
        now = self._clock.now()
        with self._lock:
            down = {name for name, until in self._down.items() if until > now}
        return sorted(self._sites, key=lambda site: site.name in down)

    def _fail(self, site: Site, error: Exception) -> None:
        _LOG.warning("read site %s failed: %s", site.name, error)
        with self._lock:
            self._down[site.name] = self._clock.now() + _LEAVE_ALONE

    def _lag(self, site: Site) -> timedelta:
        """Return a replica's lag, the age of its newest heartbeat; queried at most once a second.

        Without a heartbeat the lag is unknown, which counts as the greatest: the replica may be empty.
        """
        if self._max_lag is None:
            return timedelta(0)
        now = self._clock.now()
        known = self._behind.get(site.name)
        if known is None or now - known[0] >= _LOOK_EVERY:
            with reading(site.engine) as connection:
                beat = shards.last_beat(connection)
            known = (now, now - beat if beat is not None else timedelta.max)
            self._behind[site.name] = known
        return known[1]

    def close(self) -> None:
        """Close the replicas' databases."""
        for site in self._sites:
            site.engine.dispose()

    def states(self) -> list[dict[str, object]]:
        """Return each replica's name, whether it failed recently, and its lag in seconds; None if unknown."""
        now = self._clock.now()
        return [
            {
                "name": site.name,
                "down": self._down.get(site.name, now) > now,
                "behind": _seconds(self._behind.get(site.name)),
            }
            for site in self._sites
        ]


def _seconds(known: tuple[datetime, timedelta] | None) -> float | None:
    return None if known is None or known[1] == timedelta.max else known[1].total_seconds()
