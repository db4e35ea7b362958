"""Compiles conditions over factors, in the syntax of the package rule-engine, to functions over whole columns.

rule-engine parses an expression and checks its types; its own evaluation handles some 100,000 comments a second. Here
its syntax tree is compiled to functions over numpy columns. Supported syntax:

    likes >= 10 and not owner_liked          and, or, not, parentheses
    dislikes > likes * 2                     + - * /   (division by zero yields 0)
    level in [4, 5, 6]                       lists of numbers or texts
    content =~~ '加群|微信'                   =~ at the beginning, =~~ anywhere, !~ and !~~ negated
                                             on the first 2,000 characters; patterns that may backtrack long are refused
    '私信' in content                         substring
    replies > (owner_liked ? 3 : 10)         conditional
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import rule_engine
from rule_engine import ast
from rule_engine.types import DataType

from douban_pipeline.comments.heat.graph import Column, Columns, FactorGraph, ValueKind
from douban_pipeline.comments.heat.patterns import MOST_TEXT, literal_refusal, pattern_refusal
from douban_pipeline.core.errors import ProblemsError

MOST_CHARACTERS = 500
_TYPES = {ValueKind.NUMBER: DataType.FLOAT, ValueKind.FLAG: DataType.BOOLEAN, ValueKind.TEXT: DataType.STRING}

Evaluate = Callable[[Columns], Any]
"""Returns a column, or a single value for all comments."""

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "tdiv": lambda left, right: np.divide(
        left, right, out=np.zeros(np.broadcast(left, right).shape), where=np.not_equal(right, 0)
    ),
}
_PATTERNS: dict[str, tuple[str, bool]] = {
    "eq_fzm": ("match", True),
    "eq_fzs": ("search", True),
    "ne_fzm": ("match", False),
    "ne_fzs": ("search", False),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled boolean expression over comments.

    Attributes:
        evaluate: The compiled function; see `holds`.
    """

    factors: frozenset[str]
    evaluate: Evaluate

    def holds(self, columns: Columns, length: int) -> Column:
        """Return for each of ``length`` comments whether it holds, from columns that include at least ``factors``."""
        return np.broadcast_to(np.asarray(self.evaluate(columns), dtype=bool), (length,))


def compile_condition(expression: str, graph: FactorGraph) -> Condition:
    """Compile ``expression`` to a function over columns.

    Raises:
        ProblemsError: It has a syntax error, an unknown factor, mismatched types or an unsupported construct, or is not
            boolean; the message says how to fix it.
    """
    if not expression.strip():
        raise ProblemsError(["表达式为空；例如写 likes >= 10"])
    if len(expression) > MOST_CHARACTERS:
        raise ProblemsError([f"表达式有 {len(expression)} 个字符，超过上限 {MOST_CHARACTERS}；请拆成几条规则"])
    # A comparison of two literals is evaluated by the parser itself.
    if re.search(r"[=!]~", expression) and (refusal := literal_refusal(expression)) is not None:
        raise ProblemsError([refusal])
    types = {each.name: _TYPES[each.kind] for each in graph.factors.values()}
    context = rule_engine.Context(
        type_resolver=rule_engine.type_resolver_from_dict(types), resolver=rule_engine.resolve_item
    )
    try:
        tree = rule_engine.Rule(expression, context=context).statement.expression
    except rule_engine.errors.EngineError as error:
        raise ProblemsError([_fault(error, graph)]) from error
    if tree.result_type != DataType.BOOLEAN:
        raise ProblemsError(["结果不是真或假；请写成比较，例如 likes > 0"])
    compiler = _Compiler()
    evaluate = compiler.compile(tree)
    return Condition(frozenset(compiler.factors), evaluate)


def _fault(error: rule_engine.errors.EngineError, graph: FactorGraph) -> str:
    errors = rule_engine.errors
    if isinstance(error, errors.SymbolResolutionError):
        near = f"，是否想写 {error.suggestion}" if error.suggestion else ""
        return f"没有名为 {error.symbol_name} 的因子{near}；可用：{'、'.join(sorted(graph.factors))}"
    if isinstance(error, errors.RegexSyntaxError):
        return f"正则表达式 {error.value!r} 有误（{error.error}）；括号等特殊字符须以反斜杠转义"
    if isinstance(error, errors.SyntaxError):
        return f"写法有误（{error.message}）；相等写 ==，并且写 and，或者写 or，否定写 not，文本用引号"
    if isinstance(error, errors.ArithmeticError):
        return f"算式无法计算（{error.message}）；请检查除数"
    return f"类型不符（{error.message}）；数值因子与数比较，文本因子用 == 或 =~~，真假因子直接写名称"


