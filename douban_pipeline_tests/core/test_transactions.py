"""A transaction that lost against another is done again, whole, on every engine; nothing of the lost one remains."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pymysql
import pytest
import sqlalchemy as sa
import stamina
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from douban_pipeline.core.database import insert_missing, open_engine, reading, run_statement, run_transaction

METADATA = sa.MetaData()
NOTE = sa.Table(
    "note",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("word", sa.String(20), nullable=False),
    mysql_engine="InnoDB",
)


@pytest.fixture
def engine(core_engine: Engine) -> Engine:
    """Each engine that `core` speaks, with a new, empty table."""
    METADATA.drop_all(core_engine)
    METADATA.create_all(core_engine)
    return core_engine


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Do again what lost at once."""
    with stamina.set_testing(True, attempts=6):
        yield


def words(engine: Engine) -> dict[int, str]:
    with reading(engine) as connection:
        return {row.number: row.word for row in connection.execute(sa.select(NOTE))}


class _PostgresError(psycopg2.OperationalError):
    """An error as psycopg2 raises it; only the server can set the code of a real one."""

    pgcode = ""


def _postgres_error(sqlstate: str) -> psycopg2.OperationalError:
    kind = type("PostgresError", (_PostgresError,), {"pgcode": sqlstate})
    return kind("lost")


def _sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("lost")
    error.sqlite_errorcode = code
    return error


LOST = {
    "sqlite": [
        _sqlite_error(sqlite3.SQLITE_BUSY),
        _sqlite_error(sqlite3.SQLITE_LOCKED),
        _sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT),
    ],
    "mysql": [pymysql.OperationalError(1205, "lock wait timeout"), pymysql.OperationalError(1213, "deadlock")],
    "postgresql": [_postgres_error("40001"), _postgres_error("40P01"), _postgres_error("55P03")],
}
"""What the driver of each engine raises when a transaction lost against another one."""

FAILED = {
    "sqlite": _sqlite_error(sqlite3.SQLITE_FULL),
    "mysql": pymysql.OperationalError(2013, "lost connection"),
    "postgresql": _postgres_error("57014"),
}
"""Another error of each, of the same class."""


def fail_at_commit(engine: Engine, errors: list[Exception]) -> None:
    """Let the next COMMITs fail, each with one of the ``errors``, as the driver would report them."""

    @sa.event.listens_for(engine, "commit")
    def _fail(connection: Connection) -> None:
        if errors:
            connection.connection.rollback()
            if engine.dialect.name == "sqlite":
                connection.connection.driver_connection.execute("BEGIN")  # type: ignore[union-attr]
            raise OperationalError("COMMIT", None, errors.pop(0))


def counted_insert(calls: list[int]) -> Callable[[Connection], list[int]]:
    """Return work that inserts one row more each time it is called, and returns what it inserted."""

    def work(connection: Connection) -> list[int]:
        calls.append(len(calls) + 1)
        inserted = []
        for number in range(calls[-1]):
            connection.execute(sa.insert(NOTE), {"number": number, "word": f"run {calls[-1]}"})
            inserted.append(number)
        return inserted

    return work


@pytest.mark.usefixtures("no_waiting")
def test_a_transaction_that_lost_at_commit_is_done_again_and_only_the_last_run_counts(engine: Engine) -> None:
    lost = LOST[engine.dialect.name]
    fail_at_commit(engine, list(lost))
    calls: list[int] = []
    runs = len(lost) + 1
    assert run_transaction(engine, counted_insert(calls)) == list(range(runs))
    assert len(calls) == runs
    assert words(engine) == dict.fromkeys(range(runs), f"run {runs}")


@pytest.mark.usefixtures("no_waiting")
def test_a_single_statement_is_done_again_too(engine: Engine) -> None:
    fail_at_commit(engine, list(LOST[engine.dialect.name]))
    rows = [{"number": 1, "word": "a"}, {"number": 2, "word": "b"}]
    run_statement(engine, sa.insert(NOTE), rows)
    assert run_statement(engine, sa.update(NOTE).values(word="c")) == 2
    assert words(engine) == {1: "c", 2: "c"}


def test_another_error_at_commit_is_raised_at_once(engine: Engine) -> None:
    fail_at_commit(engine, [FAILED[engine.dialect.name]])
    calls: list[int] = []
    with pytest.raises(OperationalError):
        run_transaction(engine, counted_insert(calls))
    assert (calls, words(engine)) == ([1], {})


