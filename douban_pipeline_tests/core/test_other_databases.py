"""Databases of other systems: opened once, closed together, and given up where they do not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import Column as TableColumn
from sqlalchemy import Integer, MetaData, Table, column, insert, select, table, text
from sqlalchemy.exc import OperationalError

from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.core.other_databases import OtherDatabases

SETTING = "X_URL"
there = table("there", column("number", Integer))
made = Table("there", MetaData(), TableColumn("number", Integer, primary_key=True))


@pytest.fixture
def other_url(any_database_url) -> Iterator[str]:
    """Another system's database, with one table that holds one row."""
    engine = open_engine(any_database_url)
    made.create(engine)
    with engine.begin() as connection:
        connection.execute(insert(made).values(number=7))
    yield any_database_url
    made.drop(engine)
    engine.dispose()


@pytest.fixture
def others(tmp_path) -> Iterator[OtherDatabases]:
    url = f"sqlite:///{tmp_path / 'own.sqlite'}"
    own = open_engine(url)
    opened = OtherDatabases(own, seconds=0.3)
    yield opened
    opened.close()
    own.dispose()


def test_a_database_is_opened_once_and_closed_with_the_rest(others, other_url):
    engine = others.engine_with(there, other_url, setting=SETTING)
    assert engine is not None
    assert others.engine_with(there, other_url, setting=SETTING) is engine
    assert others.engine(other_url, setting=SETTING) is engine
    with reading(engine) as connection:
        assert connection.execute(select(there.c.number)).scalar_one() == 7
    assert engine.pool.checkedin() == 1
    others.close()
    assert engine.pool.checkedin() == 0
    assert others.engine(other_url, setting=SETTING) is not engine, "after closing it is opened anew"


def test_what_is_not_there_is_none(others, other_url, tmp_path):
    assert others.engine_with(table("elsewhere"), other_url, setting=SETTING) is None
    absent = tmp_path / "absent.sqlite"
    assert others.engine_with(there, f"sqlite:///{absent}", setting=SETTING) is None
    assert not absent.exists(), "asking makes no file"


def test_the_own_database_is_not_opened_again(tmp_path):
    url = f"sqlite:///{tmp_path / 'own.sqlite'}"
    own = open_engine(url)
    made.create(own)
    opened = OtherDatabases(own)
    assert opened.engine_with(there, url, setting=SETTING) is own
    opened.close()
    assert own.pool.checkedin() == 1, "it belongs to somebody else"
    own.dispose()


def test_a_server_that_accepts_and_never_answers_is_given_up(others):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"mysql+pymysql://nobody:geheim@127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(OperationalError) as raised:
            others.engine_with(there, url, setting=SETTING)
    assert "geheim" not in str(raised.value)


@pytest.mark.mariadb
def test_a_table_that_stays_locked_is_given_up(others, mariadb_url):
    holder = open_engine(mariadb_url)
    made.create(holder)
    with holder.connect() as holding:
        holding.exec_driver_sql("LOCK TABLES there WRITE")
        with reading(others.engine(mariadb_url, setting=SETTING)) as connection, pytest.raises(OperationalError):
            connection.execute(select(there.c.number))
        holding.exec_driver_sql("UNLOCK TABLES")
    holder.dispose()


@pytest.mark.postgres
def test_a_statement_that_takes_too_long_is_given_up(others, postgres_url):
    with reading(others.engine(postgres_url, setting=SETTING)) as connection, pytest.raises(OperationalError):
        connection.execute(text("SELECT pg_sleep(20)"))
