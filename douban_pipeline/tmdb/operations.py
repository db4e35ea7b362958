"""What the operators' commands ask of the TMDB system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial

from neo4j.exceptions import DriverError, Neo4jError

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.gate_status import closed_gates
from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.core.operations import Operations
from douban_pipeline.tmdb.enrichment.factory import check_service, open_spool
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.guards import LONGEST_WAIT
from douban_pipeline.tmdb.services import TmdbServices, open_graph
from douban_pipeline.tmdb.settings import PREFIX
from douban_pipeline.tmdb.store import expired_facts, outbox


class TmdbOperations(Operations):
    """The TMDB system in the operators' commands."""

    def checks(self, services: TmdbServices) -> Iterator[CheckResult]:
        """Check the age of answers, the outbox, the key, the log of questions, and the graph."""
        settings = services.settings
        yield age_result(services)
        yield _outbox(services)
        if settings.has_key:
            url, rate = settings.api_url, f"{settings.requests_per_second:g}"
            message = terminal_text("{url}, at most {rate} requests a second").format(url=url, rate=rate)
            yield CheckResult("api", "ok", message)
        else:
            remedy = terminal_text("set {prefix}API_KEY; without it, runs that ask TMDB have nothing to do").format(
                prefix=PREFIX
            )
            yield CheckResult("api", "warn", terminal_text("no TMDB key"), remedy)
        with closing(open_spool(settings, services.clock)) as spool:
            yield from check_service(settings, spool)
        if settings.graph_uri:
            with open_graph(settings) as target:
                yield graph_result(target)
        else:
            remedy = terminal_text("set {prefix}GRAPH_URI").format(prefix=PREFIX)
            yield CheckResult("graph", "warn", terminal_text("no graph database is configured"), remedy)
        gates = closed_gates(services.engine, services.gate_table, services.clock.now())
        yield from (replace(result, name=f"gate {source}") for source, result in gates.items())


OPERATIONS = TmdbOperations()
"""The TMDB system's."""


def age_result(services: TmdbServices) -> CheckResult:
    days = expired_facts.RAW_DAYS
    found = services.store.run(partial(expired_facts.counts, before=services.days_ago(days)))
    if not found:
        return CheckResult(
            "age", "ok", terminal_text("no column of TMDB's is older than {days} days").format(days=days)
        )
    named = {place: place.named_zh if terminal_language() == "zh" else place.what for place in found}
    places = terminal_text(", ").join(
        terminal_text("{count} rows of {table} ({named})").format(count=count, table=place.table, named=named[place])
        for place, count in found.items()
    )
    message = terminal_text("older than {days} days, which TMDB's terms do not allow: {places}").format(
        days=days, places=places
    )
    remedy = terminal_text("fetch them again, or launch the job `tmdb_retention`")
    return CheckResult("age", "warn", message, remedy)


def _outbox(services: TmdbServices) -> CheckResult:
    counts = services.store.run(outbox.counts)
    waiting, failing, put_aside = counts.waiting, counts.failing, counts.dead
    shown = terminal_text("{waiting} waiting, {failing} of them failed before, {put_aside} put aside").format(
        waiting=waiting, failing=failing, put_aside=put_aside
    )
    if counts.dead:
        [first, *_] = services.store.run(lambda connection: outbox.dead(connection, 1))
        reason = f"{first['entity_type']}/{first['tmdb_id']}: {first['last_error']}"
        remedy = terminal_text("fix the cause, then launch the job `requeue_outbox`")
        return CheckResult("outbox", "warn", f"{shown}{terminal_text('; ')}{reason}", remedy)
    if counts.oldest is not None and services.now() - counts.oldest > LONGEST_WAIT:
        since = f"{counts.oldest:%F %H:%M}"
        late = terminal_text("{shown}, the oldest since {since}").format(shown=shown, since=since)
        return CheckResult("outbox", "warn", late, terminal_text("launch the job `sync_tmdb_graph`"))
    return CheckResult("outbox", "ok", shown)


def graph_result(target: GraphTarget) -> CheckResult:
    try:
        server, counts, sentence = target.server(), target.counts(), target.too_old()
    except (DriverError, Neo4jError) as error:
        message = terminal_text("{uri} does not answer: {error}").format(uri=target.uri, error=error)
        remedy = terminal_text("start it, or mend {prefix}GRAPH_URI").format(prefix=PREFIX)
        return CheckResult("graph", "fail", message, remedy)
    if sentence:
        return CheckResult("graph", "fail", sentence, terminal_text("upgrade that Neo4j"))
    shown = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    return CheckResult("graph", "ok", f"{server}: {shown or terminal_text('empty')}")
