"""Rules: what their conditions mean, how bad ones are refused, and what the recall centre makes of many."""

from __future__ import annotations

import re

import numpy as np
import pytest
import rule_engine
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.comments.heat import patterns
from douban_pipeline.comments.heat.expressions import compile_condition
from douban_pipeline.comments.heat.factors import GRAPH
from douban_pipeline.comments.heat.graph import ValueKind
from douban_pipeline.comments.heat.patterns import MOST_TEXT, pattern_refusal
from douban_pipeline.comments.heat.recall import MOST_MOVED, PIN_STEP, recall
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleScope, rule_set
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline_tests.comments.heat_columns import columns_of

BOOST, SINK, PIN, EXEMPT = RuleDecision.BOOST, RuleDecision.SINK, RuleDecision.PIN, RuleDecision.EXEMPT
COMMENTS = [
    {"likes": 0, "dislikes": 5, "content": "加群领取"},
    {"likes": 12, "dislikes": 1, "level": 5, "owner_liked": True, "content": "这一集的配乐真好"},
    {"likes": 3, "dislikes": 3, "level": 2, "guest": True, "content": "看 https://a.example"},
]


def true_of(expression: str) -> list[int]:
    """Return which of the three comments an expression is true of."""
    condition = compile_condition(expression, GRAPH)
    factors = GRAPH.compute(sorted(condition.factors), columns_of(COMMENTS))
    return np.flatnonzero(condition.holds(factors, len(COMMENTS))).tolist()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("likes >= 10 and not guest", [1]),
        ("likes == dislikes", [2]),
        ("likes != 3", [0, 1]),
        ("dislikes > likes * 2", [0]),
        ("likes / dislikes > 2", [1]),
        ("dislikes / likes == 0", [0]),
        ("likes - dislikes < 0 or guest", [0, 2]),
        ("-likes < -5", [1]),
        ("level in [4, 5, 6]", [1]),
        ("level not in [4, 5, 6]", [0, 2]),
        ("content =~~ '加群|微信'", [0]),
        ("content =~ '这'", [1]),
        ("content !~ '这'", [0, 2]),
        ("content !~~ 'https?:'", [0, 1]),
        ("'配乐' in content", [1]),
        ("content == '加群领取'", [0]),
        ("likes > (owner_liked ? 20 : 2)", [2]),
        ("has_link", [2]),
        ("owner_touched or has_link", [1, 2]),
        ("true", [0, 1, 2]),
        ("1 > 2", []),
    ],
)
def test_conditions_by_hand(expression, expected):
    assert true_of(expression) == expected


NUMBERS = ("likes", "dislikes", "level")
FLAGS = ("guest", "owner_liked")
TERMS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(NUMBERS),
        st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
        st.integers(0, 12),
    ),
    st.builds("{} {} {} - 2".format, st.sampled_from(NUMBERS), st.sampled_from(["<", ">="]), st.sampled_from(NUMBERS)),
    st.builds("{} * 3 + 1 > {}".format, st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    st.builds("{} in [0, 3, 5]".format, st.sampled_from(NUMBERS)),
    st.builds(
        "content {} '{}'".format,
        st.sampled_from(["=~", "=~~", "!~", "!~~", "==", "!="]),
        st.sampled_from(["加", "好$", "看 "]),
    ),
    st.sampled_from(FLAGS),
    st.builds("({} ? {} : {}) > 2".format, st.sampled_from(FLAGS), st.sampled_from(NUMBERS), st.integers(0, 5)),
)
EXPRESSIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_columns_are_judged_as_rule_engine_judges_single_comments(expression):
    read = columns_of(COMMENTS)
    types = {ValueKind.NUMBER: float, ValueKind.FLAG: bool, ValueKind.TEXT: str}
    rule = rule_engine.Rule(expression)
    one_by_one = [
        at
        for at in range(len(COMMENTS))
        if rule.matches({name: types[GRAPH.factors[name].kind](column[at]) for name, column in read.items()})
    ]
    assert true_of(expression) == one_by_one


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("likse > 3", "没有名为 likse 的因子，是否想写 likes；可用：age_hours"),
        ("likes > '3'", "类型不符"),
        ("likes = 3", "相等写 =="),
        ("likes >", "写法有误"),
        ("content =~~ '('", r"正则表达式 '\(' 有误"),
        ("content =~~ content", "正则表达式须直接写成文本"),
        ("likes", "结果不是真或假；请写成比较"),
        ("likes and guest", "条件须为真或假"),
        ("likes == '3'", "永不相等"),
        ("level in ['3']", "永不包含"),
        ("level in [likes]", "只能含数或文本"),
        ("likes ** 2 > 4", "用了不支持的写法"),
        ("content.length > 4", "字数请用因子 length"),
        ("$abs(likes) > 4", "用了不支持的写法"),
        ("1 / 0 > likes", "请检查除数"),
        ("(guest ? likes : content) =~ 'x'", "两种取值类型不同"),
        ("  ", "表达式为空"),
        ("likes > 1 or " * 60 + "guest", "请拆成几条规则"),
    ],
)
def test_bad_conditions_are_refused_with_rule_expression_and_remedy(expression, message):
    with pytest.raises(ProblemsError, match=message) as refusal:
        rule_set([Rule("odd", expression, BOOST, 1.0)])
    assert refusal.value.problems[0].startswith(f"规则「odd」（{expression}）：")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a*)*b",
        "(a|aa)+$",
        "(?:a|ab|abc)*d",
        "([a-z]+)*!",
        "(x?){30}x{30}",
        ".*加.*群",
        "加.*微.*信",
        r"(\\w+\\s?)*;",
        r"(a)\\1",
        "(?=(a+)+b)a",
    ],
)
@pytest.mark.parametrize("expression", ["content =~~ '{}'", "'{many}' =~~ '{}'", "content !~~ ('{}')", '"{}" =~ "{}"'])
def test_patterns_that_could_try_for_long_are_refused_before_anything_tries_them(pattern, expression):
    written = expression.replace("{many}", "a" * 60).replace("{}", pattern)
    with pytest.raises(ProblemsError, match="正则表达式"):
        rule_set([Rule("odd", written, SINK, 1.0)])


