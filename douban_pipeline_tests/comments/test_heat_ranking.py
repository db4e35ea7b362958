"""Explanations, what-ifs and experiments over a small section."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from douban_pipeline.comments.heat.experiments import BUCKETS, Experiment, Policies, Variant, bucket_of, variant_of
from douban_pipeline.comments.heat.explanation import Facts, Neighbour, ServedRank, explain
from douban_pipeline.comments.heat.ranking import Policy, columns_to_read, rank
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleScope, rule_set
from douban_pipeline.comments.heat.what_if import top_moves, what_if
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline_tests.comments.heat_columns import columns_of, ids_of

SECTION = [
    {"likes": 40, "replies": 6, "age_hours": 3, "length": 30},
    {"likes": 25, "replies": 2, "age_hours": 5, "length": 20, "owner_liked": True},
    {"likes": 9, "replies": 0, "age_hours": 2, "length": 5, "guest": True, "content": "加群"},
    {"likes": 2, "replies": 0, "age_hours": 80, "level": 3},
    {"likes": 0, "age_hours": 1},
]
SPAM = Rule("spam", "content =~~ '加群'", RuleDecision.SINK, 2.0, reason="招揽加群的评论不进前排。")


def explained(place: int, policy: Policy, *, variant: str = "", same: bool = True, swept: bool = True) -> list[str]:
    """Return the explanation of a place of `SECTION`, whose scores are stored as they are computed."""
    read = columns_of(SECTION)
    ranking = rank(ids_of(SECTION), read, policy)

    def neighbour(at: int) -> Neighbour | None:
        if not 0 <= at < len(ranking):
            return None
        return Neighbour(int(ranking.heat[at]), {name: float(column[at]) for name, column in ranking.parts.items()})

    own, row = neighbour(place - 1), int(ranking.rows[place - 1])
    assert own is not None
    columns = {name: column[row : row + 1] for name, column in read.items()}
    alone = rank(ranking.ids[place - 1 : place], columns, policy)
    values = {name: column[0] for name, column in columns.items()}
    facts = Facts(values, policy, alone.recalled, int(alone.heat[0]), swept, same)
    counted = tuple(name for name, hit in alone.recalled.counted.items() if hit[0])
    served = ServedRank(place, len(ranking), own, neighbour(place - 2), neighbour(place), counted, variant)
    return explain(served, facts)


def test_a_rank_is_explained_in_sentences():
    read, policy = columns_of(SECTION), Policy(rules=rule_set([SPAM]))
    ranking = rank(ids_of(SECTION), read, policy)
    assert ranking.ids.tolist() == [101, 102, 104, 105, 103]
    first, second, last = (explained(place, policy) for place in (1, 2, 5))
    assert first[0].startswith("第 1 名，共 5 条；得分 ")
    assert any("40 赞、0 踩、0 次举报（一次计 3 踩）的威尔逊下界" in each for each in first)
    assert "发布 3.0 小时" in "".join(first)
    assert not any(each.startswith("低于") for each in first)
    assert any(each.startswith("高于第 2 名 ") and "主要差在回复（" in each for each in first)
    assert any(each == "UP 主互动 +0.100：UP 主点赞。" for each in second)
    assert "规则「spam」降权 -2.000：招揽加群的评论不进前排。" in last
    assert not any(each.startswith("高于") for each in last)
    assert "发布时长、近 24 小时和近 7 天从上次全区重排时算起。" in last


def test_a_score_that_is_no_longer_that_of_now_says_so():
    policy = Policy(rules=rule_set([SPAM]))
    said = explained(5, policy, same=False, swept=False)
    assert "按现在的数据和规则应得 " in said[1]
    assert "规则「spam」已计入。" in said
    assert any(each.startswith("本评论区还没有全区重排过") for each in said)


def test_parts_that_are_not_stored_yet_are_not_made_up():
    facts = Facts({}, Policy(), rank(ids_of([]), columns_of([]), Policy()).recalled, 0, True, False)
    said = explain(ServedRank(2, 3, Neighbour(5, None), Neighbour(7, None), Neighbour(5, {})), facts)
    assert said[0] == "第 2 名，共 3 条；列表刚刚更新，各项得分还在写入，请稍后再看。"
    assert said[-2:] == ["低于第 1 名 0.000 分。", "高于第 3 名 0 分：同分时较新的在前。"]


def test_an_exempted_rule_and_a_pin_are_explained():
    rules = [
        SPAM,
        Rule("trusted", "guest", RuleDecision.EXEMPT, exempts=("spam",)),
        Rule("top", "guest", RuleDecision.PIN),
    ]
    read, policy = columns_of(SECTION), Policy(rules=rule_set(rules), variant="trial/b")
    ranking = rank(ids_of(SECTION), read, policy)
    assert ranking.ids[0] == 103
    said = explained(1, policy, variant="trial/b")
    assert {"规则「spam」命中但不生效：已被豁免。", "规则「top」置顶。", "规则「trusted」豁免 spam。"} <= set(said)
    assert "高于第 2 名 一个置顶位。" in said
    assert "本评论区参加实验 trial/b。" in said
    points = float(said[0].split("得分 ")[1].rstrip("。"))
    assert points < 5


def test_texts_are_read_for_rules_alone():
    assert "content" not in columns_to_read(Policy())
    assert "content" in columns_to_read(Policy(rules=rule_set([SPAM])))


def test_what_a_rule_would_move_is_told_before_it_is_saved():
    read, ids = columns_of(SECTION), ids_of(SECTION)
    found = what_if(rank(ids, read, Policy()), rank(ids, read, Policy(rules=rule_set([SPAM]))))
    assert (found.comments, found.changed, found.hits) == (5, 1, {"spam": 1})
    assert [(move.comment_id, move.before, move.after) for move in found.moves] == [
        (104, 4, 3),
        (103, 3, 5),
        (105, 5, 4),
    ]
    assert found.moves[1].points == pytest.approx(-2.0)
    assert found.sentences()[:2] == ["共 5 条评论，1 条得分变化，3 条名次变化。", "规则「spam」将对 1 条生效。"]
    assert str(found.moves[1]) == "评论 103：第 3 → 第 5（降，规则 spam）"


def test_shifts_by_one_place_far_below_are_not_told():
    comments = [{"likes": 1000 - 10 * number, "age_hours": number} for number in range(60)]
    comments.append({"guest": True, "age_hours": 9000})
    read, ids = columns_of(comments), ids_of(comments)
    boost = Policy(rules=rule_set([Rule("guests", "guest", RuleDecision.BOOST, 2.0)]))
    before, after = rank(ids, read, Policy()), rank(ids, read, boost)
    found = what_if(before, after, top=3)
    moved = [move for move in found.moves if move.comment_id == 161]
    assert len(moved) == 1
    assert all(min(move.before, move.after) <= 3 for move in found.moves if move.comment_id != 161)
    assert what_if(before, after, top=60, most=2).moved > 2
    assert len(what_if(before, after, top=60, most=2).moves) == 2


def test_a_what_if_is_of_one_section():
    ids = ids_of(SECTION)
    one = rank(ids, columns_of(SECTION), Policy())
    with pytest.raises(ValueError, match="different comments"):
        what_if(one, rank(ids + 1, columns_of(SECTION), Policy()))


def test_moves_in_the_top_are_counted():
    assert top_moves([1, 2, 3], [1, 2, 3]) == 0
    assert top_moves([1, 2, 3], [2, 1, 3]) == 2
    assert top_moves([1, 2, 3], [9, 1, 2]) == 3
    assert top_moves([], [1]) == 1


def test_sections_are_drawn_evenly_and_for_good():
    counts = Counter(bucket_of("salt", section) * 10 // BUCKETS for section in range(20_000))
    assert set(counts) == set(range(10))
    assert max(counts.values()) < 1.15 * min(counts.values())
    assert bucket_of("salt", 12) == bucket_of("salt", 12)
    both = np.corrcoef([[bucket_of(salt, section) for section in range(5000)] for salt in ("one", "two")])[0, 1]
    assert abs(both) < 0.05


def test_an_experiment_gives_its_share_of_sections_another_policy():
    experiment = Experiment(
        "slower",
        "2026",
        (Variant("half", 0.3, {"decay": 0.06}), Variant("plain", 0.2, without=("spam",))),
        RuleScope(types=(1,)),
    )
    policies = Policies({}, [SPAM], [experiment])
    counts = Counter(policies.of(section, 1).variant for section in range(10_000))
    assert counts["slower/half"] == pytest.approx(3000, abs=150)
    assert counts["slower/plain"] == pytest.approx(2000, abs=150)
    assert {policies.of(section, 2).variant for section in range(300)} == {""}
    drawn = {
        variant: next(each for each in range(999) if policies.of(each, 1).variant == variant) for variant in counts
    }
    assert policies.of(drawn["slower/half"], 1).weights.decay == 0.06
    assert policies.of(drawn["slower/plain"], 1).rules.rules == ()
    assert policies.of(drawn[""], 1).rules.rules == (SPAM,)
    assert variant_of(experiment, drawn[""], 1) is None


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        (Experiment("e", "s", ()), "没有任何分组"),
        (Experiment("e", "", (Variant("a", 0.1),)), "缺少 salt"),
        (Experiment("e", "s", (Variant("a", 0.7), Variant("b", 0.7))), "总和不超过 1"),
        (Experiment("e", "s", (Variant("a", 0.1), Variant("a", 0.1))), "分组重名"),
        (Experiment("e", "s", (Variant("a", 0.1, without=("gone",)),)), "没有名为「gone」的规则"),
        (Experiment("e", "s", (Variant("a", 0.1, {"haste": 3}),)), "「a」组：没有名为 haste 的权重"),
    ],
)
def test_faulty_experiments_are_refused(experiment, message):
    with pytest.raises(ProblemsError, match=message):
        Policies({}, [SPAM], [experiment])
