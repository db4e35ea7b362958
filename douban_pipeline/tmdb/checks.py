"""Checks of the TMDB system."""

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks
from douban_pipeline.tmdb import guards
from douban_pipeline.tmdb.assets import tmdb_entities, tmdb_graph
from douban_pipeline.tmdb.guards import TmdbBreach

_SHOWN: BreachTable[TmdbBreach] = BreachTable(
    things="problems",
    partitions="of",
    partition_of=lambda breach: breach.what.split("/")[0],
    row=lambda breach: {page_text("object"): breach.what, page_text("problem"): breach.problem},
)

_ENTITY_GUARDS = [
    Guard(
        "schema_at_head",
        page_text("The schema is at the version of this release."),
        guards.other_versions,
    ),
    Guard(
        "raw_complete",
        page_text("Answers fetched in the last three days contain the credits."),
        guards.incomplete_answers,
    ),
    Guard(
        "nothing_older_than_terms_allow",
        page_text("No column holds facts of TMDB that are older than its terms allow, with or without the answer."),
        guards.outdated_facts,
    ),
    Guard(
        "no_relations_in_store",
        page_text("The schema holds our tables only."),
        guards.strange_tables,
        warns=True,
    ),
]
_GRAPH_GUARDS = [
    Guard(
        "outbox_keeps_up",
        page_text("No change has waited for over an hour or was put aside."),
        guards.waiting_changes,
        warns=True,
    ),
    Guard(
        "graph_agrees_with_store",
        page_text("A sample of entities is in the graph as stored."),
        guards.differing_entities,
        warns=True,
    ),
]

checks = [guard_checks(tmdb_entities, _ENTITY_GUARDS, _SHOWN), guard_checks(tmdb_graph, _GRAPH_GUARDS, _SHOWN)]
