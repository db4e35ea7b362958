"""Checks of the TMDB system."""

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks
from douban_pipeline.tmdb import guards
from douban_pipeline.tmdb.assets import tmdb_entities, tmdb_graph
from douban_pipeline.tmdb.guards import TmdbBreach

_SHOWN: BreachTable[TmdbBreach] = BreachTable(
    things="problems",
    partitions="of",
    partition_of=lambda breach: breach.what.split("/")[0],
    row=lambda breach: {"对象": breach.what, "问题": breach.problem},
)

_ENTITY_GUARDS = [
    Guard(
        "schema_at_head",
        described("表结构是本发行版的版本。", "The schema is at the version of this release."),
        guards.other_versions,
    ),
    Guard(
        "raw_complete",
        described("三天内取得的答案都带演职员。", "Answers fetched in the last three days contain the credits."),
        guards.incomplete_answers,
    ),
    Guard(
        "nothing_older_than_terms_allow",
        described(
            "没有一列 TMDB 的资料超过其条款期限，原始答案在不在都算。",
            "No column holds facts of TMDB that are older than its terms allow, with or without the answer.",
        ),
        guards.outdated_facts,
    ),
    Guard(
        "no_relations_in_store",
        described("模式里只有本系统的表。", "The schema holds our tables only."),
        guards.strange_tables,
        warns=True,
    ),
]
_GRAPH_GUARDS = [
    Guard(
        "outbox_keeps_up",
        described("没有变更等待一小时以上，也没有搁置的。", "No change has waited for over an hour or was put aside."),
        guards.waiting_changes,
        warns=True,
    ),
    Guard(
        "graph_agrees_with_store",
        described("抽样的实体在图里与存储一致。", "A sample of entities is in the graph as stored."),
        guards.differing_entities,
        warns=True,
    ),
]

checks = [guard_checks(tmdb_entities, _ENTITY_GUARDS, _SHOWN), guard_checks(tmdb_graph, _GRAPH_GUARDS, _SHOWN)]
