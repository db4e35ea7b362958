"""The scheduler on real databases: what is due, leases, concurrent updates, and what keeps it from harm."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, insert, inspect, select, update

from douban_pipeline.core.database import open_engine, run_transaction
from douban_pipeline.feeds import scheduler
from douban_pipeline.feeds.cadence import calculate_next_check_time, silent_cadence, usual_hours
from douban_pipeline.feeds.store import stats as store
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.tables import NEVER_DUE, stats
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START
from douban_pipeline_tests.feeds.test_properties import publish


@pytest.fixture
def engine(any_database_url: str) -> Iterator[Engine]:
    opened = open_engine(any_database_url)
    TREE.upgrade(opened)
    yield opened
    opened.dispose()


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Engine]:
    opened = open_engine(sqlite_url)
    TREE.upgrade(opened)
    yield opened
    opened.dispose()


def given(engine: Engine, *rows: dict[str, Any]) -> None:
    with engine.begin() as connection:
        for row in rows:
            connection.execute(insert(stats), row)


def test_the_plan_s_columns_and_indexes_are_there(engine: Engine) -> None:
    found = inspect(engine)
    columns = {column["name"] for column in found.get_columns("source_stats")}
    planned = (
        "source_id source_type frequency_type cadence avg_publish_hour std_publish_hour next_due_at last_check_at "
        "last_article_at fail_count backoff_until last_error check_count hit_count created_at updated_at"
    )
    assert columns >= set(planned.split())
    indexes = {index["name"]: index["column_names"] for index in found.get_indexes("source_stats")}
    assert indexes["idx_source_stats_next_due"] == ["next_due_at"]
    assert indexes["idx_source_stats_cadence"] == ["cadence"]
    assert indexes["idx_source_stats_type"] == ["source_type"]
    assert indexes["idx_source_stats_type_due"] == ["source_type", "next_due_at"]
    assert TREE.upgrade(engine) == (TREE.head, TREE.head)


def test_two_updates_of_one_source_at_once_both_count(engine: Engine) -> None:
    threads, each = 4, 5
    start = threading.Barrier(threads)

    def work() -> None:
        start.wait()
        for _ in range(each):
            run_transaction(engine, lambda c: scheduler.update_source_stats(c, "one", "rss", True, "", now=START))

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    with engine.connect() as connection:
        found = scheduler.get_source_stats(connection, "one")
    assert found is not None
    assert (found["check_count"], found["hit_count"]) == (threads * each, threads * each)


def test_statistics_that_are_unusable_fall_back_to_the_fixed_interval(engine: Engine) -> None:
    for average, deviation in ((99.0, 2.0), (12.0, -1.0), (12.0, 6.0), (12.0, None)):
        row = {"avg_publish_hour": average, "std_publish_hour": deviation, "check_count": 3}
        given(engine, {"source_id": f"odd-{average}-{deviation}", "cadence": "P9", **row})
        with engine.begin() as connection:
            found = scheduler.update_source_stats(connection, f"odd-{average}-{deviation}", now=START, rng=Random(1))
        assert 0.85 * HOUR <= found["next_due_at"] - START <= 1.15 * HOUR
        assert found["why"]["bound"] == "interval"


def test_due_sources_come_longest_due_first_and_exclude_back_off_and_leases(engine: Engine) -> None:
    given(
        engine,
        {"source_id": "b", "next_due_at": START - 5},
        {"source_id": "a", "next_due_at": START - 50, "source_type": "custom"},
        {"source_id": "later", "next_due_at": START + 1},
        {"source_id": "resting", "next_due_at": START - 90, "backoff_until": START + 9},
        {"source_id": "leased", "next_due_at": START - 90, "lease_token": "x", "lease_until": START + 9},
        {"source_id": "paused", "next_due_at": NEVER_DUE},
    )
    with engine.connect() as connection:
        assert [row["source_id"] for row in scheduler.get_due_sources(connection, START)] == ["a", "b"]
        assert [row["source_id"] for row in scheduler.get_due_sources(connection, START, limit=1)] == ["a"]
        assert [row["source_id"] for row in scheduler.get_due_sources(connection, START, "rss")] == ["b"]
        figures = scheduler.get_scheduler_stats(connection, now=START)
    assert (figures["total"], figures["active"], figures["in_backoff"]) == (6, 5, 1)
    assert figures["hit_rate"] == 0.0


def test_two_claims_at_once_share_out_what_is_due(engine: Engine) -> None:
    given(engine, *({"source_id": f"s{number:02}", "next_due_at": 0} for number in range(20)))
    claimed: list[list[str]] = []
    start = threading.Barrier(3)

    def work(token: str) -> None:
        start.wait()
        claimed.append(run_transaction(engine, lambda c: store.claim(c, START, token, 300, 15)))

    running = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    everyone = [each for some in claimed for each in some]
    assert len(everyone) == len(set(everyone))
    assert set(everyone) <= {f"s{number:02}" for number in range(20)}
    # Whoever waited for the first finds what it left, in the next round at the latest.
    left = run_transaction(engine, lambda c: store.claim(c, START, "last", 300, 20))
    assert len(set(everyone) | set(left)) == 20


def test_rows_of_one_second_are_one_publication(engine: Engine) -> None:
    with engine.begin() as connection:
        publish(connection, "one", [START - DAY] * 4 + [START - 3 * DAY])
        found = scheduler.get_recent_entries(connection, "one")
        assert [row["published_at"] for row in found] == [START - DAY, START - 3 * DAY]
        assert scheduler.get_recent_entries(connection, "one", limit=1)[0]["published_at"] == START - DAY


def test_the_newest_thirty_are_recent_and_of_the_source_s_own_type(engine: Engine) -> None:
    with engine.begin() as connection:
        publish(connection, "one", [START - number * HOUR for number in range(40)])
        found = scheduler.get_recent_entries(connection, "one")
        assert [row["published_at"] for row in found] == [START - number * HOUR for number in range(30)]
        connection.execute(insert(stats), {"source_id": "one", "source_type": "custom"})
        assert len(scheduler.get_recent_entries(connection, "one", "custom")) == 30
        assert scheduler.get_recent_entries(connection, "one") == []


def test_a_row_has_the_plan_s_defaults(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO source_stats (source_id) VALUES ('bare')")
        [row] = connection.execute(select(stats)).mappings()
    assert (row["source_type"], row["frequency_type"], row["cadence"]) == ("rss", "daily", "P2")
    zero = ("next_due_at", "last_check_at", "last_article_at", "fail_count", "backoff_until", "check_count")
    assert {row[name] for name in (*zero, "hit_count")} == {0}
    none = ("avg_publish_hour", "std_publish_hour", "last_error", "created_at", "updated_at")
    assert {row[name] for name in none} == {None}


@pytest.mark.parametrize(
    "damage",
    [
        {"cadence": "P9"},
        {"cadence": None},
        {"frequency_type": "often"},
        {"avg_publish_hour": -3.0, "std_publish_hour": 1.0},
        {"avg_publish_hour": 99.0, "std_publish_hour": 1.0},
        {"std_publish_hour": -1.0},
        {"mean_gap": -5.0},
        {"hit_count": 50},
    ],
)
def test_damaged_statistics_are_made_anew(engine: Engine, damage: dict[str, Any]) -> None:
    row = {"check_count": 14, "hit_count": 4, "known_count": 77, "last_article_at": START, "last_check_at": START}
    given(engine, {"source_id": "one", "next_due_at": 0, **row, **damage}, {"source_id": "well", **row})
    with engine.begin() as connection:
        for each in ("one", "well"):
            publish(connection, each, [START - 40 * DAY * number for number in range(1, 5)])
        store.correct_clock(connection, START, 300)
        found = scheduler.update_source_stats(connection, "one", now=START)
        stored = scheduler.get_source_stats(connection, "one")
        well = scheduler.update_source_stats(connection, "well", now=START)
    assert (found["cadence"], found["frequency_type"], found["known_count"]) == ("P6", "low", 4)
    assert (found["mean_gap"], found["last_article_at"]) == (40 * DAY, START - 40 * DAY)
    assert 0 <= found["hit_count"] <= found["check_count"]
    assert stored is not None
    assert all(stored[name] == found[name] for name in ("cadence", "known_count", "hit_count", "avg_publish_hour"))
    # Sound ones wait for their tenth check.
    assert (well["known_count"], well["cadence"]) == (77, "P2")


def test_a_401_is_tried_again_but_never_at_once(sqlite: Engine) -> None:
    with sqlite.begin() as connection:
        found = scheduler.update_source_stats(connection, "one", error_message="HTTP 401", now=START)
    assert found["backoff_until"] == START
    assert found["next_due_at"] >= START + 15 * 60


@pytest.mark.parametrize(
    ("raw", "wait"),
    [
        ("generated page is separate", 15 * 60),
        ("certificate has expired", 15 * 60),
        ("HTTP 429 too many", 6 * HOUR),
        ("HTTP 403: rate of requests", 12 * HOUR),
        ("port 4010 refused", 15 * 60),
    ],
)
def test_words_that_stand_in_others_by_chance_decide_nothing(sqlite: Engine, raw: str, wait: int) -> None:
    with sqlite.begin() as connection:
        found = scheduler.update_source_stats(connection, "one", error_message=raw, now=START)
    assert found["backoff_until"] == START + wait
    assert found["last_error"] == raw


def test_what_the_source_asks_for_is_a_floor(sqlite: Engine) -> None:
    with sqlite.begin() as connection:
        found = scheduler.update_source_stats(connection, "one", now=START, floor=START + 5 * HOUR)
        assert found["next_due_at"] == START + 5 * HOUR
        floor = START + 9 * HOUR
        failed = scheduler.update_source_stats(connection, "two", error_message="429", now=START, floor=floor)
        assert failed["backoff_until"] == START + 9 * HOUR


def test_a_clock_that_was_set_back_is_mended(sqlite: Engine) -> None:
    ahead = START + 90 * DAY
    given(
        sqlite,
        {"source_id": "a", "next_due_at": ahead, "last_check_at": ahead, "lease_token": "x", "lease_until": ahead},
        {"source_id": "b", "next_due_at": ahead, "backoff_until": ahead, "last_check_at": ahead},
        {"source_id": "well", "next_due_at": START + HOUR, "last_check_at": START - HOUR},
        {"source_id": "paused", "next_due_at": NEVER_DUE, "last_check_at": ahead},
    )
    with sqlite.begin() as connection:
        assert store.correct_clock(connection, START, 300) == 3
        due = {row["source_id"] for row in scheduler.get_due_sources(connection, START)}
        assert due == {"a", "b"}
        rows = {row.source_id: row for row in connection.execute(select(stats))}
    assert rows["paused"].next_due_at == NEVER_DUE
    assert rows["well"].next_due_at == START + HOUR


def test_every_row_is_read_only_after_the_clock_went_back(sqlite: Engine) -> None:
    with sqlite.begin() as connection:
        assert store.clock_went_back(connection, START + 90 * DAY), "no run before noted its time"
        assert not store.clock_went_back(connection, START + 90 * DAY + 60)
        assert not store.clock_went_back(connection, START + 90 * DAY - 60), "machines differ by as much"
        assert store.clock_went_back(connection, START)
        assert not store.clock_went_back(connection, START)


def test_counting_stops_where_it_is_enough(engine: Engine) -> None:
    given(engine, *({"source_id": f"s{number}", "next_due_at": START - number} for number in range(9)))
    with engine.begin() as connection:
        assert store.count_due(connection, START, 5) == (5, START - 8)
        assert store.count_due(connection, START) == (9, START - 8)


def test_a_row_without_times_or_counters_is_due_at_once(sqlite: Engine) -> None:
    empty = dict.fromkeys(("next_due_at", "backoff_until", "last_check_at", "fail_count", "check_count", "hit_count"))
    given(sqlite, {"source_id": "a", **empty}, {"source_id": "well", "next_due_at": START + HOUR})
    with sqlite.begin() as connection:
        assert store.correct_clock(connection, START, 300) == 1
        assert [row["source_id"] for row in scheduler.get_due_sources(connection, START)] == ["a"]
        scheduler.update_source_stats(connection, "a", error_message="HTTP 5xx", now=START)
        [row] = connection.execute(select(stats).where(stats.c.source_id == "a"))
    assert (row.fail_count, row.check_count, row.hit_count) == (1, 1, 0)


def test_counters_below_none_begin_at_none(sqlite: Engine) -> None:
    given(sqlite, {"source_id": "a", "check_count": -9, "hit_count": -4, "fail_count": 2})
    with sqlite.begin() as connection:
        assert store.correct_clock(connection, START, 300) == 1
        [row] = connection.execute(select(stats))
    assert (row.check_count, row.hit_count, row.fail_count) == (0, 0, 2)


def test_an_accrual_schedule_looks_more_often_in_usual_hours() -> None:
    # 08:00 and 20:00 in Asia/Shanghai, of a source that publishes about 20:00.
    morning = START - START % DAY + DAY
    evening = morning + 12 * HOUR
    waits = [calculate_next_check_time("P2", "daily", 20.0, 1.5, now=now) - now for now in (morning, evening)]
    assert waits[0] > 1.9 * HOUR
    assert waits[1] < HOUR / 1.5


def test_a_daily_source_that_published_today_is_asked_less() -> None:
    now = START - START % DAY + DAY + 12 * HOUR
    fresh = calculate_next_check_time("P2", "daily", 20.0, 1.5, now - HOUR // 2, now=now)
    missing = calculate_next_check_time("P2", "daily", 20.0, 1.5, now - 24 * HOUR, now=now)
    assert fresh > missing


def test_a_silent_source_steps_down_and_never_up() -> None:
    steps = [silent_cadence("P0", START - days * DAY, DAY / 4, START) for days in (0, 2, 8, 20, 40)]
    assert steps == ["P0", "P2", "P3", "P4", "P5"]
    assert silent_cadence("P6", START - 8 * DAY, DAY, START) == "P6"
    assert silent_cadence("P1", 0, DAY, START) == "P1"


def test_new_sources_are_spread_and_always_alike() -> None:
    names = [f"rss-{number}" for number in range(400)]
    due = scheduler.stagger(names, START, HOUR)
    assert due == scheduler.stagger(names, START, HOUR)
    assert all(START <= moment < START + HOUR for moment in due.values())
    quarters = [sum(moment - START < part * HOUR / 4 for moment in due.values()) for part in (1, 2, 3)]
    assert all(abs(found - expected) < 40 for found, expected in zip(quarters, (100, 200, 300), strict=True))


def test_hours_are_usable_or_not() -> None:
    assert usual_hours(0.0, 1.0)
    assert not any(usual_hours(*pair) for pair in ((None, 1.0), (24.0, 1.0), (12.0, 6.0), (float("nan"), 2.0)))


def test_choosing_the_due_uses_an_index(sqlite: Engine) -> None:
    with sqlite.connect() as connection:
        text = "EXPLAIN QUERY PLAN SELECT * FROM source_stats WHERE next_due_at <= 1 ORDER BY next_due_at LIMIT 20"
        plan = " ".join(str(row) for row in connection.exec_driver_sql(text))
    assert "idx_source_stats_next_due" in plan


def test_a_released_lease_of_another_stays(sqlite: Engine) -> None:
    given(sqlite, {"source_id": "one", "lease_token": "mine", "lease_until": START + 9})
    with sqlite.begin() as connection:
        store.release(connection, ["one"], "other")
        assert connection.execute(select(stats.c.lease_token)).scalar() == "mine"
        connection.execute(update(stats).values(lease_token="other"))
        store.release(connection, ["one"], "other", START + 5)
        assert connection.execute(select(stats.c.next_due_at)).scalar() == START + 5
