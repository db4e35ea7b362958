"""Explains a comment's rank in sentences."""

from __future__ import annotations

import numpy as np

from douban_pipeline.comments.heat import score
from douban_pipeline.comments.heat.graph import Columns
from douban_pipeline.comments.heat.ranking import SHOWN_PARTS, Policy, Ranking
from douban_pipeline.comments.heat.recall import PIN_STEP, points_of
from douban_pipeline.comments.heat.rules import Decision, Rule, RuleSet
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


def explain(ranking: Ranking, place: int, read: Columns, policy: Policy) -> list[str]:
    """Return the explanation of the rank of the comment at ``place``, in Chinese sentences.

    Args:
        ranking: The ranked section.
        place: Place, counted from 1.
        read: The columns that the ranking was computed from.
        policy: The policy of the ranking.

    Raises:
        IndexError: The section has no such place.
    """
    if not 1 <= place <= len(ranking):
        raise IndexError(f"place {place} of {len(ranking)}")
    at = place - 1
    row = int(ranking.rows[at])
    parts = {name: float(ranking.parts[name][at]) for name in SHOWN_PARTS}
    points = float(ranking.heat[at]) / HEAT - parts["pin"]
    sentences = [f"第 {place} 名，共 {len(ranking)} 条；得分 {points:.3f}。"]
    sentences += _of_parts(parts, row, read, policy)
    sentences += _of_rules(policy.rules, ranking, row)
    if policy.variant:
        sentences.append(f"本评论区参加实验 {policy.variant}。")
    if at:
        sentences.append(f"低于第 {place - 1} 名 {_gap(ranking, at - 1, at)}。")
    if place < len(ranking):
        sentences.append(f"高于第 {place + 1} 名 {_gap(ranking, at, at + 1)}。")
    return sentences


def _of_parts(parts: dict[str, float], row: int, read: Columns, policy: Policy) -> list[str]:
    def value(name: str) -> float:
        return float(read[name][row])

    weights = policy.weights
    length = float(score.length_weight(np.array([value("length")]), weights)[0])
    level = float(score.level_weight(np.array([value("level")]), weights)[0])
    sentences = [
        f"口碑 {parts['approval']:+.3f}：{value('likes'):.0f} 赞、{value('dislikes'):.0f} 踩、"
        f"{value('reports'):.0f} 次举报（一次计 {weights.report_dislikes:g} 踩）的威尔逊下界，"
        f"乘字数系数 {length:.2f}（{value('length'):.0f} 字）和等级系数 {level:.2f}（{value('level'):.0f} 级）。",
        f"回复 {parts['replies']:+.3f}：{value('replies'):.0f} 条可见回复。",
        f"点赞率 {parts['rate']:+.3f}：近 24 小时曝光 {value('impressions_day'):.0f} 次、"
        f"点赞 {value('likes_day'):.0f} 次，近 7 天曝光 {value('impressions_week'):.0f} 次、"
        f"点赞 {value('likes_week'):.0f} 次，累计曝光 {value('impressions'):.0f} 次。",
    ]
    if parts["owner"]:
        did = [what for name, what in (("owner_liked", "点赞"), ("owner_replied", "回复")) if value(name)]
        sentences.append(f"UP 主互动 {parts['owner']:+.3f}：UP 主{'、'.join(did)}。")
    sentences.append(f"时间衰减 {parts['decay']:+.3f}：发布 {_age(value('age_hours'))}。")
    return sentences


def _of_rules(rules: RuleSet, ranking: Ranking, row: int) -> list[str]:
    recalled = ranking.recalled
    sentences: list[str] = []
    for rule in rules.rules:
        if recalled.counted[rule.name][row]:
            sentences.append(f"规则「{rule.name}」{_effect(rule)}{_reason(rule)}。")
        elif recalled.silenced[rule.name][row]:
            exempt = rule.name in recalled.exempted and recalled.exempted[rule.name][row]
            why = "已被豁免" if exempt else "让位于另一条规则"
            sentences.append(f"规则「{rule.name}」命中但不生效：{why}。")
    return sentences


def _effect(rule: Rule) -> str:
    if rule.decision is Decision.PIN:
        return "置顶"
    if rule.decision is Decision.EXEMPT:
        return f"豁免 {'、'.join(rule.exempts)}"
    return f"{'提权' if rule.decision is Decision.BOOST else '降权'} {points_of(rule):+.3f}"


def _reason(rule: Rule) -> str:
    return f"：{rule.reason.rstrip('。')}" if rule.reason else ""


def _age(hours: float) -> str:
    return f"{hours:.1f} 小时" if hours < 48 else f"{hours / 24:.1f} 天"


def _gap(ranking: Ranking, upper: int, lower: int) -> str:
    """Return the difference between two neighbours, and the part that contributes most to it."""
    if ranking.heat[upper] == ranking.heat[lower]:
        return "0 分：同分时较新的在前"
    differences = {name: float(ranking.parts[name][upper]) - float(ranking.parts[name][lower]) for name in SHOWN_PARTS}
    if abs(differences["pin"]) >= PIN_STEP / 2:
        return "一个置顶位"
    gap = float(ranking.heat[upper] - ranking.heat[lower]) / HEAT
    most = max(differences, key=lambda name: differences[name])
    return f"{gap:.3f} 分，主要差在{part_name(most)}（{differences[most]:+.3f}）"
