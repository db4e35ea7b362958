"""The candidates of a stored verdict as the archive still has them: to be judged again without a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.core.archive import key_hash
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.match.found_candidates import FetchedCandidate, FoundCandidates
from douban_pipeline.douban.evidence.added_facts import posters_of
from douban_pipeline.douban.evidence.known_names import KnownName, stored_names, with_names
from douban_pipeline.douban.match_inputs import subject_facts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.douban_php import parse_subject, subject_key
from douban_pipeline.douban.sources.search import Hit
from douban_pipeline.douban.store.verdict_facts import subject_of
from douban_pipeline.matching import Subject

_SERIAL = "tv"


@dataclass(frozen=True, slots=True)
class StoredCandidates:
    """What a verdict was reached from.

    Attributes:
        found: Its candidates, the linked subject by its newest answer; None where the archive has not all of them.
        changed: Whether the newest answer about the linked subject says something else than the verdict was reached by.
    """

    found: FoundCandidates | None
    changed: bool


def stored_candidates(
    services: Services, connection: Connection, verdicts: Sequence[RowMapping], linked: Mapping[int, int]
) -> dict[int, StoredCandidates]:
    """Return what some hundred verdicts were reached from, by verdict.

    Args:
        services: Tables and archive.
        connection: A connection that reads.
        verdicts: Their rows.
        linked: The subject that each video is linked to.
    """
    candidate = services.tables.candidate
    query = (
        select(candidate)
        .where(candidate.c.verdict_id.in_([row["verdict_id"] for row in verdicts]))
        .order_by(candidate.c.verdict_id, candidate.c.rank)
    )
    by_verdict: dict[int, list[RowMapping]] = {}
    for row in connection.execute(query).mappings():
        by_verdict.setdefault(row["verdict_id"], []).append(row)
    newest = _newest_answers(services, connection, set(linked.values()))
    named = {row["snapshot_id"] for rows in by_verdict.values() for row in rows if row["fetched"]}
    kept = _kept(services, connection, named | set(newest.values()))
    found: dict[int, StoredCandidates] = {}
    for verdict in verdicts:
        rows = by_verdict.get(verdict["verdict_id"], [])
        subject = linked[verdict["vod_id"]]
        current = next((row for row in rows if row["fetched"] and row["douban_id"] == subject), None)
        if current is None:
            found[verdict["verdict_id"]] = StoredCandidates(None, changed=False)
            continue
        answer = newest.get(subject, current["snapshot_id"])
        names = stored_names(verdict["facts"])
        other = answer != current["snapshot_id"] and _says_else(services, connection, current, answer, names)
        whole = all(row["snapshot_id"] in kept for row in rows if row["fetched"] and row is not current)
        again = _found(verdict, rows, {subject: answer}) if whole and answer in kept else None
        found[verdict["verdict_id"]] = StoredCandidates(again, changed=other)
    return found


def _newest_answers(services: Services, connection: Connection, subjects: Collection[int]) -> dict[int, int]:
    """Return the newest archived answer about each subject."""
    snapshot = services.tables.snapshot
    hashes = {key_hash(subject_key(subject)): subject for subject in subjects}
    query = (
        select(snapshot.c.key_hash, snapshot.c.snapshot_id)
        .where(snapshot.c.source == DOUBAN, snapshot.c.key_hash.in_(hashes), snapshot.c.status == 200)
        .order_by(snapshot.c.seen_at, snapshot.c.snapshot_id)
    )
    return {hashes[row.key_hash]: row.snapshot_id for row in connection.execute(query)}


def _kept(services: Services, connection: Connection, snapshot_ids: Collection[int | None]) -> set[int]:
    snapshot = services.tables.snapshot
    wanted = [each for each in snapshot_ids if each is not None]
    return set(connection.execute(select(snapshot.c.snapshot_id).where(snapshot.c.snapshot_id.in_(wanted))).scalars())


def _says_else(
    services: Services, connection: Connection, current: RowMapping, answer: int, names: Sequence[KnownName]
) -> bool:
    """Return whether an answer says of a subject what a verdict depends on, and otherwise than it was stored.

    Names that people confirmed are stored among its aliases, and said by no answer.
    """
    body = services.archive.bodies(connection, {answer}).get(answer)
    stored = subject_of(current["facts"] or {"douban_id": current["douban_id"], "title": current["title"]})
    try:
        record = parse_subject(body, current["douban_id"]) if body is not None else None
    except SourceError:
        # A page that is no answer; the next sync tells what it is.
        return False
    if record is None:
        return False
    said = subject_facts(record, _SERIAL if stored.serial else "")
    return _lasting(with_names(said, names)) != _lasting(with_names(stored, names))


def _lasting(subject: Subject) -> Subject:
    """Return a subject without what changes with every answer, and orders only equal candidates."""
    return replace(subject, rating=None, votes=None)


def _found(verdict: RowMapping, rows: Sequence[RowMapping], answers: Mapping[int, int]) -> FoundCandidates:
    """Return the candidates of a verdict, those in ``answers`` by these."""
    fetched = {row["snapshot_id"] for row in rows if row["fetched"]}
    subjects = tuple(
        FetchedCandidate(
            row["douban_id"],
            answers.get(row["douban_id"], row["snapshot_id"]),
            _SERIAL if (row["facts"] or {}).get("serial") else "",
        )
        for row in rows
        if row["fetched"]
    )
    return FoundCandidates(
        subjects,
        tuple(_hit(row["facts"] or {}, row) for row in rows if not row["fetched"]),
        verdict["crowded"],
        tuple(each for each in verdict["snapshots"] or () if each not in fetched),
        requests=0,
        complete=verdict["complete"],
        source_healthy=verdict["source_healthy"],
        posters=posters_of(verdict["facts"]),
    )


def _hit(facts: Mapping[str, Any], row: RowMapping) -> Hit:
    """Return what a search had said of a candidate that nobody asked Douban about."""
    return Hit(
        row["douban_id"],
        row["title"],
        "",
        original_title=facts.get("original_title", ""),
        year=row["year"],
        kind=_SERIAL if facts.get("serial") else "",
        episodes=facts.get("episodes"),
    )
