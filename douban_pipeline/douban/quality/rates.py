"""Precision of automatic links from labels, the strata to brake, and which links to check next. Pure functions."""

from __future__ import annotations

import enum
import heapq
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from douban_pipeline.core.intervals import Rate, Z, most_when_none_seen
from douban_pipeline.douban.quality.labels import AutomaticLink, LinkLabel, Settled
from douban_pipeline.matching.strata import OPENINGS, STRATA, opening_of

BANDS: tuple[tuple[str, float], ...] = (("96+", 96.0), ("92–96", 92.0), ("88–92", 88.0), ("85–88", 85.0))
"""Score bands with their lower bounds, the best first."""
LOWEST_BAND = "<85"

PER_STRATUM = 4
"""Links of each stratum that people are asked to check."""
MOST = 30
"""Links that people are asked to check at once."""

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
    opened = [name for name in OPENINGS if name in groups]
    return {name: overall(groups.get(name, ())) for name in (*STRATA, *opened)}


def overruled_rules(settled: Iterable[Settled]) -> dict[str, Rate]:
    """Return, by code, how often the first candidate was right although the code blocked it; the worst first."""
    groups = grouped(settled, lambda item: item.codes)
    found = {code: Rate(sum(item.top_right for item in items), len(items)) for code, items in groups.items()}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].hits, pair[0])))


OPENING_ERROR = 0.01
"""Share of errors that people's decisions may leave possible at most, with 95 % confidence, for a stratum to be safe to
open: one in a hundred, which takes 299 decisions without one that differs."""
MOST_AT_ONCE = 20
"""Decisions of a person at one moment beyond which nobody looked at each: they are orders, not evidence."""


def clean_decisions(error: float) -> int:
    """Return how many decisions without one that differs leave at most ``error`` possible, with 95 % confidence."""
    return math.ceil(math.log(0.05) / math.log(1 - error))


@dataclass(frozen=True, slots=True)
class Opening:
    """What people decided where a match lacked one thing, see `matching.strata.OPENINGS`.

    Attributes:
        stratum: Its name.
        agreed: Decisions, one by one, for the first candidate.
        differed: Those for another one, or for none.
        at_once: Decisions that were not counted because too many were made at once.
        people: How many people made those that were counted.
    """

    stratum: str
    agreed: int
    differed: int
    at_once: int
    people: int

    @property
    def error(self) -> float:
        """The greatest share of errors, 0 to 1, that the decisions leave possible with 95 % confidence."""
        if not self.differed:
            return most_when_none_seen(self.agreed)
        return 1 - Rate(self.agreed, self.agreed + self.differed).interval.low

    @property
    def safe(self) -> bool:
        """Whether people always agreed, and often enough."""
        return not self.differed and self.error <= OPENING_ERROR


def openings(settled: Collection[Settled]) -> dict[str, Opening]:
    """Return what people decided of every stratum that a person may open, by name; a video counts once, the newest."""
    together = Counter((item.person, item.at) for item in settled)
    newest = {item.vod_id: item for item in sorted(settled, key=lambda item: item.verdict_id)}
    groups = grouped(newest.values(), lambda item: (opening_of(item.codes),))
    found: dict[str, Opening] = {}
    for name in OPENINGS:
        items = groups.get(name, [])
        single = [item for item in items if together[item.person, item.at] <= MOST_AT_ONCE]
        agreed = sum(item.top_right for item in single)
        people = len({item.person for item in single})
        found[name] = Opening(name, agreed, len(single) - agreed, len(items) - len(single), people)
    return found


# --- what to check next -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Audit:
    """Counts of the current automatic links, and a sample to check.

    Attributes:
        links: Number of links.
        by_stratum: Numbers by stratum.
        by_band: Numbers by score band.
        picks: The links to check; none was checked before.
    """

    links: int = 0
    by_stratum: Counter[str] = field(default_factory=Counter)
    by_band: Counter[str] = field(default_factory=Counter)
    picks: list[AutomaticLink] = field(default_factory=list)


def audit(
    links: Iterable[AutomaticLink],
    labelled: Collection[int],
    rates: Mapping[str, Rate],
    *,
    day: str,
    most: int = MOST,
) -> Audit:
    """Count the current links, and draw a sample of those without a label.

    The sample is drawn by stratum, `PER_STRATUM` each, and is the same all day; strata with the fewest labels come
    first. It is random, so that it is not biased towards links that people noticed.

    Args:
        links: The current links.
        labelled: Verdicts that people have judged.
        rates: Precision by stratum.
        day: Seed of the sample.
        most: Most links in the sample.
    """
    found = Audit()
    drawn: dict[str, list[tuple[int, int, AutomaticLink]]] = {}
    for link in links:
        found.links += 1
        found.by_band[band_of(link.score)] += 1
        found.by_stratum.update(link.strata)
        if link.verdict_id in labelled:
            continue
        # With negated checksums in a min-heap, the largest checksum is removed first.
        entry = (-zlib.crc32(f"{day}:{link.vod_id}".encode()), link.verdict_id, link)
        for name in link.strata or ("",):
            heap = drawn.setdefault(name, [])
            if len(heap) < PER_STRATUM:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
    order = sorted(drawn, key=lambda name: (rates.get(name, Rate(0, 0)).total, [*STRATA, name].index(name)))
    picks: dict[int, AutomaticLink] = {}
    for place in range(PER_STRATUM):
        for name in order:
            ranked = sorted(drawn[name], reverse=True)
            if place < len(ranked) and len(picks) < most:
                link = ranked[place][2]
                picks.setdefault(link.vod_id, link)
    found.picks = list(picks.values())
    return found


def decisions_to_launch(picks: Iterable[AutomaticLink], titles: Mapping[int, str], *, day: str) -> str:
    """Return the config of `record_decisions` that agrees with every pick, for a person to correct and launch."""
    lines = [
        "# 逐条核对后，在 record_decisions 中启动：错的改为 clear_id（douban_id: 0）或正确的条目，没核对的删去。",
        "ops:",
        "  store_decisions:",
        "    config:",
        '      reviewer: ""',
        f"      note: 抽样核对 {day}",
        "      dry_run: true",
        "      decisions:",
    ]
    for link in picks:
        title = " ".join("".join(sign for sign in titles.get(link.vod_id, "") if sign.isprintable()).split())
        lines.append(
            f"        - {{vod_id: {link.vod_id}, action: set_id, douban_id: {link.douban_id}}}  # {title}".rstrip()
        )
    return "\n".join(lines)
