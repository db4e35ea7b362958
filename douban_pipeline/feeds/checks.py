"""Checks of the feeds system."""

import dagster as dg

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks
from douban_pipeline.feeds import guards
from douban_pipeline.feeds.assets import feed_entries, feed_polls
from douban_pipeline.feeds.guards import FeedBreach

_SHOWN: BreachTable[FeedBreach] = BreachTable(
    things="sources",
    partitions="hosts",
    partition_of=lambda breach: breach.host or "—",
    row=lambda breach: {"主机": breach.host, "来源": breach.source, "问题": breach.what},
)

_POLL_GUARDS = [
    Guard(
        "no_source_starved",
        described("每个在用的来源到期后都抓取过。", "Every active source was polled when it was due."),
        guards.starved,
        warns=True,
    ),
    Guard(
        "every_source_planned",
        described("每个启用的来源都有抓取时间。", "Every active source has a time at which it is polled."),
        guards.never_polled,
        warns=True,
    ),
    Guard(
        "hosts_within_limits",
        described("没有主机每分钟被请求的次数超过上限。", "No host got more requests per minute than allowed."),
        guards.over_limit,
        warns=True,
    ),
    Guard(
        "errors_explained",
        described(
            "没有来源需要登录，也没有来源一直因不明原因失败。",
            "No source requires a login or keeps failing for an unknown reason.",
        ),
        guards.unexplained,
        warns=True,
    ),
    Guard(
        "hit_rate_in_range",
        described(
            f"一天的抓取中有新内容的比例在 {100 * guards.LOW_HIT_RATE:g}% 到 {100 * guards.HIGH_HIT_RATE:g}% 之间。",
            f"From {100 * guards.LOW_HIT_RATE:g} % to {100 * guards.HIGH_HIT_RATE:g} % of a day's polls find "
            "new entries.",
        ),
        guards.odd_hit_rate,
        warns=True,
    ),
]
_ENTRY_GUARDS = [
    Guard(
        "nothing_left_unread",
        described("没有来源的更新因太多而没读到。", "No source published more than was read of it."),
        guards.left_unread,
        warns=True,
    ),
    Guard(
        "entries_not_doubled",
        described("没有来源的内容重复入库。", "No entry of a source is stored twice."),
        guards.duplicate_entries,
        warns=True,
    ),
]

checks: list[dg.AssetChecksDefinition] = [
    guard_checks(feed_polls, _POLL_GUARDS, _SHOWN),
    guard_checks(feed_entries, _ENTRY_GUARDS, _SHOWN),
]
