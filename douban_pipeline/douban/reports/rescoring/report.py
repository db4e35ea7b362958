"""The result of a replay as tables for people."""

from __future__ import annotations

from douban_pipeline.core.ui.presentation import subject_link
from douban_pipeline.douban.reports.rescoring.replay import RejudgedVerdict, Replay
from douban_pipeline.douban.wording import VERDICTS, word_for
from douban_pipeline.matching import SENTENCES
from douban_pipeline.matching.strata import STRATA

_ORDER = list(VERDICTS)


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


def stratum_rows(found: Replay) -> list[dict[str, object]]:
    """Return the numbers of confirmed verdicts before and after, by stratum."""
    known = [name for name in STRATA if name in found.strata]
    return [
        {
            "类别": f"{STRATA[name]}（{name}）",
            "影片": found.strata[name].videos,
            "之前自动确认": found.strata[name].before,
            "之后自动确认": found.strata[name].after,
            "判定改变": found.strata[name].changed,
        }
        for name in known
    ]


def example_rows(found: Replay) -> list[dict[str, object]]:
    """Return the kept examples, by kind of change."""
    kinds = sorted(found.examples, key=lambda kind: (_place(kind[0]), _place(kind[1])))
    return [
        {
            "影片": f"{judged.stored.vod_id} {judged.stored.video.title}",
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
    people = found.people
    return [
        {"": "与人工选择一致", "之前": people.right_before, "之后": people.right_after},
        {"": "与人工选择不一致", "之前": people.wrong_before, "之后": people.wrong_after},
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
