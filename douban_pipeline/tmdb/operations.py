"""What the operators' commands ask of the TMDB system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.gate_status import closed_gates
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import Operations
from douban_pipeline.tmdb.diagnosis import check_graph, check_kept, check_store
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings

_LOOKED_AT = ("postgres", "schema")
"""Results that `check` already has for every system."""


class TmdbOperations(Operations):
    """The TMDB system in the operators' commands."""

    def checks(self, services: TmdbServices) -> Iterator[CheckResult]:
        """Check the age of answers, the outbox, the key, and the graph if one is configured; none is started for it."""
        settings = services.settings
        found = [each for each in check_store(services.store, settings, services.clock) if each.name not in _LOOKED_AT]
        if settings.has_key:
            url, rate = settings.api_url, f"{settings.requests_per_second:g}"
            message = terminal_text("{url}, at most {rate} requests a second").format(url=url, rate=rate)
            yield CheckResult("api", "ok", message)
        else:
            remedy = terminal_text("set {prefix}API_KEY; without it, runs that ask TMDB have nothing to do").format(
                prefix=PREFIX
            )
            yield CheckResult("api", "warn", terminal_text("no TMDB key"), remedy)
        if settings.graph_uri:
            password = settings.graph_password.get_secret_value()
            with GraphTarget(settings.graph_uri, settings.graph_user, password, settings.graph_database) as target:
                found += check_graph(target)
        gates = closed_gates(services.engine, services.gate_table, services.clock.now())
        found += [replace(result, name=f"gate {source}") for source, result in gates.items()]
        yield from found
        if not settings.graph_uri:
            message = terminal_text("{prefix}GRAPH_URI names none: an ArcadeDB in HOME, for trying").format(
                prefix=PREFIX
            )
            yield CheckResult("graph", "ok", message)
        yield from check_kept(settings)

    def sleeps(self, settings: TmdbSettings) -> bool:
        """Return whether its PostgreSQL is the one in HOME, which runs only while it is used."""
        return not settings.database_url.get_secret_value()


OPERATIONS = TmdbOperations()
"""The TMDB system's."""
