"""Checks of the digest."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Found, Guard, guard_checks
from douban_pipeline.digest import guards
from douban_pipeline.digest.guards import DigestBreach

_SHOWN: BreachTable[DigestBreach] = BreachTable(
    things="problems",
    partitions="days",
    partition_of=lambda breach: breach.day or "—",
    row=lambda breach: {"日期": breach.day, "对象": breach.what, "问题": breach.problem},
)

Find = Callable[[Any, Connection], Iterable[DigestBreach]]


def _warns(find: Find, services: Any, connection: Connection) -> Found[DigestBreach]:
    """Return what ``find`` finds as a warning: it must not stop the report."""
    return Found([*find(services, connection)], stops=False)


_ARTICLE_GUARDS = [
    Guard(
        "accounts_synced",
        described("WeRSS 近期同步过每个关注的公众号。", "WeRSS synced every followed account lately."),
        partial(_warns, guards.stale_accounts),
    ),
    Guard(
        "articles_arrive",
        described("WeRSS 正常时，没有连续两个时段一篇文章也没有。", "Not two empty slots in a row with WeRSS well."),
        partial(_warns, guards.empty_slots),
    ),
]
_ANALYSIS_GUARDS = [
    Guard(
        "model_not_throttled",
        described("模型没有在连续两个时段返回 429。", "No 429s in two slots in a row."),
        partial(_warns, guards.throttled_slots),
    ),
    Guard(
        "no_instructions",
        described("今天没有文章夹带对模型的指令。", "No article of today speaks to the model."),
        partial(_warns, guards.suspicious_articles),
    ),
]
_REPORT_GUARDS = [
    Guard(
        "slots_done",
        described("今天到点的时段都正常结束。", "Every slot of today that is due ended well."),
        partial(_warns, guards.undone_slots),
    ),
    Guard(
        "report_delivered",
        described("每天的日报都至少送达一个渠道。", "The report of each day reached a channel."),
        guards.undelivered_reports,
    ),
    Guard(
        "pushes_settled",
        described("没有消息被放弃，也没有结果不明的。", "No message is given up, or of unknown fate."),
        partial(_warns, guards.unsettled_pushes),
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
