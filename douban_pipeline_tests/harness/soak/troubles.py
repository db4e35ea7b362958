"""What goes wrong, and when: a plan that a seed decides, so that a soak can be told to another and done again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from douban_pipeline_tests.harness.soak.evidence import SOURCES

ENDPOINTS = ("douban", "search", "llm")
"""Endpoints of the replay upstream that the soak uses; `evidence.SOURCES` names the gate of each."""
QUIET_SHARE = 0.12
"""Share of the soak at its end in which nothing new goes wrong, so that all sources recover while life goes on."""
_FIRST_SECONDS = 15.0
_FAULT_SECONDS = (20.0, 90.0)
_FAULT_EVERY_MINUTES = 5.0
_RETRY_AFTER = (12.0, 25.0)
_BREAKS_BY_ITSELF = "throttled"
"""It comes first: its pause is as long as the source asks for, so that its breaker is seen to open and close alone."""
_NO_ANSWER = ("server_error", "garbage", "empty_body", "wrong_page", "error_in_200", "wrong_id")
_OTHERS = {
    "douban": (*_NO_ANSWER, "captcha", "timeout", "empty", "login_redirect"),
    # A clean empty list is the worst of them: it looks like an answer.
    "search": (*_NO_ANSWER, "captcha", "timeout", "empty", "forbidden"),
    # A model that does not answer would hold a run for the minute and a half that a model is given.
    "llm": (*_NO_ANSWER, "no_provider", "unpaid", "refused", "cut_off"),
}


class Kind(StrEnum):
    """What goes wrong."""

    kill_run = "run killed"
    fault = "source ill"
    kill_database = "database killed"
    kill_daemon = "daemon killed"
    kill_code = "code server killed"


@dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """One thing that goes wrong.

    Attributes:
        at: Seconds after the beginning.
        kind: What.
        seconds: How long it lasts, of a fault; how long it stays down, of a server.
        endpoint: Which endpoint of the replay upstream is unhealthy.
        fault: How; one of `demo.faults.FAULTS` or `MODEL_FAULTS`.
        retry_after: Seconds that a throttled source asks for.
    """

    at: float
    kind: Kind
    seconds: float = 0.0
    endpoint: str = ""
    fault: str = ""
    retry_after: float | None = None

    @property
    def summary(self) -> str:
        """It in a few words."""
        if self.kind is not Kind.fault:
            return str(self.kind)
        asked = f", Retry-After {self.retry_after:.0f} s" if self.retry_after is not None else ""
        return f"{SOURCES[self.endpoint]}: {self.fault} for {self.seconds:.0f} s{asked}"


def plan(minutes: float, seed: int) -> tuple[Trouble, ...]:
    """Return what goes wrong in a soak of ``minutes``, in order.

    A run is killed each minute, each source fails every five minutes and at least once (first so that its breaker
    opens and closes by itself), daemon and code server die once, early, and the database once in the middle.
    """
    rng = Random(f"troubles {seed}")
    end = minutes * 60 * (1 - QUIET_SHARE)
    troubles = [
        Trouble(start + rng.uniform(_FIRST_SECONDS, 55), Kind.kill_run)
        for start in range(0, max(int(end), 60), 60)
        if start + _FIRST_SECONDS < end
    ]
    for endpoint in ENDPOINTS:
        troubles += _faults(endpoint, end, rng)
    # Processes that were started anew are judged from then on: the earlier, the longer they are watched.
    for kind, (earliest, latest) in {
        Kind.kill_daemon: (0.10, 0.16),
        Kind.kill_code: (0.18, 0.24),
        Kind.kill_database: (0.45, 0.60),
    }.items():
        troubles.append(Trouble(end * rng.uniform(earliest, latest), kind, seconds=rng.uniform(1, 5)))
    return tuple(sorted(troubles))


def _faults(endpoint: str, end: float, rng: Random) -> list[Trouble]:
    """Return the illnesses of one source, one a slice of the time, each over before the slice is."""
    count = max(1, int(end / 60 / _FAULT_EVERY_MINUTES))
    slices = end / count
    shuffled = rng.sample(_OTHERS[endpoint], len(_OTHERS[endpoint]))
    found = []
    for number in range(count):
        fault = _BREAKS_BY_ITSELF if number == 0 else shuffled[(number - 1) % len(shuffled)]
        seconds = min(rng.uniform(*_FAULT_SECONDS), slices / 5)
        retry_after = rng.uniform(*_RETRY_AFTER) if fault == _BREAKS_BY_ITSELF else None
        begins = number * slices + rng.uniform(min(_FIRST_SECONDS, slices / 4), slices - seconds)
        found.append(Trouble(begins, Kind.fault, seconds, endpoint, fault, retry_after))
    return found


def covered(troubles: Sequence[Trouble]) -> set[str]:
    """Return the endpoints that fail."""
    return {trouble.endpoint for trouble in troubles if trouble.kind is Kind.fault}
