"""Whether the sources were asked no more than allowed: in any minute, at once, in a day, and for no more money."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from douban_pipeline_tests.harness.soak.audit.records import Case, Records
from douban_pipeline_tests.harness.soak.evidence import SOURCES, Evidence, Finding

_MINUTE = 60.0


def limits_are_kept(evidence: Evidence, _records: Records) -> Finding:
    """Check every request that the upstream got against what its source was allowed."""
    case = Case("no source was asked more than allowed: in any 60 seconds, at once, or in a day")
    zone = evidence.services.settings.zone
    for source, log in _by_source(evidence.requests).items():
        moments: list[float] = sorted(log.get("times", ()))
        if not moments:
            continue
        if source not in evidence.limits:
            case.breaks(f"{source} was asked {len(moments)} times, and nobody set a limit for it")
            continue
        per_minute, concurrency = evidence.limits[source]
        case.checked += len(moments)
        most, at = _busiest(moments)
        summary = f"{source}: {len(moments)} requests, at most {most} of {per_minute:g} in 60 s"
        if most > per_minute:
            case.breaks(f"{source}: {most} requests in the 60 s from {_shown(at)}, allowed are {per_minute:g}")
        together, at, keys = _at_once(log)
        if together:
            summary += f", {together} of {concurrency} at once"
            if together > concurrency:
                asked = ", ".join(keys)
                case.breaks(
                    f"{source}: {together} requests at once, allowed are {concurrency}: at {_exact(at)} {asked}"
                )
        quota = evidence.services.settings.daily_quotas.get(source)
        days = Counter(datetime.fromtimestamp(each, zone).date() for each in moments)
        for day, count in days.items():
            if quota is not None and count > quota:
                case.breaks(f"{source}: {count} requests on {day}, allowed are {quota}")
        case.notes.append(summary)
    return case.finding()


def _by_source(requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    found: dict[str, dict[str, list[Any]]] = {}
    for endpoint, log in requests.items():
        of_source = found.setdefault(SOURCES.get(endpoint, endpoint), {"times": [], "ended": [], "keys": []})
        for name, moments in of_source.items():
            moments += log.get(name, ())
    return found


def _busiest(moments: Sequence[float]) -> tuple[int, float]:
    found = [(bisect.bisect_left(moments, each + _MINUTE) - place, each) for place, each in enumerate(moments)]
    return max(found, key=lambda each: each[0])


def _at_once(log: Mapping[str, Any]) -> tuple[int, float, list[str]]:
    """Return how many requests were under way at once at most, since when, and for what each was, the oldest first.

    It is 0 if nobody noted when they ended.
    """
    steps: list[tuple[float, int, int]] = []
    for number, (began, ended) in enumerate(zip(log.get("times", ()), log.get("ended", ()), strict=False)):
        if ended is not None:
            # Of an end and a beginning at the same moment the end comes first.
            steps += [(began, 1, number), (ended, -1, number)]
    most: list[int] = []
    under_way: list[int] = []
    since = 0.0
    for moment, step, number in sorted(steps):
        if step < 0:
            under_way.remove(number)
            continue
        under_way.append(number)
        if len(under_way) > len(most):
            most, since = [*under_way], moment
    keys = log.get("keys", ())
    return len(most), since, [f"{keys[number]} ({_exact(log['times'][number])})" for number in most]


def _exact(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S.%f}"[:-3]


def _shown(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"