class _Compiler:
    """Compiles the nodes of a syntax tree to functions over columns, and collects the factors that they use."""

    def __init__(self) -> None:
        self.factors: set[str] = set()

    def compile(self, node: Any) -> Evaluate:
        """Compile a node.

        Raises:
            ProblemsError: This kind of node is not supported.
        """
        match node:
            case ast.FloatExpression():
                number = float(node.value)
                return lambda columns: number
            case ast.StringExpression() | ast.BooleanExpression():
                value = node.value
                return lambda columns: value
            case ast.SymbolExpression() if node.scope is None:
                name = node.name
                self.factors.add(name)
                return lambda columns: columns[name]
            case ast.LogicExpression():
                return self._logic(node)
            case ast.FuzzyComparisonExpression():
                return self._pattern(node)
            case ast.ComparisonExpression():
                return self._comparison(node)
            case ast.AddExpression() | ast.SubtractExpression() | ast.ArithmeticExpression() if (
                node.type in _ARITHMETIC
            ):
                return self._arithmetic(node)
            case ast.UnaryExpression():
                return self._unary(node)
            case ast.ContainsExpression():
                return self._contains(node)
            case ast.TernaryExpression():
                return self._ternary(node)
        raise ProblemsError(
            ["用了不支持的写法；可用：and、or、not、比较、+ - * /、in、=~、=~~、? :，字数请用因子 length"]
        )

    def _logic(self, node: Any) -> Evaluate:
        left, right = (self._flag(each) for each in (node.left, node.right))
        both = np.logical_and if node.type == "and" else np.logical_or
        return lambda columns: both(left(columns), right(columns))

    def _flag(self, node: Any) -> Evaluate:
        if node.result_type != DataType.BOOLEAN:
            raise ProblemsError(["and、or、not 与 ? : 的条件须为真或假；数值请写成比较，例如 likes > 0"])
        return self.compile(node)

    def _comparison(self, node: Any) -> Evaluate:
        if node.left.result_type != node.right.result_type:
            raise ProblemsError(["== 与 != 两边的类型不同，永不相等；数值与数比较，文本加引号"])
        left, right, compare = self.compile(node.left), self.compile(node.right), _COMPARISONS[node.type]
        return lambda columns: compare(left(columns), right(columns))

    def _arithmetic(self, node: Any) -> Evaluate:
        if node.left.result_type != DataType.FLOAT or node.right.result_type != DataType.FLOAT:
            raise ProblemsError(["+ - * / 只用于数值"])
        left, right, combine = self.compile(node.left), self.compile(node.right), _ARITHMETIC[node.type]
        return lambda columns: combine(_number(left(columns)), _number(right(columns)))

    def _unary(self, node: Any) -> Evaluate:
        if node.type == "not":
            flag = self._flag(node.right)
            return lambda columns: np.logical_not(flag(columns))
        number = self.compile(node.right)
        return lambda columns: -_number(number(columns))

    def _contains(self, node: Any) -> Evaluate:
        member = self.compile(node.member)
        container = node.container
        if isinstance(container, ast.ArrayExpression | ast.SetExpression):
            literals = [self._literal(each) for each in container.value]
            if any(each.result_type != node.member.result_type for each in container.value):
                raise ProblemsError(["in 的列表与左边类型不同，永不包含；数值写数，文本加引号"])
            return lambda columns: _is_one_of(member(columns), literals)
        if container.result_type == DataType.STRING and isinstance(node.member, ast.StringExpression):
            text, piece = self.compile(container), node.member.value
            return lambda columns: _each_text(text(columns), lambda each: piece in each)
        raise ProblemsError(["in 的右边须为列表，或以 '文本' in content 的形式书写"])

    @staticmethod
    def _literal(node: Any) -> Any:
        if isinstance(node, ast.FloatExpression):
            return float(node.value)
        if isinstance(node, ast.StringExpression):
            return node.value
        raise ProblemsError(["in 的列表只能含数或文本，不能含因子或算式"])

    def _pattern(self, node: Any) -> Evaluate:
        if not isinstance(node.right, ast.StringExpression):
            raise ProblemsError(["正则表达式须直接写成文本，例如 content =~~ '微信'"])
        text = self.compile(node.left)
        method, wanted = _PATTERNS[node.type]
        refusal = pattern_refusal(node.right.value, anywhere=method == "search")
        if refusal is not None:
            raise ProblemsError([refusal])
        find = getattr(re.compile(node.right.value), method)
        return lambda columns: _each_text(text(columns), lambda each: (find(each[:MOST_TEXT]) is not None) is wanted)

    def _ternary(self, node: Any) -> Evaluate:
        if node.case_true.result_type != node.case_false.result_type:
            raise ProblemsError(["? : 的两种取值类型不同；请写成同一类型"])
        condition, yes, no = self._flag(node.condition), self.compile(node.case_true), self.compile(node.case_false)
        return lambda columns: np.where(condition(columns), yes(columns), no(columns))


def _number(value: Any) -> Any:
    # Counters are stored as unsigned or narrow integers, which would overflow.
    return np.asarray(value, dtype=np.float64)


def _each_text(value: Any, test: Callable[[str], bool]) -> Any:
    if isinstance(value, str):
        return test(value)
    return np.fromiter((test(each) for each in value), bool, len(value))


def _is_one_of(value: Any, literals: list[Any]) -> Any:
    found: Any = False
    for literal in literals:
        found = np.logical_or(found, value == literal)
    return found
