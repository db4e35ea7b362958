"""Checks of the comment system."""

import dagster as dg

from douban_pipeline.comments import guards
from douban_pipeline.comments.assets import hot_scores
from douban_pipeline.comments.guards import CommentBreach
from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import BreachTable, Guard, guard_checks

_SHOWN: BreachTable[CommentBreach] = BreachTable(
    things="breaches",
    partitions="sections",
    partition_of=lambda breach: str(breach.section_id or "—"),
    row=lambda breach: {"评论区": breach.section_id or "", "问题": breach.what},
)

_GUARDS = [
    Guard(
        "counters_agree",
        described(
            f"最近 {guards.SECTIONS} 个评论区的计数与明细一致。",
            f"Counters of the {guards.SECTIONS} latest sections match their rows.",
        ),
        lambda services, connection: guards.miscounted(connection),
        warns=True,
    ),
    Guard(
        "nothing_hidden_is_served",
        described(
            f"各列表前 {guards.PAGE} 条中没有已隐藏超过一分钟的评论。",
            f"No comment among the first {guards.PAGE} of a list was hidden more than a minute ago.",
        ),
        lambda services, connection: guards.hidden_in_lists(
            connection, services.heat_lists, services.lists, services.clock
        ),
    ),
    Guard(
        "events_keep_up",
        described(
            "没有事件在等工作进程，近一小时 95% 的事件在 2 秒内生效。",
            "No event waits for a worker, and 95 % of the last hour's events were applied within 2 seconds.",
        ),
        lambda services, connection: guards.late_events(connection, services.clock),
        warns=True,
    ),
    Guard(
        "caches_agree",
        described(
            f"各列表前 {guards.PAGE} 条次序正确，热度与数据表一致。",
            f"The first {guards.PAGE} of each list are in order, and their heat matches the tables.",
        ),
        lambda services, connection: guards.differing_lists(connection, services.heat_lists),
        warns=True,
    ),
    Guard(
        "audits_stand",
        described("没有评论的状态与最后一次审核的结论不同。", "No status of a comment differs from its last audit."),
        lambda services, connection: guards.overturned_audits(connection),
    ),
]

checks: list[dg.AssetChecksDefinition] = [guard_checks(hot_scores, _GUARDS, _SHOWN)]
