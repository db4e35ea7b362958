"""Selection of automatic links for a person to check next, so that strata with few labels get more."""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, func, select

from douban_pipeline.core.intervals import Rate
from douban_pipeline.douban.quality.labels import AutomaticLink
from douban_pipeline.douban.quality.rates import band_of
from douban_pipeline.douban.store.states import ReviewStatus, VerdictState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.matching.strata import STRATA

PER_STRATUM = 4
MOST = 30


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


def current_links(connection: Connection, tables: OwnTables) -> Iterator[AutomaticLink]:
    """Yield the current automatic links: confirmed, written, and neither locked nor replaced by a person."""
    verdict, video = tables.verdict, tables.video
    names = ("verdict_id", "vod_id", "douban_id", "score", "strata", "created_at")
    query = (
        select(*(verdict.c[name] for name in names))
        .join(video, video.c.vod_id == verdict.c.vod_id)
        .where(
            verdict.c.state == VerdictState.APPLIED,
            verdict.c.verdict == ReviewStatus.CONFIRMED,
            video.c.vod_douban_id == verdict.c.douban_id,
            video.c.douban_review_status == ReviewStatus.CONFIRMED,
            video.c.douban_next_sync_at.is_not(None),
            video.c.douban_id_locked.is_(False),
        )
    )
    for row in connection.execution_options(yield_per=2000).execute(query):
        yield AutomaticLink(
            row.verdict_id, row.vod_id, row.douban_id, row.score or 0.0, tuple(row.strata or ()), row.created_at
        )


def linked_since(connection: Connection, tables: OwnTables, since: datetime) -> int:
    """Return how many videos were linked automatically since a moment, including links that people reverted."""
    verdict = tables.verdict
    query = select(func.count(verdict.c.vod_id.distinct())).where(
        verdict.c.state == VerdictState.APPLIED,
        verdict.c.verdict == ReviewStatus.CONFIRMED,
        verdict.c.created_at >= since,
    )
    return int(connection.execute(query).scalar_one())


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
