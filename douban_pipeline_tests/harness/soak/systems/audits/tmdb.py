"""What must hold of TMDB: the graph is what the store says, answers are kept whole, and none waits or is put aside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import text

from douban_pipeline.tmdb.graph_sync import build_batch
from douban_pipeline.tmdb.guards import incomplete_answers
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.evidence import Finding


def audit_tmdb(services: TmdbServices, roles: Mapping[int, str], seen: Mapping[int, Collection[str]]) -> list[Finding]:
    """Return what became of each invariant.

    Args:
        services: Store and graph.
        roles: What TMDB calls the first role of a film in the end, by the film's id.
        seen: All that it called it since the beginning.
    """
    full = _full(services)
    return [_graph(services, full), _newest(services, roles), _graph_roles(services, roles, seen), _done(services)]


def _full(services: TmdbServices) -> list[EntityKey]:
    with services.engine.connect() as connection:
        return [
            EntityKey(entity, number)
            for entity, table in TABLES.items()
            for (number,) in connection.execute(
                text(f"SELECT tmdb_id FROM tmdb.{table.name} WHERE data_state = 'full' AND gone_at IS NULL")
            )
        ]


def _graph(services: TmdbServices, full: Sequence[EntityKey]) -> Finding:
    case = Case("the graph is the projection of the stored answers", checked=len(full))
    with services.graph() as target:
        if full:
            for each in target.differences(build_batch(services.store, full)):
                case.breaks(each)
        counts = {name: count for name, count in target.counts().items() if count}
    case.notes.append(", ".join(f"{name} {count}" for name, count in counts.items()))
    return case.finding()


def _newest(services: TmdbServices, roles: Mapping[int, str]) -> Finding:
    case = Case("each answer is kept whole, the newest of each film that was asked for last")
    with services.engine.connect() as connection:
        for breach in incomplete_answers(services, connection):
            case.breaks(f"{breach.what}: {breach.problem}")
        for number, role in roles.items():
            case.checked += 1
            query = text("SELECT raw->'credits'->'cast'->0->>'character' FROM tmdb.movies WHERE tmdb_id = :id")
            found = connection.execute(query, {"id": number}).scalar()
            if found != role:
                case.breaks(f"movie/{number}: its first role is {found!r} in the store, TMDB says {role!r}")
    return case.finding()


def _graph_roles(services: TmdbServices, roles: Mapping[int, str], seen: Mapping[int, Collection[str]]) -> Finding:
    case = Case("the graph holds the newest role of a film, and none that it had before")
    with services.graph() as target:
        for number, role in roles.items():
            rows = target.ask("MATCH (:Movie {tmdb_id: $id})<-[e:ACTED_IN]-() RETURN e.character AS role", id=number)
            found = {str(row["role"]) for row in rows if row["role"]}
            case.checked += 1
            if role not in found:
                case.breaks(f"movie/{number}: {role!r} is not in the graph")
            for old in sorted(found & (set(seen[number]) - {role})):
                case.breaks(f"movie/{number}: {old!r} is in the graph, and was changed")
    return case.finding()


def _done(services: TmdbServices) -> Finding:
    case = Case("no change waits for the graph, and none was put aside")
    counts = services.store.run(outbox.counts)
    case.checked = 1
    if counts.waiting:
        case.breaks(f"{counts.waiting} changes wait, {counts.failing} of them failed")
    if counts.dead:
        case.breaks(f"{counts.dead} changes were put aside")
    types = ", ".join(entity.value for entity in EntityType)
    case.notes.append(f"of {types}")
    return case.finding()
