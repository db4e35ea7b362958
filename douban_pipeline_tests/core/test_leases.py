"""A row never has two owners, what a dead one held comes back, and a lost lease changes nothing: on every engine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.leases import Leases
from douban_pipeline.core.owner import owner_name
from douban_pipeline_tests.core.lease_claimer import METADATA, NULLABLE, WHOLE_SECONDS, WITH_TOKEN, claim_and_die
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import dead_owner, processes

SHAPES = {"nullable": NULLABLE, "seconds": WHOLE_SECONDS, "token": WITH_TOKEN}
ROWS = 6
LEASE = 10
OWNERS = ("a@elsewhere:1", "b@elsewhere:1", "c@elsewhere:1")


@pytest.fixture
def engine(core_engine: Engine) -> Engine:
    """Each engine that `core` speaks, with new, empty tables."""
    METADATA.drop_all(core_engine)
    METADATA.create_all(core_engine)
    return core_engine


@pytest.fixture(params=SHAPES)
def leases(request: pytest.FixtureRequest) -> Leases:
    """Each shape of the columns that tables of ours have."""
    return SHAPES[request.param]


def moment(leases: Leases, seconds: int) -> Any:
    """Return a moment in the unit of a table."""
    return START + timedelta(seconds=seconds) if leases is NULLABLE else 1_000 + seconds


def fill(engine: Engine, leases: Leases, rows: int = ROWS) -> None:
    """Have that many free rows in a table and nothing else."""
    with engine.begin() as connection:
        connection.execute(sa.delete(leases.table))
        new = [{"number": number, "value": number % 3, "state": "waiting"} for number in range(rows)]
        connection.execute(sa.insert(leases.table), new)


def rows_of(engine: Engine, leases: Leases) -> list[sa.Row[Any]]:
    with reading(engine) as connection:
        return list(connection.execute(sa.select(leases.table).order_by(leases.key)))


@dataclass
class Claimer:
    """An owner of leases, as one process sees them."""

    engine: Engine
    leases: Leases
    owner: str
    proofs: dict[int, str | int] = field(default_factory=dict)

    def claim(self, now: int, limit: int = ROWS, lease: int = LEASE) -> list[int]:
        c = self.leases.table.c

        def work(connection: Connection) -> Sequence[sa.Row[Any]]:
            return self.leases.claim(
                connection,
                self.owner,
                now=moment(self.leases, now),
                until=moment(self.leases, now + lease),
                where=(c.state == "waiting",),
                order_by=(c.value.desc(), c.number),
                limit=limit,
            )

        found = run_transaction(self.engine, work)
        self.proofs |= {row.number: row.token if self.leases.token is not None else self.owner for row in found}
        return [row.number for row in found]

    def renew(self, now: int, keys: Sequence[int]) -> set[int]:
        until = moment(self.leases, now + LEASE)
        return run_transaction(self.engine, lambda c: self.leases.renew(c, self.owner, keys, until))

    def finish(self, number: int) -> bool:
        proof = self.proofs.get(number, self.owner if self.leases.token is None else -1)
        return run_transaction(self.engine, lambda c: self.leases.finish(c, number, proof, {"state": "done"}))

    def holds(self, number: int) -> bool:
        proof = self.proofs.get(number, self.owner if self.leases.token is None else -1)
        return run_transaction(self.engine, lambda c: self.leases.holds(c, number, proof))

    def put_back(self, keys: Sequence[int]) -> int:
        return run_transaction(self.engine, lambda c: self.leases.put_back(c, self.owner, keys))

    def held(self) -> list[int]:
        with reading(self.engine) as connection:
            return self.leases.held(connection, self.owner)


# --- what holds whatever happens --------------------------------------------------------------------------------------


@dataclass
class Known:
    """One row as it must be."""

    value: int
    done: bool = False
    owner: str = ""
    until: int = -1_000

    def free(self, now: int) -> bool:
        return not self.owner or self.until <= now


@dataclass
class Story:
    """Claimers and what must be true of their rows."""

    engine: Engine
    leases: Leases
    now: int = 0

    def __post_init__(self) -> None:
        fill(self.engine, self.leases)
        self.rows = {number: Known(number % 3) for number in range(ROWS)}
        self.claimers = {owner: Claimer(self.engine, self.leases, owner) for owner in OWNERS}

    def play(self, act: tuple[str, str, int]) -> None:
        """Do one thing, and check that its answer is the one that follows from what happened before."""
        deed, owner, number = act
        claimer = self.claimers[owner]
        mine = {key for key, row in self.rows.items() if row.owner == owner}
        match deed:
            case "pass":
                self.now += number
            case "clock goes back":
                self.now -= 3 * number
            case "claim":
                limit = 1 + number % ROWS
                can = [key for key, row in self.rows.items() if not row.done and (key in mine or row.free(self.now))]
                wanted = sorted(can, key=lambda key: (-self.rows[key].value, key))[:limit]
                assert claimer.claim(self.now, limit) == wanted
                for key in wanted:
                    self.rows[key].owner, self.rows[key].until = owner, self.now + LEASE
            case "renew":
                assert claimer.renew(self.now, range(ROWS)) == set(range(ROWS)) - mine
                for key in mine:
                    self.rows[key].until = self.now + LEASE
            case "finish":
                key = number % ROWS
                assert claimer.holds(key) is (key in mine)
                assert claimer.finish(key) is (key in mine)
                if key in mine:
                    self.rows[key].owner, self.rows[key].done = "", True
            case "put back":
                keys = range(number % ROWS, ROWS)
                assert claimer.put_back(keys) == len(mine & set(keys))
                for key in mine & set(keys):
                    self.rows[key].owner = ""
        self.check()

    def check(self) -> None:
        """Check the table, and that each claimer sees what it holds."""
        for row in rows_of(self.engine, self.leases):
            known = self.rows[row.number]
            assert ((row.owner or ""), row.state == "done") == (known.owner, known.done)
            assert not known.owner or row.until == moment(self.leases, known.until)
        for owner, claimer in self.claimers.items():
            assert claimer.held() == [key for key, row in self.rows.items() if row.owner == owner]


DEEDS = st.sampled_from(["claim", "claim", "finish", "renew", "put back", "pass", "pass", "clock goes back"])
ACTS = st.lists(st.tuples(DEEDS, st.sampled_from(OWNERS), st.integers(0, 2 * LEASE)), min_size=1, max_size=14)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS)
def test_claims_ends_and_moments_in_any_order_leave_each_row_one_owner(
    engine: Engine, leases: Leases, acts: list[tuple[str, str, int]]
) -> None:
    story = Story(engine, leases)
    for act in acts:
        story.play(act)


# --- at the same time -------------------------------------------------------------------------------------------------


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Run ``works`` at the same time; return what they returned."""
    results: dict[int, Any] = {}
    barrier = threading.Barrier(len(works))

    def play(position: int, work: Callable[[], Any]) -> None:
        barrier.wait(timeout=60)
        results[position] = work()

    threads = [threading.Thread(target=play, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert len(results) == len(works), "a thread failed or hangs"
    return [results[position] for position in range(len(works))]


def test_of_claimers_that_come_at_once_each_row_has_one(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 200)
    claimers = [Claimer(engine, leases, owner) for owner in (*OWNERS, "d@elsewhere:1")]

    def work(claimer: Claimer) -> set[int]:
        return {number for _ in range(12) for number in claimer.claim(0, 7)}

    taken = in_threads(*(partial(work, each) for each in claimers))
    assert sum(map(len, taken)) == len(set().union(*taken))
    for claimer, mine in zip(claimers, taken, strict=True):
        assert claimer.held() == sorted(mine)


def test_claimers_that_finish_at_once_do_every_row_once(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 60)

    def work(claimer: Claimer) -> list[int]:
        done = []
        while any(row.state == "waiting" for row in rows_of(engine, leases)):
            done += [number for number in claimer.claim(0, 9) if claimer.finish(number)]
        return done

    done = in_threads(*(partial(work, Claimer(engine, leases, owner)) for owner in OWNERS))
    assert sorted(number for each in done for number in each) == list(range(60))


def test_a_row_that_is_held_for_a_transaction_is_not_lost_within_it(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 1)
    slow, quick = Claimer(engine, leases, OWNERS[0]), Claimer(engine, leases, OWNERS[1])
    assert slow.claim(0) == [0]
    taken: list[list[int]] = []
    taker = threading.Thread(target=lambda: taken.append(quick.claim(LEASE)))

    def work(connection: Connection) -> bool:
        assert leases.holds(connection, 0, slow.proofs[0])
        taker.start()
        taker.join(timeout=0.2)  # it waits for the row
        return leases.finish(connection, 0, slow.proofs[0], {"state": "done"})

    assert run_transaction(engine, work) is True
    taker.join(timeout=60)
    assert taken == [[]]


# --- the end of an owner ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
def test_what_a_killed_process_held_comes_back(engine: Engine, committed: bool) -> None:
    fill(engine, NULLABLE)
    url = engine.url.render_as_string(hide_password=False)
    killed = processes().Process(target=claim_and_die, args=(url, START, LEASE, 4, committed))
    killed.start()
    killed.join(timeout=240)
    assert killed.exitcode == -signal.SIGKILL
    other = Claimer(engine, NULLABLE, OWNERS[0])
    if not committed:
        assert sorted(other.claim(0)) == list(range(ROWS))
        return
    assert sorted(other.claim(LEASE - 1)) == [4, 5]
    assert sorted(other.claim(LEASE)) == list(range(ROWS))


def test_a_dead_owners_rows_are_put_back_and_no_others(engine: Engine, leases: Leases) -> None:
    fill(engine, leases)
    dead, living = Claimer(engine, leases, dead_owner()), Claimer(engine, leases, owner_name("living"))
    elsewhere = Claimer(engine, leases, OWNERS[0])
    held = [claimer.claim(0, 2) for claimer in (dead, living, elsewhere)]
    assert leases.put_back_dead(engine, values={"value": 7}) == [dead.owner]
    assert leases.put_back_dead(engine) == []
    assert [each.held() for each in (dead, living, elsewhere)] == [[], sorted(held[1]), sorted(held[2])]
    assert {row.number for row in rows_of(engine, leases) if row.value == 7} == set(held[0])
    assert not dead.finish(held[0][0])
    assert Claimer(engine, leases, OWNERS[1]).claim(0) == sorted(held[0])


def test_the_leases_of_the_dead_can_be_taken_over_at_once(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 1)
    dead = Claimer(engine, leases, dead_owner())
    assert dead.claim(0) == [0]
    given: Mapping[str, Any] = {"now": moment(leases, 1), "until": moment(leases, 1 + LEASE)}
    with engine.begin() as connection:
        assert leases.take(connection, OWNERS[0], [0], **given) == []
        [row] = leases.take(connection, OWNERS[0], [0], **given, instead_of=[dead.owner])
        assert row.owner == OWNERS[0]
    assert not dead.finish(0)


def test_a_token_tells_a_lease_from_the_owners_earlier_one(engine: Engine) -> None:
    fill(engine, WITH_TOKEN, 1)
    one, other = Claimer(engine, WITH_TOKEN, OWNERS[0]), Claimer(engine, WITH_TOKEN, OWNERS[1])
    one.claim(0)
    first = one.proofs[0]
    assert (one.claim(1), one.proofs[0]) == ([0], first), "who claims its own row again keeps its token"
    assert other.claim(1 + LEASE) == [0]
    assert other.put_back([0]) == 1
    assert one.claim(2 + LEASE) == [0]
    assert one.proofs[0] != first
    with engine.begin() as connection:
        assert not WITH_TOKEN.finish(connection, 0, first, {"state": "done"})
    assert one.finish(0)


# --- values -----------------------------------------------------------------------------------------------------------


def test_expressions_of_a_claim_see_the_row_as_it_was(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 2)
    c = leases.table.c
    again = {"value": sa.case((c.owner == OWNERS[0], c.value), else_=100)}
    given: Mapping[str, Any] = {"now": moment(leases, 0), "until": moment(leases, LEASE), "values": again}
    with engine.begin() as connection:
        assert [row.value for row in leases.take(connection, OWNERS[0], [1, 0], **given)] == [100, 100]
        connection.execute(sa.update(leases.table).values(value=5))
        assert [row.number for row in leases.take(connection, OWNERS[0], [1, 0], **given)] == [1, 0]
    assert [row.value for row in rows_of(engine, leases)] == [5, 5]


def test_a_lease_ends_with_what_its_owner_says_of_the_row(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 2)
    claimer = Claimer(engine, leases, OWNERS[0])
    claimer.claim(0)
    c = leases.table.c
    with engine.begin() as connection:
        assert leases.finish(connection, 0, claimer.proofs[0], {"value": c.value + 40, "state": "done"})
        assert leases.put_back(connection, OWNERS[0], [0, 1], {"value": c.value + 70}) == 1
    assert [(row.value, row.state, row.owner or "") for row in rows_of(engine, leases)] == [
        (40, "done", ""),
        (71, "waiting", ""),
    ]


def test_a_free_row_may_still_name_its_last_owner(engine: Engine) -> None:
    named = Leases(NULLABLE.key, NULLABLE.owner, NULLABLE.until, keeps_owner=True)
    fill(engine, NULLABLE, 2)
    one, other = Claimer(engine, named, OWNERS[0]), Claimer(engine, NULLABLE, OWNERS[1])
    run_transaction(
        engine,
        lambda c: named.take(
            c, OWNERS[0], [0, 1], now=moment(NULLABLE, 0), until=moment(NULLABLE, LEASE), values={"value": 1}
        ),
    )
    assert one.held() == [0, 1]
    assert one.put_back([1]) == 1
    assert one.held() == [0]
    assert [(row.owner, row.until is None) for row in rows_of(engine, named)] == [(OWNERS[0], False), (OWNERS[0], True)]
    assert other.claim(0) == [1]


def test_a_claim_of_what_is_not_there_or_not_wanted_takes_nothing(engine: Engine, leases: Leases) -> None:
    fill(engine, leases, 2)
    given: Mapping[str, Any] = {"now": moment(leases, 0), "until": moment(leases, LEASE)}
    with engine.begin() as connection:
        assert leases.take(connection, OWNERS[0], [], **given) == []
        assert leases.take(connection, OWNERS[0], [99], **given) == []
        assert leases.take(connection, OWNERS[0], [0, 1], **given, where=(leases.table.c.value > 5,)) == []
    assert Claimer(engine, leases, OWNERS[0]).held() == []
