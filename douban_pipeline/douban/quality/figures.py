"""Tables and bars of Dagster's pages: the precision of automatic links, and what other rules would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from douban_pipeline.core.intervals import Rate
from douban_pipeline.core.ui.presentation import Markdown, share_text, subject_link
from douban_pipeline.douban.quality.labels import LinkLabel
from douban_pipeline.douban.quality.library_replay import RejudgedVerdict, Replay
from douban_pipeline.douban.quality.rates import (
    OPENING_ERROR,
    Opening,
    clean_decisions,
    clean_labels,
    target_status,
)
from douban_pipeline.douban.store.brakes import Brake
from douban_pipeline.douban.wording import VERDICTS, word_for
from douban_pipeline.matching import SENTENCES
from douban_pipeline.matching.strata import STRATA, stratum_name

_CELLS = 20
_MOST_PLACES = 5
_ORDER = list(VERDICTS)


def lately(linked: int, judged: Collection[LinkLabel], days: int) -> str:
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
    rate = Rate(len(judged) - len(wrong), len(judged))
    low, high = 1 - rate.interval.high, 1 - rate.interval.low
    line += f"，人工核对 {checked} 部，有误 {len({label.link.vod_id for label in wrong})} 部"
    line += f"（错误率 {len(wrong) / len(judged):.1%}，95% 区间 {low:.1%}–{high:.1%}）"
    where = Counter(name for label in wrong for name in label.link.strata)
    named = "、".join(f"{stratum_name(name)} {count}" for name, count in where.most_common(_MOST_PLACES))
    return f"{line}；错在：{named}" if named else line


def stratum_label(stratum: str) -> str:
    """Return a stratum's name for people, with its code."""
    return f"{stratum_name(stratum)}（{stratum}）"


def rate_row(rate: Rate) -> dict[str, object]:
    """Return the columns of a rate, which all tables share."""
    return {
        "核对": rate.total,
        "有误": rate.misses,
        "正确率": share_text(rate.share, ""),
        "95% 区间": f"{rate.interval.low:.1%}–{rate.interval.high:.1%}" if rate.total else "",
    }


def stratum_rows(
    rates: Mapping[str, Rate],
    counted: Mapping[str, Rate],
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
            "类别": stratum_label(name),
            "自动关联": links.get(name, 0),
            **rate_row(rate),
            "50% … 100%": bar(rate),
            "结论": _conclusion(rate, counted.get(name, Rate(0, 0)), brakes.get(name), target, least),
        }
        for name, rate in rates.items()
    ]


def _conclusion(rate: Rate, counted: Rate, brake: Brake | None, target: float, least: int) -> str:
    if brake is not None and brake.on:
        return "自动确认已暂停"
    wanting = max(least, clean_labels(target)) - counted.total
    notes = [f"全对也还差 {wanting} 条"] if wanting > 0 else []
    notes += [f"{rate.total - counted.total} 条已由其他类别的暂停解释"] if counted.total < rate.total else []
    said = str(target_status(counted, target=target, least=least))
    return f"{said}（{'；'.join(notes)}）" if notes else said


def band_rows(rates: Mapping[str, Rate], links: Mapping[str, int]) -> list[dict[str, object]]:
    """Return a row for every score band that has labels."""
    return [
        {"得分": name, "自动关联": links.get(name, 0), **rate_row(rate), "50% … 100%": bar(rate)}
        for name, rate in rates.items()
    ]


def rule_rows(rules: Mapping[str, Rate]) -> list[dict[str, object]]:
    """Return a row for every rule that blocked a verdict which people settled."""
    return [
        {
            "规则": code,
            "含义": SENTENCES.get(code, ""),
            "被推翻": rate.hits,
            "成立": rate.misses,
            "推翻率": share_text(rate.share, ""),
            "95% 区间": f"{rate.interval.low:.1%}–{rate.interval.high:.1%}",
        }
        for code, rate in rules.items()
    ]


def opening_rows(found: Iterable[Opening], opened: Collection[str]) -> list[dict[str, object]]:
    """Return a row for every stratum that a person may open: what people decided, and whether it would be safe."""
    return [
        {
            "类别": stratum_label(each.stratum),
            "同意首选": each.agreed,
            "不同意": each.differed,
            "审核员": each.people,
            "批量，不计": each.at_once,
            "错误率至多": f"{each.error:.1%}（95% 置信）" if each.agreed + each.differed else "",
            "结论": "已开放" if each.stratum in opened else opening_conclusion(each),
        }
        for each in found
    ]


def opening_conclusion(found: Opening) -> str:
    """Return whether a stratum would be safe to open, and if not why, in Chinese."""
    if found.safe:
        return "可以放心开放，由人决定（lift_brakes）"
    if found.differed:
        return f"不宜开放：{found.differed} 条与首选不同"
    return f"证据不足：逐条同意首选的有 {found.agreed} 条，至少要 {clean_decisions(OPENING_ERROR)} 条"


