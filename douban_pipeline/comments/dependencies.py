"""Limits of the service's dependencies: time limit, concurrency limit, circuit breaker, and fallback.

If a strong dependency fails, the response fails; without a weak one the response lacks its part, and names it in
``degraded``. All of them are listed in `DEPENDENCIES`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_LOOKS = 20
"""Slices of a time limit; a slice that takes longer because the process is busy counts no more than another."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """One dependency of responses.

    Attributes:
        name: Its name in `DEPENDENCIES` and responses.
        strong: Whether a response is impossible without it.
        at_once: Maximum number of concurrent calls; further calls fail immediately.
        rest_seconds: Seconds for which the breaker stays open.
    """

    name: str
    strong: bool
    seconds: float
    at_once: int
    failures: int = 5
    rest_seconds: float = 5.0
    fallback: str = ""


DEPENDENCIES = {
    dependency.name: dependency
    for dependency in (
        Dependency("page", True, 3.0, 2000, fallback="another read site; then an error 503"),
        Dependency("write", True, 5.0, 2000, fallback="an error 503: nothing was accepted"),
        Dependency("identity", True, 2.0, 2000, fallback="an error 503 for who has a login; visitors read on"),
        Dependency("personal", False, 1.0, 32, fallback="the page without own votes and waiting comments"),
        Dependency("friends", False, 2.0, 8, fallback="the page without what friends liked"),
        Dependency("decorations", False, 2.0, 8, fallback="the page without badges"),
        Dependency("notices", False, 2.0, 16, fallback="an error 503, which pages pass over"),
        Dependency("explanation", False, 20.0, 2, fallback="the parts of the score as they were stored"),
        Dependency("films", False, 15.0, 8, fallback="pages without names and posters of the CMS"),
        Dependency("impressions", False, 1.0, 4, fallback="the report is dropped"),
    )
}
"""All dependencies of the service; the lists in Redis have a pause of their own, see `cache.lists`."""


class UnavailableError(RuntimeError):
    """A strong dependency did not answer in time."""


async def _in_time(work: Awaitable[_Result], seconds: float) -> _Result:
    """Return the result of ``work``.

    Only time in which the event loop runs counts: while it accepts thousands of connections it may be blocked for
    seconds, and a result that is available after that is not late.

    Raises:
        TimeoutError: It took longer than ``seconds``.
    """
    task = asyncio.ensure_future(work)
    try:
        for _ in range(_LOOKS):
            done, _ = await asyncio.wait((task,), timeout=seconds / _LOOKS)
            if done:
                return task.result()
        raise TimeoutError
    finally:
        task.cancel()


class Dependencies:
    """Calls dependencies under their limits, for one event loop.

    Args:
        table: The dependencies; `DEPENDENCIES` except in tests.
    """

    def __init__(self, table: Mapping[str, Dependency] = DEPENDENCIES) -> None:
        self._table = table
        self._under_way: dict[str, int] = {}
        self._failed: dict[str, tuple[int, float]] = {}

    async def call(
        self, name: str, work: Callable[[], Awaitable[_Result]], expected: tuple[type[Exception], ...] = ()
    ) -> _Result:
        """Return the result of ``work``.

        Args:
            name: Name in `DEPENDENCIES`.

        Raises:
            UnavailableError: It failed, timed out, is at its limit, or its breaker is open. Use `try_call` if weak.
        """
        dependency = self._table[name]
        failures, until = self._failed.get(name, (0, 0.0))
        if failures >= dependency.failures and time.monotonic() < until:
            raise UnavailableError(name)
        if self._under_way.get(name, 0) >= dependency.at_once:
            raise UnavailableError(name)
        self._under_way[name] = self._under_way.get(name, 0) + 1
        try:
            result = await _in_time(work(), dependency.seconds)
        except expected:
            self._failed.pop(name, None)
            raise
        except Exception as error:
            failures, _ = self._failed.get(name, (0, 0.0))  # others may have failed since this call began
            self._failed[name] = (failures + 1, time.monotonic() + dependency.rest_seconds)
            _LOG.warning("%s failed: %r", name, error)
            raise UnavailableError(name) from error
        finally:
            self._under_way[name] -= 1
        self._failed.pop(name, None)
        return result

    async def try_call(self, name: str, work: Callable[[], Awaitable[_Result]], degraded: list[str]) -> _Result | None:
        """Return the result of a weak dependency; if it fails, add it to ``degraded`` and return None."""
        try:
            return await self.call(name, work)
        except UnavailableError:
            degraded.append(name)
            return None

    def states(self) -> list[dict[str, Any]]:
        """Return the table with the current state of each dependency."""
        now = time.monotonic()
        return [
            {
                "name": dependency.name,
                "strong": dependency.strong,
                "seconds": dependency.seconds,
                "at_once": dependency.at_once,
                "under_way": self._under_way.get(dependency.name, 0),
                "resting": (
                    self._failed.get(dependency.name, (0, 0.0))[0] >= dependency.failures
                    and self._failed[dependency.name][1] > now
                ),
                "fallback": dependency.fallback,
            }
            for dependency in self._table.values()
        ]
