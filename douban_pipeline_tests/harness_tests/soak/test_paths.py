"""A heap of writes explains what stands if and only if some order of them leads there, each used once."""

from __future__ import annotations

from itertools import pairwise, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline_tests.harness.soak.audit.paths import Edge, explanation, why_no_path

VALUES = "abcd"
values = st.sampled_from(VALUES)
edges = st.lists(st.tuples(values, values).filter(lambda pair: pair[0] != pair[1]), max_size=5)


def leads(first: str, last: str, order: tuple[Edge, ...]) -> bool:
    for old, new in order:
        if old != first:
            return False
        first = new
    return first == last


@settings(max_examples=150, deadline=None)
@given(values, values, edges)
def test_it_is_a_path_if_some_order_is_one(first: str, last: str, ways: list[Edge]) -> None:
    possible = any(leads(first, last, order) for order in permutations(ways))
    assert (why_no_path(first, last, ways) == "") is possible


@settings(max_examples=50, deadline=None)
@given(st.lists(values, min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_a_walk_is_explained_and_without_one_of_its_steps_it_is_not(walk: list[str], chance: object) -> None:
    ways = [pair for pair in pairwise(walk) if pair[0] != pair[1]]
    chance.shuffle(ways)  # type: ignore[attr-defined]
    assert why_no_path(walk[0], walk[-1], ways) == ""
    assert all(why_no_path(walk[0], walk[-1], ways[:place] + ways[place + 1 :]) for place in range(len(ways)))
    assert why_no_path(walk[0], walk[-1], [*ways, ("a", "b")])


def test_a_circle_that_nobody_entered_is_reported() -> None:
    assert "hang on nothing" in why_no_path("a", "a", [("b", "c"), ("c", "b")])


@settings(max_examples=50, deadline=None)
@given(values, values, edges, edges)
def test_of_doubtful_writes_the_fewest_that_explain_everything_are_chosen(
    first: str, last: str, sure: list[Edge], doubtful: list[Edge]
) -> None:
    acts, doubts = [{"x": way} for way in sure], [{"x": way} for way in doubtful]
    chosen, reasons = explanation({"x": (first, last)}, acts, doubts)
    subsets = [
        [way for way, taken in zip(doubtful, kept, strict=True) if taken]
        for kept in product((False, True), repeat=len(doubtful))
    ]
    good = [len(subset) for subset in subsets if not why_no_path(first, last, [*sure, *subset])]
    assert (len(chosen) if chosen is not None else None) == (min(good) if good else None)
    assert bool(reasons) is (chosen is None)


def test_a_doubtful_write_happened_with_all_its_columns_or_with_none() -> None:
    columns = {"x": ("a", "b"), "y": ("a", "a")}
    chosen, reasons = explanation(columns, [], [{"x": ("a", "b"), "y": ("a", "b")}])
    assert chosen is None
    assert "x" in reasons
