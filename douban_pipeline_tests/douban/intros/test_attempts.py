"""What a failed call costs a video: a while, by the kind of failure, and never its visits to Douban."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.core.llm import LanguageModel
from douban_pipeline_tests.douban.intros.room import linked
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, TRAM, WHALE


@pytest.mark.parametrize(
    ("fault", "options", "between", "counted"),
    [
        ("throttled", {}, (10, 30), False),
        ("throttled", {"retry_after": 7200}, (120, 121), False),
        ("server_error", {}, (5, 10), True),
        ("error_in_200", {}, (5, 10), True),
        ("request_timeout", {}, (5, 10), True),
        ("garbage", {}, (30, 120), True),
        ("empty", {}, (30, 120), True),
        ("refused", {}, (30, 120), True),
        ("rejected", {}, (30, 120), True),
        ("too_heavy", {}, (30, 120), True),
    ],
)
def test_how_long_a_failed_call_waits(room, fault, options, between, counted):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("llm", fault, **options)
    before = house.library.all_bytes()
    metadata = house.run()
    now = house.clock.now()
    [task] = house.library.tasks()
    assert (task["status"], task["attempts"], metadata["written"]) == ("PENDING", int(counted), 0)
    least, most = (timedelta(minutes=part) for part in between)
    assert least <= task["run_after"] - now <= most + timedelta(seconds=59)
    state = house.library.state(4)
    assert (state["intro_ai_fail_count"], state["douban_sync_fail_count"]) == (int(counted), 0)
    assert bool(state["intro_ai_last_fail_reason"]) is counted
    assert state["douban_next_sync_at"] == START + timedelta(days=30), "the sync's rhythm is its own"
    assert (metadata["failed"], metadata["deferred"]) == ((1, 0) if counted else (0, 1))
    assert house.library.all_bytes() == before
    # When the source is well again, the video gets its intro.
    house.upstream.faults.clear()
    house.library.services.gate.close("openrouter")
    house.clock.advance(hours=3)
    assert house.run()["written"] == 1
    assert house.library.state(4)["intro_ai_fail_count"] == 0


@pytest.mark.parametrize("fault", ["unpaid", "key_spent", "budget_spent"])
def test_an_empty_account_ends_the_day(room, fault):
    house = room(linked(RIVER, 4), linked(WHALE, 5), site_timezone="Asia/Shanghai")
    house.upstream.faults.add("llm", fault)
    metadata = house.run()
    assert (metadata["deferred"], metadata["failed"], house.calls) == (2, 0, 1)
    midnight = START.replace(hour=16)  # UTC of Shanghai's
    assert {midnight <= task["run_after"] < midnight + timedelta(minutes=1) for task in house.library.tasks()} == {True}
    house.upstream.faults.clear()
    assert house.run()["asked"] == 0
    house.clock.advance(hours=12, minutes=1)
    assert house.run()["written"] == 2


def test_a_wall_is_nobodys_fault(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5))
    house.upstream.faults.add("llm", "login_redirect")
    metadata = house.run()
    assert (metadata["deferred"], metadata["failed"]) == (2, 0)
    assert {state["intro_ai_fail_count"] for state in house.library.states().values()} == {0}


def test_an_open_gate_puts_the_tasks_off(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5))
    _ = house.library.services.llm
    until = START + timedelta(minutes=45)
    house.library.services.gate.open("openrouter", until, "手动断开", by="小王")
    metadata = house.run()
    assert (metadata["deferred"], metadata["failed"], house.calls) == (2, 0, 0)
    assert "手动断开" in metadata["put_back"]
    waits = [task["run_after"] for task in house.library.tasks()]
    assert all(until <= moment < until + timedelta(minutes=1) for moment in waits)
    house.clock.advance(minutes=46)
    assert house.run()["written"] == 2


def test_who_fails_again_and_again_waits_a_day(room):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("llm", "rejected")
    for failures in range(1, 7):
        assert house.run()["failed"] == 1
        [task] = house.library.tasks()
        wait = task["run_after"] - house.clock.now()
        assert (timedelta(days=1) <= wait <= timedelta(days=1.1)) is (failures >= 5)
        assert house.library.state(4)["intro_ai_fail_count"] == task["attempts"] == failures
        house.clock.advance(days=1.1)


def test_the_budget_of_the_day_ends_it(room_everywhere):
    house = room_everywhere(linked(RIVER, 4), linked(WHALE, 5), linked(TRAM, 6), llm_budget_usd_per_day=0.000_001)
    metadata = house.run()
    assert (metadata["written"], metadata["deferred"], metadata["failed"], house.calls) == (1, 2, 0, 1)
    assert (metadata["budget_today_usd"], metadata["cost_today_usd"]) == (0.000_001, metadata["cost_usd"])
    assert "今日预算 1e-06 美元已用完" in metadata["put_back"]
    again = house.run()
    assert (again["asked"], again["deferred"]) == (0, 0), "nothing is begun that day"
    house.clock.advance(hours=12, minutes=1)  # past midnight in Shanghai
    metadata = house.run()
    assert (metadata["written"], metadata["deferred"]) == (1, 1)
    assert {state["intro_ai_fail_count"] for state in house.library.states().values()} == {0}


def test_at_a_budget_of_nothing_nothing_is_asked(room):
    house = room(linked(RIVER, 4), llm_budget_usd_per_day=0)
    assert (house.run()["asked"], house.calls, house.library.tasks()) == (0, 0, [])


def test_the_time_of_a_run_is_kept_to(room):
    house = room(*(linked(entry, vod_id) for entry, vod_id in ((RIVER, 4), (WHALE, 5), (TRAM, 6))), run_seconds=10)
    _ = house.library.services.llm
    real = LanguageModel.complete

    def slowly(self, *given, **named):
        house.clock.advance(seconds=20)
        return real(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageModel, "complete", slowly)
        metadata = house.run()
    assert (metadata["written"], metadata["left_for_later"]) == (1, 2)
    assert house.run()["written"] == 2
