"""The plan's twelve properties, each for at least a hundred drawn examples, and its cases at the limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from inspect import Parameter, signature
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, insert, update

from douban_pipeline.core.database import open_engine
from douban_pipeline.feeds import scheduler
from douban_pipeline.feeds.cadence import DEFAULT_ZONE
from douban_pipeline.feeds.scheduler import (
    FREQUENCY_CADENCE_MAP,
    RSS_CADENCE_INTERVALS,
    calculate_backoff,
    calculate_next_check_time,
    calculate_publish_time_stats,
    classify_update_frequency,
    get_source_stats,
    update_source_stats,
)
from douban_pipeline.feeds.store.tables import entry, metadata, stats
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START

EXAMPLES = settings(max_examples=100)
CADENCES = sorted(RSS_CADENCE_INTERVALS)
FREQUENCIES = sorted(FREQUENCY_CADENCE_MAP)
MOMENTS = st.integers(START - 400 * DAY, START)
GAPS = st.one_of(st.integers(1, 8 * HOUR), st.integers(1, 60 * HOUR), st.integers(1, 1500 * HOUR))
TIMES = st.lists(GAPS, min_size=2, max_size=30).map(
    lambda gaps: [START - sum(gaps[:number]) for number in range(len(gaps) + 1)]
)
"""Three times or more, newest first, with gaps of every class."""
CADENCE, FREQUENCY, NOW = st.sampled_from(CADENCES), st.sampled_from(FREQUENCIES), st.integers(START, START + DAY)
HOURS = st.one_of(st.none(), st.floats(-5, 30), st.just(float("nan")))
ERRORS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["HTTP 429", "rate limit", "操作频繁", "401", "token expired", "已过期", "403", "Forbidden", "timeout"]
    ),
)
CALLS = st.lists(st.tuples(st.booleans(), st.one_of(st.just(""), ERRORS)), min_size=1, max_size=6)


def rows(times: list[int]) -> list[dict[str, Any]]:
    return [{"published_at": moment} for moment in times]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    path: Path = tmp_path_factory.mktemp("feeds") / "feeds.sqlite"
    opened = open_engine(f"sqlite:///{path}")
    metadata.create_all(opened)
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as opened:
        yield opened


def publish(connection: Connection, source_id: str, times: list[int]) -> None:
    values = [
        {
            "source_id": source_id,
            "guid_hash": f"{source_id}-{number}",
            "guid": str(number),
            "link": "",
            "summary": "",
            "content_hash": "",
            "published_at": moment,
            "found_at": START,
            "updated_at": START,
        }
        for number, moment in enumerate(times)
    ]
    connection.execute(insert(entry), values)


# Feature: rss-smart-scheduler, Property 1: 频率分类一致性
@EXAMPLES
@given(times=TIMES)
def test_property_1_classes_follow_the_mean_gap(times: list[int]) -> None:
    gap = (times[0] - times[-1]) / (len(times) - 1) / HOUR
    days = Counter(datetime.fromtimestamp(moment, DEFAULT_ZONE).date() for moment in times)
    bounds = [(6, "realtime"), (18, "high"), (36, "daily"), (72, "daily_fixed"), (168, "weekly"), (720, "monthly")]
    expected = next((name for bound, name in bounds if gap < bound), "low")
    if max(days.values()) >= 5:
        expected = "realtime"
    assert classify_update_frequency(rows(times), now=START) == (expected, FREQUENCY_CADENCE_MAP[expected])


# Feature: rss-smart-scheduler, Property 2: 发布时间统计正确性
@EXAMPLES
@given(times=st.lists(MOMENTS, min_size=3, max_size=30))
def test_property_2_the_mean_hour_is_arithmetic_and_the_deviation_bounded(times: list[int]) -> None:
    average, deviation = calculate_publish_time_stats(rows(times), now=START)
    at = [datetime.fromtimestamp(moment, DEFAULT_ZONE) for moment in times]
    assert average == pytest.approx(fmean(each.hour + each.minute / 60 + each.second / 3600 for each in at))
    assert deviation is not None
    assert 1.0 <= deviation <= 6.0


# Feature: rss-smart-scheduler, Property 3: 统计计数器递增正确性
@EXAMPLES
@given(calls=CALLS, name=st.uuids())
def test_property_3_every_call_counts_once(connection: Connection, calls: list[tuple[bool, str]], name: object) -> None:
    hits = 0
    for number, (new, error) in enumerate(calls, 1):
        hits += new and not error
        found = update_source_stats(connection, str(name), "rss", new, error, now=START + number)
        assert (found["check_count"], found["hit_count"]) == (number, hits)
        stored = get_source_stats(connection, str(name))
        assert stored is not None
        assert (stored["check_count"], stored["hit_count"]) == (number, hits)
    connection.rollback()


# Feature: rss-smart-scheduler, Property 4: 命中率计算正确性
@EXAMPLES
@given(checks=st.integers(1, 10**6), share=st.floats(0, 1), name=st.uuids())
def test_property_4_the_hit_rate_is_hits_over_checks(
    connection: Connection, checks: int, share: float, name: object
) -> None:
    hits = int(checks * share)
    values = {"source_id": str(name), "check_count": checks, "hit_count": hits}
    connection.execute(insert(stats), values)
    found = get_source_stats(connection, str(name))
    assert found is not None
    assert found["hit_rate"] == hits / checks
    assert 0.0 <= found["hit_rate"] <= 1.0
    connection.rollback()


# Feature: rss-smart-scheduler, Property 5: 下次检查时间边界约束
@EXAMPLES
@given(
    cadence=CADENCE, frequency=FREQUENCY, average=HOURS, deviation=HOURS, ago=st.integers(-DAY, 90 * DAY),
    now=st.floats(START, START + DAY), seed=st.integers(),
)  # fmt: skip
def test_property_5_the_next_check_is_after_now_and_within_bounds(
    cadence: str, frequency: str, average: Any, deviation: Any, ago: int, now: float, seed: int
) -> None:
    rng = Random(seed)
    at = calculate_next_check_time(cadence, frequency, average, deviation, int(now) - ago, now=now, rng=rng)
    assert now < at <= now + DAY
    assert at <= now + 2 * RSS_CADENCE_INTERVALS[cadence]


# Feature: rss-smart-scheduler, Property 6: 抖动范围约束
@EXAMPLES
@given(cadence=CADENCE, now=NOW, seed=st.integers())
def test_property_6_a_fixed_interval_has_its_jitter(cadence: str, now: int, seed: int) -> None:
    base = RSS_CADENCE_INTERVALS[cadence]
    waits = {calculate_next_check_time(cadence, now=now, rng=Random(seed + n)) - now for n in range(20)}
    assert all(0.85 * base <= wait <= 1.15 * base for wait in waits)
    assert len(waits) > 1


# Feature: rss-smart-scheduler, Property 7: 退避时间计算正确性
@EXAMPLES
@given(error=ERRORS, failures=st.integers(-3, 10**9))
def test_property_7_back_off_follows_the_words(error: str, failures: int) -> None:
    said = error.lower()
    if any(word in said for word in ("429", "rate", "频繁")):
        expected = 6 * HOUR
    elif any(word in said for word in ("401", "expired", "过期")):
        expected = 0
    elif any(word in said for word in ("403", "forbidden")):
        expected = 12 * HOUR
    else:
        expected = min(15 * 60 * 2 ** min(max(failures, 1) - 1, 20), DAY)
    assert calculate_backoff(failures, error) == expected


# Feature: rss-smart-scheduler, Property 8: 成功抓取重置状态
@EXAMPLES
@given(before=CALLS, new=st.booleans(), name=st.uuids())
def test_property_8_success_resets_failures(
    connection: Connection, before: list[tuple[bool, str]], new: bool, name: object
) -> None:
    for number, (hit, error) in enumerate(before):
        update_source_stats(connection, str(name), "rss", hit, error, now=START + number)
    found = update_source_stats(connection, str(name), "rss", new, "", now=START + DAY)
    assert (found["fail_count"], found["backoff_until"]) == (0, 0)
    connection.rollback()


# Feature: rss-smart-scheduler, Property 9: 节奏兼容性
@EXAMPLES
@given(times=st.lists(st.integers(-(10**12), 10**14), max_size=30), calls=CALLS, name=st.uuids())
def test_property_9_cadences_are_of_the_known_set(
    connection: Connection, times: list[int], calls: list[tuple[bool, str]], name: object
) -> None:
    assert classify_update_frequency(rows(times), now=START)[1] in RSS_CADENCE_INTERVALS
    for number, (new, error) in enumerate(calls):
        found = update_source_stats(connection, str(name), "custom", new, error, now=START + number)
        assert found["cadence"] in {"P0", "P1", "P2", "P3", "P4", "P5", "P6"}
    connection.rollback()


# Feature: rss-smart-scheduler, Property 10: 重分析触发条件
@EXAMPLES
@given(checks=st.integers(0, 40), new=st.booleans(), name=st.uuids())
def test_property_10_analysis_comes_every_ten_checks_and_with_first_finds(
    connection: Connection, checks: int, new: bool, name: object
) -> None:
    publish(connection, str(name), [START - 40 * DAY * number for number in range(1, 5)])
    connection.execute(insert(stats), {"source_id": str(name), "check_count": checks})
    found = update_source_stats(connection, str(name), "rss", new, "", now=START)
    analysed = (checks + 1) % 10 == 0 or (new and checks + 1 <= 3)
    assert found["cadence"] == ("P6" if analysed else "P2")
    assert (found["known_count"] == 4) is analysed
    connection.rollback()


# Feature: rss-smart-scheduler, Property 11: 统计记录创建
@EXAMPLES
@given(kind=st.sampled_from(["rss", "custom"]), new=st.booleans(), error=ERRORS, name=st.uuids())
def test_property_11_the_first_update_makes_the_row(
    connection: Connection, kind: str, new: bool, error: str, name: object
) -> None:
    assert get_source_stats(connection, str(name)) is None
    update_source_stats(connection, str(name), kind, new, error, now=START)
    found = get_source_stats(connection, str(name))
    assert found is not None
    assert (found["source_id"], found["source_type"], found["check_count"]) == (str(name), kind, 1)
    assert found["fail_count"] == (1 if error else 0)
    required = ("frequency_type", "cadence", "next_due_at", "last_check_at", "created_at", "updated_at")
    assert all(found[column] is not None for column in required)
    assert found["next_due_at"] > START
    connection.rollback()


# Feature: rss-smart-scheduler, Property 12: 时间戳更新
@EXAMPLES
@given(calls=CALLS, steps=st.integers(1, DAY), name=st.uuids())
def test_property_12_updated_at_is_the_present_moment(
    connection: Connection, calls: list[tuple[bool, str]], steps: int, name: object
) -> None:
    for number, (new, error) in enumerate(calls):
        now = START + number * steps
        assert update_source_stats(connection, str(name), "rss", new, error, now=now)["updated_at"] == now
        connection.execute(update(stats).where(stats.c.source_id == str(name)).values(lease_until=0))
    connection.rollback()


def spaced(count: int, gap: float) -> list[dict[str, Any]]:
    return rows([int(START - number * gap) for number in range(count)])


@pytest.mark.parametrize(
    ("hours", "below", "reached"),
    [
        (6, "realtime", "high"),
        (18, "high", "daily"),
        (36, "daily", "daily_fixed"),
        (72, "daily_fixed", "weekly"),
        (168, "weekly", "monthly"),
        (720, "monthly", "low"),
    ],
)
def test_a_mean_gap_at_a_limit_belongs_to_the_slower_class(hours: int, below: str, reached: str) -> None:
    found = [classify_update_frequency(spaced(4, gap), now=START)[0] for gap in (hours * HOUR - 1, hours * HOUR)]
    assert found == [below, reached]


def test_five_on_one_day_are_realtime_and_four_are_not() -> None:
    midnight = datetime.fromtimestamp(START, DEFAULT_ZONE).replace(hour=0, minute=0, second=0, microsecond=0)
    day = int(midnight.timestamp()) - 2 * DAY
    for count, frequency in ((4, "low"), (5, "realtime")):
        times = [day + number for number in range(count)] + [day - 200 * DAY]
        assert classify_update_frequency(rows(sorted(times, reverse=True)), now=START)[0] == frequency


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_entries_are_daily_and_have_no_hours(count: int) -> None:
    assert classify_update_frequency(spaced(count, 900 * HOUR), now=START) == ("daily", "P2")
    assert calculate_publish_time_stats(spaced(count, HOUR), now=START) == (None, None)


def test_hours_of_one_hour_and_of_both_sides_of_midnight() -> None:
    midnight = datetime.fromtimestamp(START, DEFAULT_ZONE).replace(hour=0, minute=0, second=0, microsecond=0)
    at = int(midnight.timestamp())
    same = rows([at - day * DAY + 20 * HOUR for day in (1, 2, 3)])
    assert calculate_publish_time_stats(same, now=START) == (20.0, 1.0)
    both = rows([at - day * DAY + hour * HOUR for day in (1, 2) for hour in (23, 1)])
    # The plan's mean is arithmetic: noon. The deviation at its limit says that the hours are not usable.
    assert calculate_publish_time_stats(both, now=START) == (12.0, 6.0)


def test_times_that_cannot_be_are_skipped_and_the_others_count() -> None:
    odd: list[Any] = [None, "x", 0, -5, float("nan"), START + 9 * DAY, True]
    given_rows = spaced(4, 20 * HOUR) + [{"published_at": moment} for moment in odd]
    assert classify_update_frequency(given_rows, now=START) == ("daily", "P2")
    weekly = spaced(4, 100 * HOUR) + [{"published_at": moment} for moment in odd]
    assert classify_update_frequency(weekly, now=START) == ("weekly", "P4")


SIGNATURES = {
    "classify_update_frequency": ("entries",),
    "calculate_publish_time_stats": ("entries",),
    "calculate_next_check_time": (
        *("cadence", "frequency_type='daily'", "avg_publish_hour=None"),
        *("std_publish_hour=None", "last_article_at=0"),
    ),
    "calculate_backoff": ("fail_count", "error_message=''"),
    "get_source_stats": ("conn", "source_id"),
    "get_recent_entries": ("conn", "source_id", "source_type='rss'", "limit=30"),
    "update_source_stats": ("conn", "source_id", "source_type='rss'", "has_new_entries=False", "error_message=''"),
    "get_due_sources": ("conn", "now", "source_type=None", "limit=20"),
    "get_scheduler_stats": ("conn", "source_type=None"),
}
"""The plan's functions with what they may be given by place; ours are keywords alone."""


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_plan_s_functions_take_what_the_plan_says(name: str) -> None:
    found = signature(getattr(scheduler, name)).parameters.values()
    by_place = [each for each in found if each.kind is not Parameter.KEYWORD_ONLY]
    shown = (each.name if each.default is Parameter.empty else f"{each.name}={each.default!r}" for each in by_place)
    assert tuple(shown) == SIGNATURES[name]
    assert all(each.default is not Parameter.empty for each in found if each not in by_place)
    assert name in scheduler.__all__
