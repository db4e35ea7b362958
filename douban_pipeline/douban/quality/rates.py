"""Precision of automatic links from labels, by stratum and score band, and the strata to brake. Pure functions."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from douban_pipeline.core.intervals import Rate, Z
from douban_pipeline.douban.quality.labels import LinkLabel, Settled
from douban_pipeline.matching.strata import STRATA

BANDS: tuple[tuple[str, float], ...] = (("96+", 96.0), ("92–96", 92.0), ("88–92", 88.0), ("85–88", 85.0))
"""Score bands with their lower bounds, the best first."""
LOWEST_BAND = "<85"

Item = TypeVar("Item")
Name = TypeVar("Name")


class TargetStatus(enum.StrEnum):
    """Whether a stratum reaches its target, judged by its labels."""

    TOO_FEW = "样本不足"
    HOLDS = "达标"
    FAILS = "低于目标"


def clean_labels(target: float) -> int:
    """Return the least number of labels whose lower bound reaches ``target`` if all of them are right."""
    # The Wilson bound of n out of n is n / (n + z²).
    wanted = math.ceil(target * Z**2 / (1 - target) - 1e-9)
    return wanted if Rate(wanted, wanted).interval.low >= target else wanted + 1


def target_status(rate: Rate, *, target: float, least: int) -> TargetStatus:
    """Return whether a stratum reaches its target, fails it, or has too few labels.

    With fewer labels than `clean_labels` even a rate without errors has a lower bound below the target. Until then only
    a rate whose *upper* bound is below the target fails.
    """
    if rate.total < least:
        return TargetStatus.TOO_FEW
    if rate.interval.high < target:
        return TargetStatus.FAILS
    if rate.total < clean_labels(target):
        return TargetStatus.TOO_FEW
    return TargetStatus.HOLDS if rate.interval.low >= target else TargetStatus.FAILS


def band_of(score: float) -> str:
    """Return the band of a score."""
    return next((name for name, low in BANDS if score >= low), LOWEST_BAND)


def grouped(items: Iterable[Item], names: Callable[[Item], Iterable[Name]]) -> dict[Name, list[Item]]:
    """Return the items by the groups that ``names`` says; an item may be in several groups, or in none."""
    found: dict[Name, list[Item]] = {}
    for item in items:
        for name in names(item):
            found.setdefault(name, []).append(item)
    return found


def overall(labels: Collection[LinkLabel]) -> Rate:
    """Return the rate of all labels."""
    return Rate(sum(label.right for label in labels), len(labels))


def by_band(labels: Iterable[LinkLabel]) -> dict[str, Rate]:
    """Return the rate of every score band that has labels, the best band first."""
    found = grouped(labels, lambda label: (band_of(label.link.score),))
    return {name: overall(found[name]) for name in (*(name for name, _ in BANDS), LOWEST_BAND) if name in found}


def by_stratum(labels: Iterable[LinkLabel], since: Mapping[str, datetime] | None = None) -> dict[str, Rate]:
    """Return the rate of every stratum, including those without labels.

    Args:
        labels: People's judgements.
        since: Moments by stratum; labels up to then do not count in it.
    """
    since = since or {}

    def counted(label: LinkLabel) -> Collection[str]:
        return [name for name in label.link.strata if name not in since or label.judged_at > since[name]]

    return _of_every_stratum(grouped(labels, counted))


def unexplained(labels: Iterable[LinkLabel], since: Mapping[str, datetime], held: Collection[str]) -> dict[str, Rate]:
    """Return the rate of every stratum without the links that a brake holds back, or held back when they were judged.

    Strata overlap: links that make one of them fail must not lower the rates of larger ones that contain them. Only
    links that would still be confirmed count.
    """

    def counted(label: LinkLabel) -> Collection[str]:
        strata = label.link.strata
        spent = any(name in held or (name in since and label.judged_at <= since[name]) for name in strata)
        return () if spent else strata

    return _of_every_stratum(grouped(labels, counted))


def shortfalls(
    labels: Collection[LinkLabel], since: Mapping[str, datetime], held: Collection[str], *, target: float, least: int
) -> dict[str, Rate]:
    """Return the further strata to brake, with their rates: repeatedly the worst one of those that still fail."""
    found: dict[str, Rate] = {}
    while True:
        rates = unexplained(labels, since, {*held, *found})
        failing = [
            name
            for name, rate in rates.items()
            if target_status(rate, target=target, least=least) is TargetStatus.FAILS
        ]
        if not failing:
            return found
        worst = min(failing, key=lambda name: (rates[name].share or 0.0, rates[name].total))
        found[worst] = rates[worst]


def _of_every_stratum(groups: Mapping[str, Collection[LinkLabel]]) -> dict[str, Rate]:
    return {name: overall(groups.get(name, ())) for name in STRATA}


def overruled_rules(settled: Iterable[Settled]) -> dict[str, Rate]:
    """Return, by code, how often the first candidate was right although the code blocked it; the worst first."""
    groups = grouped(settled, lambda item: item.codes)
    found = {code: Rate(sum(item.top_right for item in items), len(items)) for code, items in groups.items()}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].hits, pair[0])))
