"""The home page: current problems, current numbers, what was done, and links to every list and report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, Link, ListColumn, Table
from douban_pipeline.core.ui.lists.table_page import table_page
from douban_pipeline.core.ui.presentation import share_text
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban.reports.lists.catalogue import LISTS, page_frame
from douban_pipeline.douban.reports.lists.last_day import Trouble, last_day, troubles
from douban_pipeline.douban.reports.lists.spec import list_path
from douban_pipeline.douban.reports.lists.statistics import UNWRITTEN_DAYS, Statistics, statistics
from douban_pipeline.douban.reports.lists.system_states import WORDS, SystemState
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable

RENEWED_SECONDS = 120
"""How often a browser that has the page open loads it again."""
_NAMED = 3
"""Most problems that the first line names."""

_IN_DAGSTER = (
    ("全部资产", "/asset-groups", "谁依赖谁，上次何时更新"),
    ("运行", "/runs", "正在做什么，做过什么"),
    ("作业", "/jobs", "手动启动：导入、撤销、暂停来源……"),
    ("健康", "/assets/pipeline_health", "积压、失败、耗时、花费"),
    ("数据源", "/assets/source_gates", "熔断、速度、配额"),
    ("定时与传感器", "/automation", "自动运行的开关"),
)


def _tables(
    services: Services, found: Statistics, wrong: Sequence[Trouble], systems: Sequence[SystemState]
) -> Iterator[Table]:
    if wrong:
        yield Table(
            "troubles",
            "需要处理",
            (
                ListColumn("what", "什么"),
                ListColumn("detail", "说明", width="wide"),
                ListColumn("since", "自", ColumnKind.TIME),
                ListColumn("page", "查看", ColumnKind.LINK),
            ),
            [
                {"what": each.title, "detail": each.detail, "since": each.since, "page": Link("查看", each.address)}
                for each in wrong
            ],
        )
    if systems:
        yield Table(
            "systems",
            "其他系统",
            (
                ListColumn("system", "系统", ColumnKind.LINK),
                ListColumn("state", "状态", width="narrow"),
                ListColumn("said", "说明", width="wide"),
            ),
            [
                {
                    "system": Link(each.title, each.page),
                    "state": WORDS[each.state],
                    "said": each.said or "没有发现问题",
                }
                for each in systems
            ],
        )
    yield Table(
        "last_day",
        "最近 24 小时",
        (ListColumn("what", "做了什么"), ListColumn("page", "详情", ColumnKind.LINK)),
        [{"what": deed.sentence, "page": Link("详情", deed.address)} for deed in last_day(services)],
        empty="没有要做的，也没有人做什么",
    )
    per_list = {
        "review": (found.in_review, "影片"),
        "missing": (found.missing, "影片"),
        "duplicates": (found.shared, "影片"),
        "locked": (found.locked_ids, "影片"),
        "intros": (found.locked_intros, "已锁定"),
        "tasks": (found.open_tasks, "未完成"),
        "decisions": (found.decisions, "等待执行"),
        "log": (found.unwritten, f"{UNWRITTEN_DAYS} 天内未写入"),
    }
    yield Table(
        "lists",
        "列表",
        (
            ListColumn("list", "列表", ColumnKind.LINK),
            ListColumn("count", "数量", ColumnKind.NUMBER),
            ListColumn("of", "其中", width="narrow"),
            ListColumn("about", "说明", width="wide"),
        ),
        [
            {"list": Link("审核单", "review/"), "count": found.in_review, "of": "影片", "about": "逐部比较并决定"},
            *(
                {"list": Link(spec.title, list_path(name)), "count": count, "of": of, "about": spec.about}
                for name, spec in ((name, make(services)) for name, make in LISTS.items())
                for count, of in [per_list.get(name, (None, None))]
            ),
        ],
    )
    linked = (ListColumn("page", "页面", ColumnKind.LINK), ListColumn("about", "内容", width="wide"))
    dagster = [{"page": Link(title, address), "about": text} for title, address, text in _IN_DAGSTER]
    yield Table("dagster", "Dagster", linked, dagster)


def _cards(found: Statistics) -> list[Card]:
    return [
        Card("影片总数", f"{found.total:,}", f"其中已忽略 {found.ignored:,}"),
        Card("有豆瓣 ID", f"{found.with_id:,}", _share(found.with_id, found.total)),
        Card("无豆瓣 ID", f"{found.without_id:,}", _share(found.without_id, found.total)),
        Card("未检查", f"{found.unchecked:,}", "还没有查找，或要重新查找"),
        Card("未找到", f"{found.not_found:,}", "查找过，没有合适的条目"),
        Card("待审核", f"{found.in_review:,}", "等待人工"),
        *([Card("等待回答", f"{found.held:,}", "ID 在 CMS 中一并被清空")] if found.held else []),
        Card("豆瓣 ID 重复", f"{found.shared:,}", "与他片共用一个 ID"),
        Card("冲突", f"{found.conflicts:,}", "待审核中有冲突项的影片"),
        Card("已锁定 ID", f"{found.locked_ids:,}", f"已锁定简介 {found.locked_intros:,}"),
        Card("今天到期", f"{found.due_today:,}", f"其中已到期 {found.due_now:,}"),
        Card("今天完成", f"{found.done_today:,}", f"队列中 {found.open_tasks:,}"),
        Card("简介未通过核对", f"{found.failed_today:,}", "今天；间隔期满后再写", problem_tone(found.failed_today)),
        Card("待执行的决定", f"{found.decisions:,}", "通常半分钟内执行"),
        Card(
            "未写入的变更",
            f"{found.unwritten:,}",
            f"{UNWRITTEN_DAYS} 天内被拒绝或不一致",
            problem_tone(found.unwritten),
        ),
    ]


def _lead(
    wrong: Sequence[Trouble], systems: Sequence[SystemState], found: Statistics, *, dry_run: bool
) -> tuple[str, str]:
    """Return the state of all systems in one line; videos in review are mentioned, but do not count as a problem."""
    waiting = f"；{found.in_review:,} 部影片等人审核" if found.in_review else ""
    waiting += f"；现在是试运行，什么都不写入 CMS（{variable('dry_run')}=true）" if dry_run else ""
    failed = [f"{each.title}有故障" for each in systems if each.state == "fail"]
    doubtful = [each.title for each in systems if each.state == "warn"]
    mind = f"；请留意{'、'.join(doubtful)}" if doubtful else ""
    titles = [*failed, *(each.title for each in wrong)]
    if titles:
        more = f"等 {len(titles)} 件" if len(titles) > _NAMED else ""
        return f"需要处理：{'；'.join(titles[:_NAMED])}{more}{mind}{waiting}", "bad"
    return (f"没有故障{mind}{waiting}", "") if doubtful else (f"一切正常{waiting}", "good")


def _share(part: int, of: int) -> str:
    return share_text(part / of if of else None, "")


def front_page(services: Services, systems: Sequence[SystemState]) -> tuple[str, str]:
    """Return the page as HTML, and its content security policy; ``systems`` are the others' states."""
    found = statistics(services)
    wrong = troubles(services, found)
    return table_page(
        "首页",
        f"打开时读取，每 {RENEWED_SECONDS // 60} 分钟自动刷新。",
        Figures({}, _cards(found), list(_tables(services, found, wrong, systems))),
        page_frame(services, ""),
        services.clock.now(),
        lead=_lead(wrong, systems, found, dry_run=services.settings.dry_run),
        renewed_seconds=RENEWED_SECONDS,
    )
