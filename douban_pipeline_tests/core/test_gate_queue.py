"""In which order and when calls pass a gate, on one row in memory."""

from __future__ import annotations

import heapq
from collections import Counter
from datetime import timedelta
from random import Random

from douban_pipeline.core.gate_types import Admitted, WaitForTurn
from douban_pipeline_tests.core.gate_rows import HOLD, SECOND, row
from douban_pipeline_tests.harness.fixtures.clocks import START


def test_slots_are_an_interval_apart_in_order_of_arrival() -> None:
    gate = row(concurrency=3)
    assert gate.ask("a", START, HOLD) == Admitted()
    assert gate.ask("b", START, HOLD) == WaitForTurn(2.0)
    assert gate.ask("c", START, HOLD) == WaitForTurn(4.0)
    assert gate.ask("c", START + 2 * SECOND, HOLD) == WaitForTurn(2.0)
    assert gate.ask("b", START + 2 * SECOND, HOLD) == Admitted()
    assert gate.ask("c", START + 4 * SECOND, HOLD) == Admitted()
    assert gate.granted == 3


def test_an_idle_gate_saves_no_slots_up() -> None:
    gate = row()
    later = START + timedelta(hours=1)
    assert gate.ask("a", later, HOLD) == Admitted()
    assert gate.ask("b", later, HOLD) == WaitForTurn(2.0)


def test_places_are_handed_on_in_order_of_arrival() -> None:
    gate = row(concurrency=1, interval=timedelta())
    assert gate.ask("a", START, HOLD) == Admitted()
    for waiter in "bc":
        assert isinstance(gate.ask(waiter, START, HOLD), WaitForTurn)
    gate.leave("a", None, START, Random(0))
    assert isinstance(gate.ask("c", START, HOLD), WaitForTurn)
    assert gate.ask("b", START, HOLD) == Admitted()


def test_what_a_person_waits_for_goes_before_those_that_wait() -> None:
    gate = row(concurrency=1, interval=timedelta())
    assert gate.ask("a", START, HOLD) == Admitted()
    for waiter in "bc":
        assert isinstance(gate.ask(waiter, START, HOLD), WaitForTurn)
    for waiter in "xy":
        assert isinstance(gate.ask(waiter, START, HOLD, urgent=True), WaitForTurn)
    for first in "axybc":
        assert gate.ask(first, START, HOLD, urgent=first in "xy") == Admitted(), first
        gate.leave(first, None, START, Random(0))


def test_who_has_a_slot_keeps_it_when_something_urgent_comes() -> None:
    gate = row(concurrency=3)
    assert gate.ask("a", START, HOLD) == Admitted()
    assert gate.ask("b", START, HOLD) == WaitForTurn(2.0)
    for waiter in "cdef":
        assert isinstance(gate.ask(waiter, START, HOLD), WaitForTurn)
    assert isinstance(gate.ask("x", START, HOLD, urgent=True), WaitForTurn)
    assert [holder.owner for holder in gate.holders] == ["a", "b", "c", "x", "d", "e", "f"]


def shared_out(seconds: int, **since: timedelta) -> Counter[str]:
    """Return how many calls of half a second each process made at ten slots a second, all with work all the time."""
    gate, answered = row(concurrency=12, interval=SECOND / 10), Counter[str]()
    events = [(START, name, 0, True) for name in since]
    while events and events[0][0] < START + seconds * SECOND:
        now, name, number, asks = heapq.heappop(events)
        if not asks:
            gate.leave(f"{name}{number}", None, now, Random(0))
            continue
        answer = gate.ask(f"{name}{number}", now, HOLD, since=START + since[name])
        if isinstance(answer, WaitForTurn):
            heapq.heappush(events, (now + timedelta(seconds=answer.seconds), name, number, True))
            continue
        assert answer == Admitted()
        answered[name] += 1
        heapq.heappush(events, (now + SECOND / 2, name, number, False))
        heapq.heappush(
            events, (now + SECOND / 100, name, number + 1, True)
        )  # who is next waits for its own turn to ask
    return answered


def test_the_process_that_asks_for_longest_gets_more_and_no_slot_is_lost() -> None:
    both = shared_out(60, older=timedelta(), younger=SECOND)
    assert both.total() >= 595
    assert 2 <= both["older"] / both["younger"] <= 4
    four = shared_out(60, older=timedelta(), b=SECOND, c=2 * SECOND, d=3 * SECOND)
    assert four.total() >= 595
    assert 0.5 <= four["older"] / 600 <= 0.7
    assert min(four.values()) >= 60, "none is left without"


def test_of_processes_of_one_age_and_without_any_all_get_the_same() -> None:
    assert max(shared_out(60, a=SECOND, b=SECOND).values()) <= 302
    assert shared_out(60, alone=SECOND).total() >= 595


def test_what_a_person_waits_for_is_not_left_to_older_processes() -> None:
    gate = row(concurrency=3)
    assert gate.ask("a", START, HOLD, since=START) == Admitted()
    younger = START + SECOND
    assert gate.ask("b", START, HOLD, since=younger) == WaitForTurn(1.5), "a quarter before the slot would be lost"
    assert gate.ask("x", START, HOLD, since=younger, urgent=True) == WaitForTurn(2.0)


