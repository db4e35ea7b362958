"""Precision for people: tables, bars and a plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from douban_pipeline.core.intervals import Interval
from douban_pipeline.core.ui.plots import Bar, bars
from douban_pipeline.core.ui.presentation import Markdown, share_text
from douban_pipeline.douban.reports.precision.braking import name_of
from douban_pipeline.douban.reports.precision.labels import Label
from douban_pipeline.douban.reports.precision.rates import PrecisionRate, clean_labels, target_status
from douban_pipeline.douban.store.brakes import Brake
from douban_pipeline.matching import SENTENCES

_CELLS = 20
_MOST_PLACES = 5


def lately(linked: int, judged: Collection[Label], days: int) -> str:
    """Return a one-line summary of recent links: how many were made, how many were checked, how many were wrong.

    Args:
        linked: Number of videos linked automatically within the period.
        judged: People's judgements of the period's links.
        days: Length of the period in days.
    """
    checked = len({label.link.vod_id for label in judged})
    line = f"最近 {days} 天自动关联 {linked} 部"
    if not checked:
        return f"{line}，还没有人工核对过" if linked else line
    wrong = [label for label in judged if not label.right]
    rate = PrecisionRate(len(judged) - len(wrong), len(judged))
    low, high = 1 - rate.interval.high, 1 - rate.interval.low
    line += f"，人工核对 {checked} 部，有误 {len({label.link.vod_id for label in wrong})} 部"
    line += f"（错误率 {len(wrong) / len(judged):.1%}，95% 区间 {low:.1%}–{high:.1%}）"
    where = Counter(name for label in wrong for name in label.link.strata)
    named = "、".join(f"{name_of(name)} {count}" for name, count in where.most_common(_MOST_PLACES))
    return f"{line}；错在：{named}" if named else line


def rate_row(rate: PrecisionRate) -> dict[str, object]:
    """Return the columns of a rate, which all tables share."""
    return {
        "核对": rate.total,
        "有误": rate.total - rate.right,
        "正确率": share_text(rate.share, ""),
        "95% 区间": f"{rate.interval.low:.1%}–{rate.interval.high:.1%}" if rate.total else "",
    }


def stratum_rows(
    rates: Mapping[str, PrecisionRate],
    counted: Mapping[str, PrecisionRate],
    brakes: Mapping[str, Brake],
    links: Mapping[str, int],
    *,
    target: float,
    least: int,
) -> list[dict[str, object]]:
    """Return a row for every stratum: its rate, the conclusion, and whether a brake is on.

    Args:
        rates: Rates from all labels.
        counted: Rates without the labels that a brake explains.
        brakes: The newest brakes.
        links: Number of current automatic links, by stratum.
        target: The lower bound that a stratum has to reach.
        least: Least number of labels to judge by.
    """
    return [
        {
            "类别": f"{name_of(name)}（{name}）",
            "自动关联": links.get(name, 0),
            **rate_row(rate),
            "50% … 100%": bar(rate),
            "结论": _conclusion(rate, counted[name], brakes.get(name), target, least),
        }
        for name, rate in rates.items()
    ]


def _conclusion(rate: PrecisionRate, counted: PrecisionRate, brake: Brake | None, target: float, least: int) -> str:
    if brake is not None and brake.on:
        return "自动确认已暂停"
    wanting = max(least, clean_labels(target)) - counted.total
    notes = [f"全对也还差 {wanting} 条"] if wanting > 0 else []
    notes += [f"{rate.total - counted.total} 条已由其他类别的暂停解释"] if counted.total < rate.total else []
    said = str(target_status(counted, target=target, least=least))
    return f"{said}（{'；'.join(notes)}）" if notes else said


def band_rows(rates: Mapping[str, PrecisionRate], links: Mapping[str, int]) -> list[dict[str, object]]:
    """Return a row for every score band that has labels."""
    return [
        {"得分": name, "自动关联": links.get(name, 0), **rate_row(rate), "50% … 100%": bar(rate)}
        for name, rate in rates.items()
    ]


def rule_rows(rules: Mapping[str, PrecisionRate]) -> list[dict[str, object]]:
    """Return a row for every rule that blocked a verdict which people settled."""
    return [
        {
            "规则": code,
            "含义": SENTENCES.get(code, ""),
            "被推翻": rate.right,
            "成立": rate.total - rate.right,
            "推翻率": share_text(rate.share, ""),
            "95% 区间": f"{rate.interval.low:.1%}–{rate.interval.high:.1%}",
        }
        for code, rate in rules.items()
    ]


def brake_rows(brakes: Iterable[Brake]) -> list[dict[str, object]]:
    """Return a row for every brake."""
    return [{"类别": f"{name_of(brake.stratum)}（{brake.stratum}）", "原因": brake.reason} for brake in brakes]


def bar(rate: PrecisionRate) -> Markdown:
    """Return a bar from 50 % to 100 %: dark up to the lower bound, light up to the upper one."""
    if not rate.total:
        return Markdown("")

    def cell(number: int) -> str:
        middle = 0.5 + 0.5 * (number + 0.5) / _CELLS
        return "█" if middle < rate.interval.low else "▒" if middle < rate.interval.high else "·"

    return Markdown("`" + "".join(map(cell, range(_CELLS))) + "`")


def plot(
    rates: Mapping[str, PrecisionRate], bands: Mapping[str, PrecisionRate], whole: PrecisionRate, *, target: float
) -> str:
    """Return a plot (SVG) of the precision of all groups that have labels; empty without labels."""
    named = {"全部": whole, **{name_of(name): rate for name, rate in rates.items()}}
    named |= {f"得分 {name}": rate for name, rate in bands.items()}
    rows = [
        Bar(name, rate.share, Interval(*rate.interval), f"{rate.right}/{rate.total}")
        for name, rate in named.items()
        if rate.total
    ]
    lowest = min((bar.interval.low for bar in rows if bar.interval), default=1.0)
    return bars(rows, title="自动关联的正确率", low=min(int(lowest * 10) / 10, 0.8), high=1.0, goal=target)
