"""What must hold of the followed sources: nothing lost, nothing doubled, no host asked too often, nobody left held."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, select

from douban_pipeline.core.database import reading
from douban_pipeline.feeds.store.tables import entry, newcomer, source, stats
from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.evidence import Finding

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class FeedsNotes:
    """What was noted of the sources.

    Attributes:
        published: Guids that each source has published and shown, by its title.
        requests: When each host was asked, by its name.
        per_minute: What a host may be asked in a minute.
        since: From when on, in seconds since 1970, every source has to have been asked once more.
    """

    published: Mapping[str, frozenset[str]]
    requests: Mapping[str, Sequence[float]]
    per_minute: int
    since: float


def audit_feeds(engine: Engine, notes: FeedsNotes) -> list[Finding]:
    """Return what became of each invariant."""
    with reading(engine) as connection:
        names = dict(connection.execute(select(source.c.source_id, source.c.title)).tuples().all())
        held = connection.execute(select(entry.c.source_id, entry.c.guid, entry.c.title)).tuples().all()
        arrived = connection.execute(select(newcomer.c.source_id, newcomer.c.remote_id)).tuples().all()
        looks = connection.execute(select(stats.c.source_id, stats.c.lease_token, stats.c.last_check_at)).tuples().all()
    return [
        _lost(names, held, notes),
        _doubled(names, held, arrived, notes),
        _asked_too_often(notes),
        _left(names, looks, notes),
    ]


def _lost(names: Mapping[str, str], held: Sequence[tuple[str, str, str]], notes: FeedsNotes) -> Finding:
    case = Case("every item that a source published is stored")
    stored: dict[str, set[str]] = {}
    for source_id, guid, _ in held:
        stored.setdefault(names.get(source_id, source_id), set()).add(guid)
    for name, guids in notes.published.items():
        case.checked += len(guids)
        for guid in sorted(guids - stored.get(name, set())):
            case.breaks(f"{name}: {guid} was published and is not stored")
    return case.finding()


def _doubled(
    names: Mapping[str, str],
    held: Sequence[tuple[str, str, str]],
    arrived: Sequence[tuple[str, str]],
    notes: FeedsNotes,
) -> Finding:
    case = Case("no item is stored twice, and none that nobody published; a newcomer is handed over once")
    seen: set[tuple[str, str]] = set()
    for source_id, guid, title in held:
        case.checked += 1
        name = names.get(source_id, source_id)
        if guid not in notes.published.get(name, frozenset()):
            case.breaks(f"{name}: {guid} ({title}) is stored, and nobody published it")
        if (source_id, guid) in seen:
            case.breaks(f"{name}: {guid} ({title}) is stored twice")
        seen.add((source_id, guid))
    for each in sorted({pair for pair in arrived if arrived.count(pair) > 1}):
        case.breaks(f"{names.get(each[0], each[0])}: newcomer {each[1]} is handed over twice")
    case.checked += len(arrived)
    return case.finding()


def _asked_too_often(notes: FeedsNotes) -> Finding:
    case = Case("no host was asked more than allowed in any 60 seconds")
    for host, moments in notes.requests.items():
        times = sorted(moments)
        case.checked += len(times)
        most = max((bisect.bisect_left(times, at + _MINUTE) - place for place, at in enumerate(times)), default=0)
        case.notes.append(f"{host}: at most {most} of {notes.per_minute}")
        if most > notes.per_minute:
            case.breaks(f"{host}: {most} requests in 60 s, allowed are {notes.per_minute}")
    return case.finding()


def _left(names: Mapping[str, str], looks: Sequence[tuple[str, str, int]], notes: FeedsNotes) -> Finding:
    case = Case("no source stays a dead run's, and each was asked once more when all was well")
    for source_id, token, checked_at in looks:
        case.checked += 1
        name = names.get(source_id, source_id)
        if token:
            case.breaks(f"{name}: still leased by {token}")
        if (checked_at or 0) < int(notes.since):
            case.breaks(f"{name}: not asked since all was well")
    return case.finding()
