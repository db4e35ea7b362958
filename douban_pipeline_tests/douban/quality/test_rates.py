"""Rates, and what they say of a target: nothing too early, nothing too late."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.intervals import Rate, wilson
from douban_pipeline.douban.quality import figures
from douban_pipeline.douban.quality.labels import AutomaticLink, LinkLabel, Settled
from douban_pipeline.douban.quality.rates import (
    PER_STRATUM,
    TargetStatus,
    audit,
    band_of,
    by_stratum,
    clean_labels,
    openings,
    shortfalls,
    target_status,
    unexplained,
)
from douban_pipeline_tests.harness.fixtures.clocks import START


def label(right: bool, *strata: str, score: float = 90.0, minutes: int = 0, vod_id: int = 1) -> LinkLabel:
    link = AutomaticLink(vod_id, vod_id, 90_000_101, score, strata, START)
    return LinkLabel(link, right, START + timedelta(minutes=minutes), "小王")


@given(st.floats(0.5, 0.999))
def test_a_clean_record_of_that_many_passes_and_one_less_does_not(target):
    wanted = clean_labels(target)
    assert wilson(wanted, wanted).low >= target > wilson(wanted - 1, wanted - 1).low


@pytest.mark.parametrize(
    ("right", "total", "said"),
    [
        (0, 0, TargetStatus.TOO_FEW),
        (29, 29, TargetStatus.TOO_FEW),
        (0, 29, TargetStatus.TOO_FEW),  # not even that many wrong ones: fewer than anybody wants to judge by
        (30, 30, TargetStatus.TOO_FEW),
        (72, 72, TargetStatus.TOO_FEW),
        (29, 30, TargetStatus.TOO_FEW),  # the upper bound still reaches the target
        (24, 30, TargetStatus.FAILS),  # it does not any more: known to be bad before a clean record could pass
        (73, 73, TargetStatus.HOLDS),
        (72, 73, TargetStatus.FAILS),
        (200, 203, TargetStatus.HOLDS),
        (200, 205, TargetStatus.FAILS),
    ],
)
def test_what_labels_say_of_a_target_of_95_percent(right, total, said):
    assert target_status(Rate(right, total), target=0.95, least=30) is said


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([0.8, 0.95, 0.99]))
def test_one_more_right_label_never_makes_a_proven_stratum_fail(right, wrong, target):
    if target_status(Rate(right, right + wrong), target=target, least=30) is TargetStatus.HOLDS:
        assert target_status(Rate(right + 1, right + 1 + wrong), target=target, least=30) is TargetStatus.HOLDS
        assert wilson(right, right + wrong).low >= target


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (84.99, "<85"),
        (85.0, "85–88"),
        (87.99, "85–88"),
        (88.0, "88–92"),
        (92.0, "92–96"),
        (96.0, "96+"),
        (102.0, "96+"),
    ],
)
def test_score_bands(score, band):
    assert band_of(score) == band


def test_a_lifted_stratum_is_judged_afresh_and_the_others_are_not():
    labels = [
        label(False, "season", "thin", minutes=1),
        label(True, "season", minutes=2),
        label(True, "season", minutes=3),
    ]
    strata = by_stratum(labels, {"season": START + timedelta(minutes=2)})
    assert (strata["season"], strata["thin"]) == (Rate(1, 1), Rate(0, 1))


SETTLED = {"target": 0.95, "least": 30}


def test_a_bad_stratum_does_not_pull_down_the_wide_one_around_it():
    labels = [label(True, "rich")] * 100 + [label(False, "season", "rich")] * 20 + [label(True, "season", "rich")] * 20
    assert by_stratum(labels)["rich"] == Rate(120, 140)
    assert shortfalls(labels, {}, (), **SETTLED) == {"season": Rate(20, 40)}
    assert unexplained(labels, {}, {"season"})["rich"] == Rate(100, 100)
    assert shortfalls(labels, {}, {"season"}, **SETTLED) == {}


def test_what_a_lifted_brake_explained_does_not_come_back_in_another_stratum():
    before = [label(False, "season", "rich", minutes=1)] * 40 + [label(True, "rich", minutes=1)] * 80
    since = {"season": START + timedelta(minutes=2)}
    assert unexplained(before, since, ())["rich"] == Rate(80, 80)
    assert shortfalls(before, since, (), **SETTLED) == {}
    after = [*before, *[label(False, "season", "rich", minutes=3)] * 40]
    assert shortfalls(after, since, (), **SETTLED) == {"season": Rate(0, 40)}


@pytest.mark.parametrize(
    ("agreed", "differed", "at_once", "safe", "said"),
    [
        (0, 0, 0, False, "证据不足：逐条同意首选的有 0 条，至少要 299 条"),
        (298, 0, 0, False, "证据不足：逐条同意首选的有 298 条，至少要 299 条"),
        (299, 0, 0, True, "可以放心开放，由人决定（lift_brakes）"),
        (2000, 1, 0, False, "不宜开放：1 条与首选不同"),
        (298, 0, 21, False, "证据不足：逐条同意首选的有 298 条，至少要 299 条"),  # nobody looked at each of these
        (298, 0, 20, True, "可以放心开放，由人决定（lift_brakes）"),
    ],
)
def test_a_stratum_is_safe_to_open_where_people_always_agree_one_by_one(agreed, differed, at_once, safe, said):
    def item(number, right, minutes):
        at = START + timedelta(minutes=minutes)
        code = "ALIAS_UNBACKED"
        return Settled(number, number, "REVIEW", 5, 5 if right else 6, None, (code,), (), f"审核员{number % 2}", at)

    items = [item(number, number < agreed, number) for number in range(agreed + differed)]
    items += [replace(item(10_000 + number, True, -1), person="小王") for number in range(at_once)]
    items.append(Settled(9, 99_999, "REVIEW", 5, 6, None, ("ALIAS_UNBACKED", "YEAR_OFF"), ()))
    found = openings(items)["only:ALIAS_UNBACKED"]
    assert (found.safe, figures.opening_conclusion(found)) == (safe, said)
    assert found.at_once == (at_once if at_once > 20 else 0)


def links(count: int, *strata: str, first: int = 1) -> list[AutomaticLink]:
    return [
        AutomaticLink(vod_id, vod_id, 90_000_000 + vod_id, 90.0, strata, START)
        for vod_id in range(first, first + count)
    ]


def test_links_to_check_are_drawn_from_every_stratum_those_known_least_first():
    given_links = [*links(500, "rich"), *links(9, "season", "thin", first=1000), *links(3, first=2000)]
    rates = {"rich": Rate(50, 50), "season": Rate(3, 3)}
    found = audit(given_links, {1000}, rates, day="2026-03-01")
    assert (found.links, found.by_stratum["season"], found.by_band["88–92"]) == (512, 9, 512)
    drawn = [link.vod_id for link in found.picks]
    assert len(drawn) == len(set(drawn))
    assert 1000 not in drawn, "a person judged it already"
    assert sum(vod_id < 1000 for vod_id in drawn) == PER_STRATUM
    assert sum(vod_id >= 2000 for vod_id in drawn) == 3, "links of no stratum too"
    assert found.picks[-1].strata == ("rich",)
    assert audit(reversed(given_links), {1000}, rates, day="2026-03-01").picks == found.picks
    assert audit(given_links, {1000}, rates, day="2026-03-02").picks != found.picks
