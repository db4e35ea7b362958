"""Checks of the feeds system."""

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks
from douban_pipeline.feeds import guards
from douban_pipeline.feeds.assets import feed_entries, feed_polls
from douban_pipeline.feeds.guards import FeedBreach

_SHOWN: BreachTable[FeedBreach] = BreachTable(
    things="sources",
    partitions="hosts",
    partition_of=lambda breach: breach.host or "—",
    row=lambda breach: {
        page_text("host"): breach.host,
        page_text("source"): breach.source,
        page_text("problem"): breach.what,
    },
)

_POLL_GUARDS = [
    Guard(
        "no_source_starved",
        page_text("Every active source was polled when it was due."),
        guards.starved,
        warns=True,
    ),
    Guard(
        "every_source_planned",
        page_text("Every active source has a time at which it is polled."),
        guards.never_polled,
        warns=True,
    ),
    Guard(
        "hosts_within_limits",
        page_text("No host got more requests per minute than allowed."),
        guards.over_limit,
        warns=True,
    ),
    Guard(
        "errors_explained",
        page_text("No source requires a login or keeps failing for an unknown reason."),
        guards.unexplained,
        warns=True,
    ),
    Guard(
        "hit_rate_in_range",
        page_text("From {value:g} % to {value_2:g} % of a day's polls find new entries.").format(
            value=100 * guards.LOW_HIT_RATE, value_2=100 * guards.HIGH_HIT_RATE
        ),
        guards.odd_hit_rate,
        warns=True,
    ),
]
_ENTRY_GUARDS = [
    Guard(
        "nothing_left_unread",
        page_text("No source published more than was read of it."),
        guards.left_unread,
        warns=True,
    ),
    Guard(
        "entries_not_doubled",
        page_text("No entry of a source is stored twice."),
        guards.duplicate_entries,
        warns=True,
    ),
]

checks: list[dg.AssetChecksDefinition] = [
    guard_checks(feed_polls, _POLL_GUARDS, _SHOWN),
    guard_checks(feed_entries, _ENTRY_GUARDS, _SHOWN),
]
