"""Checks of the digest."""

from collections.abc import Sequence

import dagster as dg

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks
from douban_pipeline.digest import guards
from douban_pipeline.digest.guards import DigestBreach

_SHOWN: BreachTable[DigestBreach] = BreachTable(
    things="problems",
    partitions="days",
    partition_of=lambda breach: breach.day or "—",
    row=lambda breach: {"日期": breach.day, "对象": breach.what, "问题": breach.problem},
)

_ARTICLE_GUARDS = [
    Guard(
        "accounts_synced",
        described("WeRSS 近期同步过每个关注的公众号。", "WeRSS synced every followed account recently."),
        guards.stale_accounts,
        warns=True,
    ),
    Guard(
        "articles_arrive",
        described(
            "WeRSS 正常时，没有连续两个时段一篇文章也没有。", "No two consecutive slots were empty while WeRSS worked."
        ),
        guards.empty_slots,
        warns=True,
    ),
]
_ANALYSIS_GUARDS = [
    Guard(
        "model_not_throttled",
        described("模型没有在连续两个时段返回 429。", "The model did not answer 429 in two consecutive slots."),
        guards.throttled_slots,
        warns=True,
    ),
    Guard(
        "no_instructions",
        described("今天没有文章的分数受正文里写给模型的句子影响。", "No article of today influenced its own score."),
        guards.suspicious_articles,
        warns=True,
    ),
]
_REPORT_GUARDS = [
    Guard(
        "slots_done",
        described("今天到点的时段都正常结束。", "Every due slot of today succeeded."),
        guards.undone_slots,
        warns=True,
    ),
    Guard(
        "report_delivered",
        described("每天的日报都至少送达一个渠道。", "The report of each day was delivered to a channel."),
        guards.undelivered_reports,
    ),
    Guard(
        "pushes_settled",
        described("没有消息被放弃，也没有结果不明的。", "No message was abandoned or has an unknown outcome."),
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