def test_who_has_no_place_yet_looks_again_when_there_may_be_a_slot() -> None:
    gate = row(concurrency=1)
    assert gate.ask("a", START, HOLD) == Admitted()
    assert gate.ask("b", START, HOLD) == WaitForTurn(1.9), "a moment before the next slot"
    assert gate.ask("c", START, HOLD) == WaitForTurn(3.9), "b takes that one"
    assert gate.ask("d", START, HOLD) == WaitForTurn(5.0), "those ahead may give up"
    assert gate.ask("b", START + 3 * SECOND, HOLD) == WaitForTurn(0.1), "the slot is free, the place is not"


def test_a_dead_holder_and_a_dead_waiter_lose_their_turn() -> None:
    gate = row(concurrency=1)
    assert gate.ask("dead holder", START, HOLD) == Admitted()
    gate.ask("dead waiter", START, HOLD)
    gate.ask("alive", START, HOLD)
    gate.ask("alive", START + 19 * SECOND, HOLD)
    gate.ask("alive", START + 38 * SECOND, HOLD)
    assert isinstance(gate.ask("alive", START + 55 * SECOND, HOLD), WaitForTurn)
    assert gate.ask("alive", START + 61 * SECOND, HOLD) == Admitted()


def test_of_a_killed_process_only_a_call_that_may_be_answered_still_keeps_its_place() -> None:
    gate = row(concurrency=2)
    assert gate.ask("long", START, HOLD) == Admitted()
    assert gate.ask("short", START + 2 * SECOND, HOLD, lasts=10 * SECOND) == Admitted()
    gate.ask("waiter", START + 2 * SECOND, HOLD)

    def left(at: timedelta) -> list[str]:
        gate.forget_dead(START + at, lambda owner: owner != "alive")
        return [holder.owner for holder in gate.holders]

    assert left(3 * SECOND) == ["long", "short"], "who waits was not sent yet"
    assert left(13 * SECOND) == ["long", "short"]
    gate.ask("alive", START + 13 * SECOND, HOLD)
    assert left(14 * SECOND) == ["long", "alive"]
    assert gate.ask("alive", START + 14 * SECOND, HOLD, lasts=10 * SECOND) == Admitted()
    assert left(2 * HOLD) == ["alive"], "only the hold ends the call of a living process"


def test_a_clock_set_back_does_not_stop_the_source() -> None:
    gate = row()
    gate.next_slot_at = START + timedelta(hours=5)
    assert gate.ask("a", START, HOLD) == Admitted()


def test_who_comes_late_for_a_slot_gets_a_new_one_behind_those_that_were_given_since() -> None:
    gate = row(concurrency=3)
    gate.ask("a", START, HOLD)
    assert gate.ask("b", START, HOLD) == WaitForTurn(2.0)
    assert gate.ask("c", START, HOLD) == WaitForTurn(4.0)
    assert gate.ask("b", START + 2.5 * SECOND, HOLD) == Admitted(), "half a second is made good for"
    assert isinstance(gate.ask("d", START + 3 * SECOND, HOLD), WaitForTurn), "no place yet"
    gate.leave("a", None, START + 3 * SECOND, Random(0))
    assert gate.ask("d", START + 3 * SECOND, HOLD) == WaitForTurn(3.0)
    assert gate.ask("c", START + 5 * SECOND, HOLD) == WaitForTurn(3.0), "the next but one: d has the next"
    assert gate.ask("c", START + 9 * SECOND, HOLD) == Admitted(), "nobody stands behind it"
    assert gate.next_slot_at == START + 11 * SECOND
    assert gate.ask("d", START + 9 * SECOND, HOLD) == WaitForTurn(2.0)


def test_a_second_call_takes_the_slot_of_a_first_one_that_waits_and_only_shifts_the_others() -> None:
    gate = row(concurrency=9)
    assert gate.ask("a", START, HOLD, urgent=True) == Admitted()
    for place, waiter in enumerate("bcd", 1):
        assert gate.ask(waiter, START, HOLD, urgent=True) == WaitForTurn(2.0 * place)
    assert gate.ask("second", START, HOLD, urgent=True, follows=True) == WaitForTurn(2.0)
    assert gate.ask("other second", START, HOLD, urgent=True, follows=True) == WaitForTurn(4.0), "first come, first"
    assert [gate.ask(waiter, START, HOLD, urgent=True) for waiter in "bcd"] == [
        WaitForTurn(seconds) for seconds in (6.0, 8.0, 10.0)
    ]
    assert gate.ask("e", START, HOLD, urgent=True) == WaitForTurn(12.0), "each slot is given once"


def test_a_second_call_without_a_place_goes_before_first_ones_and_a_run_is_not_urgent_by_following() -> None:
    gate = row(concurrency=1)
    for waiter in "abc":
        gate.ask(waiter, START, HOLD, urgent=True)
    gate.ask("second", START, HOLD, urgent=True, follows=True)
    gate.ask("run", START, HOLD, follows=True)
    assert [holder.owner for holder in gate.holders] == ["a", "second", "b", "c", "run"]


def test_the_outlook_counts_all_that_wait_and_how_long_calls_take() -> None:
    gate = row(concurrency=2)
    assert gate.outlook(START).seconds == 0
    for waiter in "abcd":
        gate.ask(waiter, START, HOLD, urgent=True)
    assert (gate.outlook(START).seconds, gate.outlook(START).interval) == (8.0, 2.0)
    before = gate.outlook(START).call_seconds
    gate.leave("a", None, START + 5 * SECOND, Random(0))
    assert gate.outlook(START).call_seconds > before
    gate.open(START + 9 * SECOND, "why", "")
    assert (gate.outlook(START).closed_until, gate.outlook(START).reason) == (START + 9 * SECOND, "why")
    assert gate.outlook(START + 9 * SECOND).closed_until is None