@pytest.mark.usefixtures("no_waiting")
def test_a_transaction_that_loses_again_and_again_is_given_up(engine: Engine) -> None:
    fail_at_commit(engine, LOST[engine.dialect.name][:1] * 6)
    calls: list[int] = []
    with pytest.raises(OperationalError):
        run_transaction(engine, counted_insert(calls))
    assert (len(calls), words(engine)) == (6, {})


def test_an_error_of_the_work_itself_is_raised_at_once_and_undoes_it(engine: Engine) -> None:
    def work(connection: Connection) -> None:
        connection.execute(sa.insert(NOTE), {"number": 1, "word": "half"})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_transaction(engine, work)
    with pytest.raises(IntegrityError):
        run_statement(engine, sa.insert(NOTE), [{"number": 1, "word": "a"}, {"number": 1, "word": "b"}])
    assert words(engine) == {}


@pytest.mark.parametrize(
    "server", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("mariadb", "postgres")]
)
def test_the_victim_of_a_real_deadlock_passes_when_done_again(server: str, request: pytest.FixtureRequest) -> None:
    engine = open_engine(request.getfixturevalue(f"{server}_url"))
    METADATA.create_all(engine)
    run_statement(engine, sa.insert(NOTE), [{"number": number, "word": ""} for number in (1, 2)])
    both_hold_one = threading.Barrier(2)
    runs: list[str] = []

    def work(name: str, first: int, second: int) -> str:
        def write(connection: Connection) -> str:
            runs.append(name)
            connection.execute(sa.update(NOTE).where(NOTE.c.number == first).values(word=name))
            if runs.count(name) == 1:
                both_hold_one.wait(timeout=30)
            connection.execute(sa.update(NOTE).where(NOTE.c.number == second).values(word=name))
            return f"{name} in run {runs.count(name)}"

        return run_transaction(engine, write)

    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(work, "up", 1, 2), pool.submit(work, "down", 2, 1)]
        results = {future.result(timeout=60) for future in done}
    assert results in ({"up in run 2", "down in run 1"}, {"up in run 1", "down in run 2"})
    [last] = set(words(engine).values())  # both rows by the one that came last: none is half done
    assert f"{last} in run 2" in results
    engine.dispose()


def test_only_missing_rows_are_inserted(engine: Engine) -> None:
    run_statement(engine, sa.insert(NOTE), {"number": 1, "word": "kept"})

    def insert(connection: Connection) -> None:
        insert_missing(connection, NOTE, [{"number": n, "word": "new"} for n in (1, 2)], key="number")

    run_transaction(engine, insert)
    run_transaction(engine, insert)
    assert words(engine) == {1: "kept", 2: "new"}


def test_inserting_missing_rows_ignores_no_other_error(engine: Engine) -> None:
    def insert(connection: Connection) -> None:
        insert_missing(connection, NOTE, [{"number": 1, "word": None}], key="number")

    with pytest.raises(DBAPIError):
        run_transaction(engine, insert)
    assert words(engine) == {}


@settings(deadline=None, max_examples=30)
@given(commits=st.lists(st.sampled_from(["lost", "failed", "passed"]), min_size=1, max_size=5))
def test_the_result_is_always_that_of_the_run_that_was_committed(commits: list[str]) -> None:
    """However often a transaction loses: what is stored and what is returned are of one and the same run."""
    engine = open_engine("sqlite://")
    METADATA.create_all(engine)
    errors = {"lost": LOST["sqlite"][0], "failed": FAILED["sqlite"]}
    planned = list(commits)

    @sa.event.listens_for(engine, "commit")
    def _commit(connection: Connection) -> None:
        outcome = planned.pop(0) if planned else "passed"
        if outcome != "passed":
            raise OperationalError("COMMIT", None, errors[outcome])

    calls: list[int] = []
    expected = next((outcome for outcome in commits if outcome != "lost"), "passed")
    with stamina.set_testing(True, attempts=6):
        if expected == "failed":
            with pytest.raises(OperationalError):
                run_transaction(engine, counted_insert(calls))
            assert words(engine) == {}
        else:
            assert run_transaction(engine, counted_insert(calls)) == list(range(len(calls)))
            assert words(engine) == dict.fromkeys(range(len(calls)), f"run {len(calls)}")
    engine.dispose()
