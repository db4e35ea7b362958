"""Checks of the digest."""

from collections.abc import Sequence

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks
from douban_pipeline.digest import guards
from douban_pipeline.digest.guards import DigestBreach

_SHOWN: BreachTable[DigestBreach] = BreachTable(
    things="problems",
    partitions="days",
    partition_of=lambda breach: breach.day or "—",
    row=lambda breach: {
        page_text("date"): breach.day,
        page_text("object"): breach.what,
        page_text("problem"): breach.problem,
    },
)

_ARTICLE_GUARDS = [
    Guard(
        "accounts_synced",
        page_text("WeRSS synced every followed account recently."),
        guards.stale_accounts,
        warns=True,
    ),
    Guard(
        "articles_arrive",
        page_text("No two consecutive slots were empty while WeRSS worked."),
        guards.empty_slots,
        warns=True,
    ),
]
_ANALYSIS_GUARDS = [
    Guard(
        "model_not_throttled",
        page_text("The model did not answer 429 in two consecutive slots."),
        guards.throttled_slots,
        warns=True,
    ),
    Guard(
        "no_instructions",
        page_text("No article of today influenced its own score."),
        guards.suspicious_articles,
        warns=True,
    ),
]
_REPORT_GUARDS = [
    Guard(
        "slots_done",
        page_text("Every due slot of today succeeded."),
        guards.undone_slots,
        warns=True,
    ),
    Guard(
        "report_delivered",
        page_text("The report of each day was delivered to a channel."),
        guards.undelivered_reports,
    ),
    Guard(
        "pushes_settled",
        page_text("No message was abandoned or has an unknown outcome."),
        guards.unsettled_pushes,
        warns=True,
    ),
]


def checks_for(assets: Sequence[dg.AssetsDefinition]) -> list[dg.AssetChecksDefinition]:
    """Return the checks of the four assets."""
    articles, analyses, _, report = assets
    return [
        guard_checks(articles, _ARTICLE_GUARDS, _SHOWN),
        guard_checks(analyses, _ANALYSIS_GUARDS, _SHOWN),
        guard_checks(report, _REPORT_GUARDS, _SHOWN),
    ]
