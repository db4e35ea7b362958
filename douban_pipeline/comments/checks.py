"""Checks of the comment system."""

import dagster as dg

from douban_pipeline.comments import guards
from douban_pipeline.comments.assets import hot_scores
from douban_pipeline.comments.guards import CommentBreach
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks

_SHOWN: BreachTable[CommentBreach] = BreachTable(
    things="breaches",
    partitions="sections",
    partition_of=lambda breach: str(breach.section_id or "—"),
    row=lambda breach: {page_text("section"): breach.section_id or "", page_text("problem"): breach.what},
)

_GUARDS = [
    Guard(
        "counters_agree",
        page_text("Counters of the {sections} latest sections match their rows.").format(sections=guards.SECTIONS),
        lambda services, connection: guards.miscounted(connection),
        warns=True,
    ),
    Guard(
        "nothing_hidden_is_served",
        page_text("No comment among the first {page} of a list was hidden more than a minute ago.").format(
            page=guards.PAGE
        ),
        lambda services, connection: guards.hidden_in_lists(
            connection, services.heat_lists, services.lists, services.clock
        ),
    ),
    Guard(
        "events_keep_up",
        page_text("No event waits for a worker, and 95 % of the last hour's events were applied within 2 seconds."),
        lambda services, connection: guards.late_events(connection, services.clock),
        warns=True,
    ),
    Guard(
        "caches_agree",
        page_text("The first {page} of each list are in order, and their heat matches the tables.").format(
            page=guards.PAGE
        ),
        lambda services, connection: guards.differing_lists(connection, services.heat_lists),
        warns=True,
    ),
    Guard(
        "audits_stand",
        page_text("No status of a comment differs from its last audit."),
        lambda services, connection: guards.overturned_audits(connection),
    ),
]

checks: list[dg.AssetChecksDefinition] = [guard_checks(hot_scores, _GUARDS, _SHOWN)]
