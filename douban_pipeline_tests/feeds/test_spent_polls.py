"""The budget that is set is spent: the plan is corrected by the polls really made, not by those that could not be."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, update

from douban_pipeline.core.counters import Counters
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds import budget_plan, mounts
from douban_pipeline.feeds.budget_plan import BOUNDS, BudgetPlan, PlanSpan, Spent, corrected, counted, make_plan
from douban_pipeline.feeds.operations import OPERATIONS
from douban_pipeline.feeds.reports import page
from douban_pipeline.feeds.store import sources
from douban_pipeline.feeds.store.tables import plan as plans
from douban_pipeline.feeds.store.tables import poll, stats
from douban_pipeline.feeds.types import Source, SourceKind, source_id_for
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, Stage, hourly, stage

BUSY_HOURS = np.array([1 + 3 * (9 <= hour < 22) for hour in range(24)]) / (24 + 39)


def days(count: int, made: Callable[[int, float], float], polls_per_day: float = 1000) -> float:
    """Return the correction after days of hourly reviews, if ``made`` says what share of the planned is polled."""
    spans: list[PlanSpan] = []
    correction = 1.0
    for hour in range(24 * count):
        planned = polls_per_day * BUSY_HOURS[hour % 24]
        spans.append(
            PlanSpan(hour * HOUR, (hour + 1) * HOUR, planned, correction, round(planned * made(hour % 24, correction)))
        )
        correction = corrected(spans[-48:], correction, polls_per_day)
    return correction


@settings(max_examples=50)
@given(share=st.floats(0.4, 1.5), swing=st.floats(0.0, 0.5), elastic=st.floats(0.75, 1.0))
def test_the_correction_comes_to_rest_where_the_budget_is_spent(share: float, swing: float, elastic: float) -> None:
    def made(hour: int, correction: float) -> float:
        return share * (1 + swing * (1 if hour % 2 else -1)) * correction**elastic

    found = days(6, made)
    assert BOUNDS[0] <= found <= BOUNDS[1]
    daily = sum(BUSY_HOURS[hour] * made(hour, found) for hour in range(24))
    assert daily == pytest.approx(1.0, abs=0.06)


def test_no_hour_of_a_first_day_moves_it_far() -> None:
    assert corrected([PlanSpan(0, HOUR, 16, 1.0, 0)], 1.0, 1000) == pytest.approx(1.016, abs=0.001)
    assert corrected([], 1.7, 1000) == pytest.approx(1.7)
    assert corrected([PlanSpan(0, HOUR, 1000, 1.0, 0)] * 24, 1.0, 1000) == BOUNDS[1]


def test_a_day_s_polls_are_planned_for_any_day() -> None:
    everyone = np.array([1.0 + 9 * (100 < slot < 200) for slot in range(288)])
    for start in (0, 7 * HOUR + 123, START):
        hours = [
            budget_plan.planned_between(everyone, 240, start + n * HOUR, start + (n + 1) * HOUR) for n in range(24)
        ]
        assert sum(hours) == pytest.approx(240)
        assert max(hours) > 2 * min(hours)


@pytest.mark.parametrize(
    ("seconds", "spent"),
    [
        (30 * HOUR, Spent(50, 0, 0.0)),
        (60, Spent(50, 0, 0.0)),
        (HOUR, Spent(50, 26, 0.0)),
        (HOUR, Spent(0, 0, 0.5)),
    ],
)
def test_a_time_in_which_nothing_could_be_polled_is_not_counted(seconds: int, spent: Spent) -> None:
    assert not counted(PlanSpan(0, seconds, 50, 1.0, spent.made), spent)
    assert counted(PlanSpan(0, HOUR, 50, 1.0, 40), Spent(40, 3, 0.0))


def plant(at: Stage, source: str, count: int, outcome: str = "miss") -> None:
    """Plant polls in the hour before now."""
    now = at.services.now()
    row = {"source_id": source, "host": "h", "outcome": outcome}
    with at.services.engine.begin() as connection:
        if count:
            moments = [{**row, "at": now - HOUR + 1 + 3000 * number // count} for number in range(count)]
            connection.execute(insert(poll), moments)
        connection.execute(update(stats).values(next_due_at=now + HOUR, backoff_until=0))


def planned(at: Stage) -> BudgetPlan:
    made = make_plan(at.services.engine, at.services.settings, at.services.now())
    assert made is not None
    return made


def test_the_plan_is_corrected_every_hour_and_shown_beside_what_was_polled(tmp_path: Path) -> None:
    with stage(tmp_path, {"news": SourceStandIn("rss", hourly(40))}, polls_per_source_per_day=240) as at:
        [news] = at.follow("news")
        at.poll()
        first = planned(at)
        assert (first.correction, first.spans) == (1.0, [])
        last = first
        for _ in range(60):
            at.clock.at += HOUR
            plant(at, news, round(7 * last.correction))
            last = planned(at)
        assert last.correction == pytest.approx(240 / 168, rel=0.06)
        assert last.allocation.constant < first.allocation.constant
        text = page.page(page.look(at.services), at.services)
        assert "过去 24 小时；计划一天 240 次，预算 240 次" in text
        assert f"按实际抓取校正 {last.correction:.2f} 倍" in text
        made = re.search(r">(\d+)</b>\s*<small>过去", text)
        assert made is not None
        assert int(made[1]) == pytest.approx(240, rel=0.06)
        # A day without anything that could be polled leaves it as it is, whether the review ran or not.
        at.clock.at += DAY
        assert planned(at).correction == last.correction
        for _ in range(24):
            at.clock.at += HOUR
            plant(at, news, 3, "failed")
            assert planned(at).correction == last.correction
        # All that was missed is polled once it is over: those polls are not the plan's.
        at.clock.at += HOUR
        plant(at, news, 40)
        assert planned(at).correction == last.correction
        # Stored by another release, or damaged: made anew.
        with at.services.engine.begin() as connection:
            connection.execute(update(plans).where(plans.c.name == budget_plan.NAME).values(content={"constant": 1}))
        assert planned(at).correction == 1.0


def test_sources_that_wait_for_their_poll_do_not_raise_it(tmp_path: Path) -> None:
    with stage(tmp_path, {"news": SourceStandIn("rss", hourly(40))}, polls_per_source_per_day=240) as at:
        at.follow("news")
        at.poll()
        planned(at)
        for _ in range(30):
            at.clock.at += HOUR
            assert planned(at).correction == 1.0


@pytest.mark.parametrize(("count", "told"), [(720, False), (721, True)])
def test_a_host_that_allows_too_few_polls_is_told_of(
    count: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DOUBAN_PIPELINE_SYSTEMS", "feeds")
    monkeypatch.setattr(mounts, "load_settings", lambda: at.services.settings)
    with stage(tmp_path, {}, requests_per_minute=1) as at:
        urls = [f"http://crowd.example/{number}" for number in range(count)]
        added = [Source(source_id_for(SourceKind.RSS, url), SourceKind.RSS, url) for url in urls]
        with at.services.engine.begin() as connection:
            sources.insert_sources(connection, added, dict.fromkeys((each.source_id for each in added), START), START)
        results = {each.name: each for each in OPERATIONS.checks(at.services)}
        assert ("hosts" in results) is told
        for mount in mounts.mounts(GuessGuard(Counters(at.services.clock))):
            if mount.close is not None:
                mount.close()
        assert ("crowd.example" in caplog.text) is told
        if told:
            assert results["hosts"].state == "warn"
            assert "crowd.example has 721 sources, and 1 requests a minute: 2.0 polls a day" in results["hosts"].message
            assert "DOUBAN_PIPELINE_FEEDS_REQUESTS_PER_MINUTE" in results["hosts"].remedy
        # What the host does not allow is not planned: it would be owed for ever.
        assert planned(at).allocation.polls == pytest.approx(1440, rel=0.02)


def test_the_budget_grows_with_the_sources(tmp_path: Path) -> None:
    given = {name: SourceStandIn("rss", hourly(40), name) for name in ("one", "two", "three")}
    with stage(tmp_path, given) as at:
        at.follow(*given)
        at.poll()
        assert planned(at).polls_per_day == 72


def test_what_sources_in_back_off_do_not_spend_goes_to_the_others(tmp_path: Path) -> None:
    given = {name: SourceStandIn("rss", hourly(40), name) for name in ("one", "two", "three")}
    with stage(tmp_path, given, polls_per_source_per_day=80) as at:
        ids = at.follow(*given)
        at.poll()
        before = planned(at)
        with at.services.engine.begin() as connection:
            connection.execute(
                update(stats).where(stats.c.source_id == ids[0]).values(backoff_until=at.services.now() + DAY)
            )
            connection.execute(delete(plans))
        after = planned(at)
        assert after.allocation.constant == pytest.approx(before.allocation.constant * 2 / 3, rel=0.01)
        assert after.polls_per_day == 240
        with at.services.engine.begin() as connection:
            connection.execute(update(stats).values(backoff_until=at.services.now() + DAY))
            connection.execute(delete(plans))
        assert planned(at).allocation.constant == pytest.approx(before.allocation.constant, rel=0.01)