FIXED = ["a", "b", ".", "[ab]", "(a|b)", "(?:ab)", "a{2}"]
VARYING = ["a?", "a*", "b+", "(ab|a)", "(a*)", "(a|b)*", "(a+)+", "a{1,3}"]
PIECES = st.lists(st.sampled_from(FIXED + VARYING), min_size=1, max_size=5)


@given(PIECES, PIECES)
def test_a_pattern_that_is_refused_is_not_taken_for_being_longer(first, second):
    if pattern_refusal("".join(first)) is not None:
        assert pattern_refusal("".join([*first, *second])) is not None


@given(PIECES)
def test_a_repeat_of_what_varies_is_refused_and_one_of_what_does_not_is_taken(pieces):
    varies = any(piece in VARYING for piece in pieces)
    assert (pattern_refusal(f"(?:{''.join(pieces)})+z") is not None) is varies


@pytest.mark.parametrize(
    "pattern",
    [
        "加群|微信",
        "https?:",
        r"微信.{0,20}\\d{6,}",
        "加.*群",
        r"\\d{6,}",
        "(日|月)票",
        "(?:加|进).{0,5}群",
        "^第.{1,4}集$",
    ],
)
def test_patterns_of_every_day_are_taken(pattern):
    rule_set([Rule("usual", f"content =~~ '{pattern}'", SINK, 1.0)])


def test_only_the_beginning_of_a_long_text_is_looked_at():
    condition = compile_condition("content =~~ '加群'", GRAPH)
    texts = columns_of([{"content": "好" * place + "加群"} for place in (0, MOST_TEXT - 2, MOST_TEXT - 1)])
    assert condition.holds(texts, 3).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule("Odd name", "guest", BOOST, 1), "名称应以小写字母开头"),
        (Rule("odd", "guest", BOOST), "amount 应大于 0"),
        (Rule("odd", "guest", SINK, -2), "降权也写正数"),
        (Rule("odd", "guest", BOOST, 1000), "不超过 20"),
        (Rule("odd", "guest", PIN, 1), "pin 不使用 amount"),
        (Rule("odd", "guest", PIN, stacks=True), "pin 不使用 stacks"),
        (Rule("odd", "guest", EXEMPT), "须在 exempts 中写明"),
        (Rule("odd", "guest", EXEMPT, exempts=("nothing",)), "「nothing」既不是规则也不是决策"),
        (Rule("odd", "guest", EXEMPT, exempts=("odd",)), "不能豁免自己"),
        (Rule("odd", "guest", BOOST, 1, exempts=("sink",)), "只有 exempt 可以写 exempts"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule, message):
    with pytest.raises(ProblemsError, match=message):
        rule_set([rule])


def test_all_faults_are_told_at_once_and_doubles_are_one_of_them():
    with pytest.raises(ProblemsError) as refusal:
        rule_set([Rule("a", "likse > 1", BOOST, 1), Rule("b", "guest", BOOST), Rule("b", "guest", SINK, 1)])
    assert len(refusal.value.problems) == 3
    with pytest.raises(ProblemsError, match="超过上限 50"):
        rule_set([Rule(f"r{number}", "guest", BOOST, 1) for number in range(51)])


