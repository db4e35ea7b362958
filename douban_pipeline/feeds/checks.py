"""Checks of the feeds system."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Found, Guard, guard_checks
from douban_pipeline.feeds import guards
from douban_pipeline.feeds.assets import feed_entries, feed_polls
from douban_pipeline.feeds.guards import FeedBreach

_SHOWN: BreachTable[FeedBreach] = BreachTable(
    things="sources",
    partitions="hosts",
    partition_of=lambda breach: breach.host or "—",
    row=lambda breach: {"主机": breach.host, "来源": breach.source, "问题": breach.what},
)

Find = Callable[[Any, Connection], Iterable[FeedBreach]]


def _warns(find: Find, services: Any, connection: Connection) -> Found[FeedBreach]:
    """Return what ``find`` finds as a warning: one source that is ill must not stop the others."""
    return Found([*find(services, connection)], stops=False)


_POLL_GUARDS = [
    Guard(
        "no_source_starved",
        described("每个在用的来源到期后都抓取过。", "Every active source was asked when it was due."),
        partial(_warns, guards.starved),
    ),
    Guard(
        "hosts_within_limits",
        described("没有主机每分钟被请求的次数超过上限。", "No host got more requests a minute than it may."),
        partial(_warns, guards.over_limit),
    ),
    Guard(
        "errors_explained",
        described(
            "没有来源需要登录，也没有来源一直因不明原因失败。",
            "No source wants a login, and none keeps failing for an unknown reason.",
        ),
        partial(_warns, guards.unexplained),
    ),
    Guard(
        "hit_rate_in_range",
        described(
            f"一天的抓取中有新内容的比例在 {100 * guards.LOW_HIT_RATE:g}% 到 {100 * guards.HIGH_HIT_RATE:g}% 之间。",
            f"From {100 * guards.LOW_HIT_RATE:g} % to {100 * guards.HIGH_HIT_RATE:g} % of a day's checks find "
            "something.",
        ),
        partial(_warns, guards.odd_hit_rate),
    ),
]
_ENTRY_GUARDS = [
    Guard(
        "entries_not_doubled",
        described("没有来源的内容重复入库。", "No entry of a source stands twice."),
        guards.doubled_entries,
    )
]

checks: list[dg.AssetChecksDefinition] = [
    guard_checks(feed_polls, _POLL_GUARDS, _SHOWN),
    guard_checks(feed_entries, _ENTRY_GUARDS, _SHOWN),
]
