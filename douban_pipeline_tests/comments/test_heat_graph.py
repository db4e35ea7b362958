"""Factors: a graph that is refused when it is none, and that computes only what is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from douban_pipeline.comments.heat.factors import COMPUTED, GRAPH, READ
from douban_pipeline.comments.heat.graph import Column, Factor, FactorGraph, FactorGraphError, ValueKind


def number(name: str, *inputs: str, calls: list[str] | None = None) -> Factor:
    """Return a factor that is the sum of its inputs, one more than that."""

    def total(*given: Column) -> Column:
        if calls is not None:
            calls.append(name)
        return np.add.reduce(given) + 1

    if not inputs:
        return Factor(name, ValueKind.NUMBER, "", None)
    scope: dict[str, object] = {"total": total}
    exec(f"def compute({', '.join(inputs)}): return total({', '.join(inputs)})", scope)
    return Factor(name, ValueKind.NUMBER, "", scope["compute"])  # type: ignore[arg-type]


def test_what_is_needed_is_computed_once_in_order_and_nothing_else():
    calls: list[str] = []
    graph = FactorGraph(
        [
            number("top", "left", "right", calls=calls),
            number("left", "base", calls=calls),
            number("right", "base", "left", calls=calls),
            number("idle", "other", calls=calls),
            number("base"),
            number("other"),
        ]
    )
    found = graph.compute(["top"], {"base": np.array([1.0, 2.0])})
    assert calls == ["left", "right", "top"]
    assert found["top"].tolist() == [7.0, 10.0]
    assert set(found) == {"top"}
    assert graph.read_for(["top"]) == {"base"}
    assert graph.read_for(["idle", "base"]) == {"other", "base"}


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([number("likes"), number("rate", "lieks")], r"factor rate needs lieks, which is unknown"),
        ([number("rate"), number("ratio", "rates")], r"did you mean rate\?"),
        ([number("a", "b"), number("b", "c"), number("c", "a")], r"factors need each other: .* → .*"),
        ([number("own", "own")], r"factors need each other: own → own"),
        ([number("a"), number("a")], r"factors defined twice: a"),
    ],
)
def test_what_is_no_graph_is_refused_when_it_is_made(factors, message):
    with pytest.raises(FactorGraphError, match=message):
        FactorGraph(factors)


def test_unknown_and_absent_columns_are_named():
    with pytest.raises(FactorGraphError, match=r"unknown factor likse \(did you mean likes\?\)"):
        GRAPH.needed(["likse"])
    with pytest.raises(FactorGraphError, match="columns were not read: impressions, likes"):
        GRAPH.compute(["like_rate"], {})
    with pytest.raises(FactorGraphError, match="columns differ in length"):
        GRAPH.compute(["likes", "level"], {"likes": np.ones(2), "level": np.ones(3)})


def test_texts_are_read_only_where_something_asks_for_them():
    assert "content" not in GRAPH.read_for(["like_rate", "approval"])
    assert "content" in GRAPH.read_for(["has_link"])


def test_every_factor_says_what_it_means():
    assert all(each.meaning for each in [*READ, *COMPUTED])
    assert {each.name for each in READ} == {name for name, each in GRAPH.factors.items() if each.compute is None}


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        ("approval", {"likes": [3, 0, 1], "dislikes": [1, 0, 0]}, [0.75, 0.5, 1.0]),
        ("controversy", {"likes": [4, 9, 0], "dislikes": [4, 3, 7]}, [8.0, 12 ** (1 / 3), 0.0]),
        ("owner_touched", {"owner_liked": [1, 0, 0], "owner_replied": [0, 0, 1]}, [True, False, True]),
        ("has_link", {"content": ["看 https://a.cn", "好", "www.b.com"]}, [True, False, True]),
        ("variety", {"content": ["啊啊啊啊", "好看", ""]}, [0.25, 1.0, 0.0]),
    ],
)
def test_computed_factors_by_hand(name, columns, expected):
    read = {key: np.array(values, object if key == "content" else None) for key, values in columns.items()}
    assert GRAPH.compute([name], read)[name].tolist() == pytest.approx(expected)
