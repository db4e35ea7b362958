"""Explains a comment's rank in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from douban_pipeline.comments.heat import score
from douban_pipeline.comments.heat.ranking import SHOWN_PARTS, Policy
from douban_pipeline.comments.heat.recall import PIN_STEP, Recalled, points_of
from douban_pipeline.comments.heat.rules import Rule, RuleDecision
from douban_pipeline.comments.heat.score import HEAT

PART_NAMES = {
    "approval": "口碑",
    "replies": "回复",
    "rate": "点赞率",
    "owner": "UP 主互动",
    "decay": "时间衰减",
    "rules": "规则",
    "pin": "置顶",
}


def part_name(part: str) -> str:
    """Return the display name of a part of the score."""
    return PART_NAMES[part]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A comment as the served order has it.

    Attributes:
        parts: The parts that this score is the sum of, those of 0 left out; None while they are not stored.
    """

    heat: int
    parts: Mapping[str, float] | None

    def part(self, name: str) -> float:
        """Return a part of its score."""
        return float((self.parts or {}).get(name, 0.0))


@dataclass(frozen=True, slots=True)
class ServedRank:
    """A comment's rank in the list that visitors are served.

    Attributes:
        place: Its place, counted from 1.
    """

    place: int
    total: int
    own: Neighbour
    upper: Neighbour | None = None
    lower: Neighbour | None = None
    decisions: tuple[str, ...] = ()
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a comment's score is computed from, as of now.

    Attributes:
        recalled: Effect of the rules in force on the comment alone.
        swept: Whether its age and windows are those of a sweep; else those of the section's beginning.
    """

    values: Mapping[str, Any]
    policy: Policy
    recalled: Recalled
    heat: int
    swept: bool
    same: bool


def explain(rank: ServedRank, facts: Facts) -> list[str]:
    """Return the explanation of a comment's place, in Chinese sentences."""
    own, place = rank.own, rank.place
    head = f"第 {place} 名，共 {rank.total} 条"
    if own.parts is None:
        sentences = [f"{head}；列表刚刚更新，各项得分还在写入，请稍后再看。"]
    else:
        sentences = [f"{head}；得分 {own.heat / HEAT - own.part('pin'):.3f}。"]
        if not facts.same:
            now = facts.heat / HEAT - float(facts.recalled.pinned[0])
            sentences.append(
                f"列表所用的是上次的得分；其中的数目是现在的，按现在的数据和规则应得 {now:.3f}，下次重排时更新。"
            )
        sentences += _of_parts(own, facts)
        sentences += _of_rules(facts) if facts.same else [f"规则「{name}」已计入。" for name in rank.decisions]
    if facts.swept:
        sentences.append("发布时长、近 24 小时和近 7 天从上次全区重排时算起。")
    else:
        sentences.append("本评论区还没有全区重排过：发布时长、近 24 小时和近 7 天从它建立时算起。")
    if rank.variant:
        sentences.append(f"本评论区参加实验 {rank.variant}。")
    if rank.upper is not None:
        sentences.append(f"低于第 {place - 1} 名 {_gap(rank.upper, own)}。")
    if rank.lower is not None:
        sentences.append(f"高于第 {place + 1} 名 {_gap(own, rank.lower)}。")
    return sentences


def explain_pinned(place: int) -> list[str]:
    """Return the explanation of a pinned comment's place, counted from 1, in Chinese sentences."""
    return [f"已置顶，是第 {place} 条置顶评论，排在列表之前，不按热度排序。"]


def _of_parts(own: Neighbour, facts: Facts) -> list[str]:
    def value(name: str) -> float:
        return float(facts.values[name])

    weights = facts.policy.weights
    length = float(score.length_weight(np.array([value("length")]), weights)[0])
    level = float(score.level_weight(np.array([value("level")]), weights)[0])
    sentences = [
        f"口碑 {own.part('approval'):+.3f}：{value('likes'):.0f} 赞、{value('dislikes'):.0f} 踩、"
        f"{value('reports'):.0f} 次举报（一次计 {weights.report_dislikes:g} 踩）的威尔逊下界，"
        f"乘字数系数 {length:.2f}（{value('length'):.0f} 字）和等级系数 {level:.2f}（{value('level'):.0f} 级）。",
        f"回复 {own.part('replies'):+.3f}：{value('replies'):.0f} 条可见回复。",
        f"点赞率 {own.part('rate'):+.3f}：近 24 小时曝光 {value('impressions_day'):.0f} 次、"
        f"点赞 {value('likes_day'):.0f} 次，近 7 天曝光 {value('impressions_week'):.0f} 次、"
        f"点赞 {value('likes_week'):.0f} 次，累计曝光 {value('impressions'):.0f} 次。",
    ]
    if own.part("owner"):
        did = [what for name, what in (("owner_liked", "点赞"), ("owner_replied", "回复")) if value(name)]
        sentences.append(f"UP 主互动 {own.part('owner'):+.3f}：UP 主{'、'.join(did) or '当时有互动'}。")
    sentences.append(f"时间衰减 {own.part('decay'):+.3f}：发布 {_age(value('age_hours'))}。")
    return sentences


def _of_rules(facts: Facts) -> list[str]:
    recalled = facts.recalled
    sentences: list[str] = []
    for rule in facts.policy.rules.rules:
        if recalled.counted[rule.name][0]:
            sentences.append(f"规则「{rule.name}」{_effect(rule)}{_reason(rule)}。")
        elif recalled.silenced[rule.name][0]:
            exempt = rule.name in recalled.exempted and recalled.exempted[rule.name][0]
            why = "已被豁免" if exempt else "让位于另一条规则"
            sentences.append(f"规则「{rule.name}」命中但不生效：{why}。")
    return sentences


def _effect(rule: Rule) -> str:
    if rule.decision is RuleDecision.PIN:
        return "置顶"
    if rule.decision is RuleDecision.EXEMPT:
        return f"豁免 {'、'.join(rule.exempts)}"
    return f"{'提权' if rule.decision is RuleDecision.BOOST else '降权'} {points_of(rule):+.3f}"


def _reason(rule: Rule) -> str:
    return f"：{rule.reason.rstrip('。')}" if rule.reason else ""


def _age(hours: float) -> str:
    return f"{hours:.1f} 小时" if hours < 48 else f"{hours / 24:.1f} 天"


def _gap(upper: Neighbour, lower: Neighbour) -> str:
    """Return the difference between two neighbours, and the part that contributes most to it."""
    if upper.heat == lower.heat:
        return "0 分：同分时较新的在前"
    gap = f"{(upper.heat - lower.heat) / HEAT:.3f} 分"
    if upper.parts is None or lower.parts is None:
        return gap
    differences = {name: upper.part(name) - lower.part(name) for name in SHOWN_PARTS}
    if abs(differences["pin"]) >= PIN_STEP / 2:
        return "一个置顶位"
    most = max(differences, key=lambda name: differences[name])
    return f"{gap}，主要差在{part_name(most)}（{differences[most]:+.3f}）"