def brake_rows(brakes: Iterable[Brake]) -> list[dict[str, object]]:
    """Return a row for every brake."""
    return [{"类别": stratum_label(brake.stratum), "原因": brake.reason} for brake in brakes]


def bar(rate: Rate) -> Markdown:
    """Return a bar from 50 % to 100 %: dark up to the lower bound, light up to the upper one."""
    if not rate.total:
        return Markdown("")

    def cell(number: int) -> str:
        middle = 0.5 + 0.5 * (number + 0.5) / _CELLS
        return "█" if middle < rate.interval.low else "▒" if middle < rate.interval.high else "·"

    return Markdown("`" + "".join(map(cell, range(_CELLS))) + "`")


# --- the library judged again -----------------------------------------------------------------------------------------


def _name(status: str) -> str:
    return word_for(VERDICTS, status)


def _move(judged: RejudgedVerdict) -> str:
    before, after = judged.stored.status, judged.status
    if before != after:
        return f"{_name(before)} → {_name(after)}"
    return f"{_name(before)}，换条目" if before == "CONFIRMED" else f"{_name(before)}，换首选"


def move_rows(found: Replay) -> list[dict[str, object]]:
    """Return the numbers of verdicts by status before and after, the changed ones first."""

    def order(move: tuple[str, str, bool]) -> tuple[bool, int, int, bool]:
        before, after, other = move
        return (before == after and not other, _place(before), _place(after), other)

    return [
        {
            "之前": _name(before),
            "之后": _name(after),
            "条目": "另一条目" if other else "不变",
            "影片": found.moves[before, after, other],
            "占比": f"{found.moves[before, after, other] / found.replayed:.2%}",
        }
        for before, after, other in sorted(found.moves, key=order)
    ]


def _place(status: str) -> int:
    return _ORDER.index(status) if status in _ORDER else len(_ORDER)


def code_rows(found: Replay) -> list[dict[str, object]]:
    """Return the reasons whose number changed, the greatest difference first."""
    before, after = found.codes_before, found.codes_after
    differing = [code for code in {*before, *after} if before[code] != after[code]]
    differing.sort(key=lambda code: (-abs(after[code] - before[code]), code))
    return [
        {
            "原因": code,
            "含义": SENTENCES.get(code, ""),
            "之前": before[code],
            "之后": after[code],
            "差": f"{after[code] - before[code]:+d}",
        }
        for code in differing
    ]


def replayed_stratum_rows(found: Replay) -> list[dict[str, object]]:
    """Return the numbers of confirmed verdicts before and after, by stratum."""
    known = [name for name in STRATA if name in found.strata]
    return [
        {
            "类别": stratum_label(name),
            "影片": found.strata[name],
            "之前自动确认": found.strata_before[name],
            "之后自动确认": found.strata_after[name],
            "判定改变": found.strata_changed[name],
        }
        for name in known
    ]


def example_rows(found: Replay) -> list[dict[str, object]]:
    """Return the kept examples, by kind of change."""
    kinds = sorted(found.examples, key=lambda kind: (_place(kind[0]), _place(kind[1])))
    return [
        {
            "影片": f"{judged.stored.vod_id} {judged.stored.case.video.title}",
            "变化": _move(judged),
            "之前条目": subject_link(judged.stored.douban_id),
            "之前说明": judged.stored.explanation,
            "之后条目": subject_link(judged.douban_id),
            "之后说明": judged.explanation,
        }
        for kind in kinds
        for judged in found.examples[kind]
    ]


def people_rows(found: Replay) -> list[dict[str, object]]:
    """Return the numbers of confirmed verdicts that agree or disagree with people's choices."""
    before, after = found.people_before, found.people_after
    return [
        {"": "与人工选择一致", "之前": before[True], "之后": after[True]},
        {"": "与人工选择不一致", "之前": before[False], "之后": after[False]},
    ]


def lost_rows(found: Replay) -> list[dict[str, object]]:
    """Return the reasons why videos could not be judged again, each with a few videos."""
    return [
        {
            "原因": why,
            "影片": count,
            "例如": "、".join(str(lost.vod_id) for lost in found.lost_videos if lost.why == why),
        }
        for why, count in found.lost.most_common()
    ]


def version_rows(found: Replay) -> list[dict[str, object]]:
    """Return the rule versions and profiles of the stored verdicts."""
    rows = [("规则版本", name, count) for name, count in found.rule_versions.most_common()]
    rows += [("评分方案", name, count) for name, count in found.profiles.most_common()]
    return [{"": what, "名称": name, "影片": count} for what, name, count in rows]