def moved(*rules: Rule) -> list[float]:
    """Return by how many points rules move a comment of which all conditions are true."""
    found = rule_set(rules)
    columns = columns_of([{"guest": True, "likes": 1}])
    return recall(found, columns, 1).moved.tolist()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([("a", BOOST, 1.0, {})], 1.0),
        ([("a", SINK, 1.5, {})], -1.5),
        ([("a", BOOST, 1.0, {}), ("b", BOOST, 3.0, {})], 3.0),
        ([("a", BOOST, 1.0, {"stacks": True}), ("b", BOOST, 3.0, {"stacks": True})], 4.0),
        ([("a", BOOST, 1.0, {}), ("b", BOOST, 3.0, {}), ("c", BOOST, 0.5, {"stacks": True})], 3.5),
        ([("a", BOOST, 2.0, {}), ("b", SINK, 5.0, {}), ("c", SINK, 4.0, {})], -3.0),
        ([("a", BOOST, 20.0, {"stacks": True})], 20.0),
        ([(name, SINK, 20.0, {"stacks": True}) for name in "abc"], -MOST_MOVED),
        ([("a", SINK, 2.0, {}), ("b", EXEMPT, 0.0, {"exempts": ("sink",)})], 0.0),
        ([("a", SINK, 2.0, {"priority": 5}), ("b", EXEMPT, 0.0, {"exempts": ("sink",), "priority": 4})], -2.0),
        ([("a", SINK, 2.0, {"priority": 4}), ("b", EXEMPT, 0.0, {"exempts": ("a",), "priority": 4})], 0.0),
        ([("a", SINK, 2.0, {}), ("c", SINK, 1.0, {}), ("b", EXEMPT, 0.0, {"exempts": ("a",)})], -1.0),
    ],
)
def test_how_decisions_stack_and_are_exempted(rules, expected):
    made = [Rule(name, "guest", decision, amount, **rest) for name, decision, amount, rest in rules]
    assert moved(*made) == [expected]


def test_pins_come_before_all_else_the_highest_priority_first():
    rules = rule_set([Rule("low", "likes >= 1", PIN, priority=1), Rule("high", "likes >= 5", PIN, priority=2)])
    found = recall(rules, columns_of([{"likes": 0}, {"likes": 1}, {"likes": 9}]), 3)
    assert found.pinned.tolist() == [0.0, PIN_STEP, 2 * PIN_STEP]


def test_a_rule_is_for_the_sections_of_its_scope():
    everywhere = Rule("a", "guest", BOOST, 1)
    some = Rule("b", "guest", BOOST, 1, scope=RuleScope(types=(2,), sections=(7,)))
    rules = rule_set([everywhere, some])
    names = {at: [each.name for each in rules.in_section(*at).rules] for at in [(7, 1), (8, 2), (8, 1)]}
    assert names == {(7, 1): ["a", "b"], (8, 2): ["a", "b"], (8, 1): ["a"]}


def test_what_silenced_a_rule_is_known():
    rules = rule_set(
        [
            Rule("spam", "guest", SINK, 5.0),
            Rule("mild", "guest", SINK, 1.0),
            Rule("known", "level >= 5", EXEMPT, exempts=("spam",)),
        ]
    )
    found = recall(rules, columns_of([{"guest": True}, {"guest": True, "level": 5}, {}]), 3)
    assert found.moved.tolist() == [-5.0, -1.0, 0.0]
    assert found.counted["spam"].tolist() == [True, False, False]
    assert found.silenced["spam"].tolist() == [False, True, False]
    assert found.exempted["spam"].tolist() == [False, True, False]
    assert found.silenced["mild"].tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [("好看.*第.季", True), (r"\d{4}年", True), ("加群|私聊", True)]
    + [(pattern, False) for pattern in ("(a+)+b", "(?:ab)*", "a*b*", r"(a)\1", "a{1,9}b{1,9}")],
)
def test_a_parser_that_is_not_known_leaves_only_patterns_that_cannot_be_slow(pattern, taken, monkeypatch):
    def other(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(patterns, "import_module", other)
    monkeypatch.setattr(patterns, "_engine", patterns._engine.__wrapped__)
    refusal = pattern_refusal(pattern)
    assert (refusal is None) is taken
    if refusal is not None:
        assert "请不要使用分组" in refusal
    with pytest.raises(re.error):
        pattern_refusal("[")
