"""The database is opened in one way, whatever server it is and however that is set up."""

from __future__ import annotations

import sqlite3
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
import stamina
from sqlalchemy.exc import DataError

from douban_pipeline.core.database import LOCK_WAIT_SECONDS, _write_ahead, open_engine, reading
from douban_pipeline.core.database_urls import DatabaseError, parse_url


@pytest.fixture
def engine(any_database_url):
    engine = open_engine(any_database_url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    "url",
    [
        "mysql+pymysql://u:p@h:3306/d?charset=utf8mb4",
        "mariadb+pymysql://h/d",
        "postgresql+psycopg2://u:p@h:5432/d",
        "sqlite:///f",
    ],
)
def test_a_url_of_a_supported_database_is_accepted(url):
    assert parse_url(url, setting="X_URL").render_as_string(hide_password=False) == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("not a url", "X_URL is not an SQLAlchemy URL"),
        ("", "X_URL is not an SQLAlchemy URL"),
        ("oracle://u:geheim@h/d", "X_URL names 'oracle'; expected mysql.pymysql, .* postgresql.psycopg2 or sqlite"),
        ("mysql+nodriver://u:geheim@h/d", "X_URL needs a driver that is not installed"),
        ("postgresql+nodriver://u:geheim@h/d", "X_URL needs a driver that is not installed"),
    ],
)
def test_other_databases_are_refused_without_showing_the_password(url, message):
    with pytest.raises(DatabaseError, match=message) as caught:
        open_engine(url, setting="X_URL")
    assert "geheim@" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "driver"),
    [("mysql://u:p@h:3306/d", "mysql+pymysql"), ("mariadb://u:p@h/d", "mariadb+pymysql"), ("mysql+aiomysql://h/d", "")],
)
def test_a_database_alone_means_the_driver_that_is_there(given, driver):
    _, _, rest = given.partition("://")
    assert parse_url(given, setting="X_URL").render_as_string(hide_password=False) == (
        f"{driver}://{rest}" if driver else given
    )


@pytest.mark.parametrize(
    ("backends", "expected"),
    [(("mysql", "mariadb", "sqlite"), "mysql+pymysql, mariadb+pymysql or sqlite"), (("sqlite",), "sqlite")],
)
def test_a_setting_may_accept_fewer_databases(backends, expected):
    with pytest.raises(DatabaseError) as caught:
        parse_url("postgresql://u:geheim@h/d", setting="X_URL", backends=backends)
    assert str(caught.value) == f"X_URL names 'postgresql'; expected {expected}"


def test_several_connections_see_committed_work_only(engine):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE note (id INTEGER PRIMARY KEY, word VARCHAR(20))")
    with reading(engine) as reader, engine.begin() as writer:
        assert reader.exec_driver_sql("SELECT COUNT(*) FROM note").scalar() == 0
        writer.exec_driver_sql("INSERT INTO note VALUES (1, 'a')")
        # Reading goes on beside an open write; on SQLite that needs a transaction which takes no write lock.
        with reading(engine) as other:
            assert other.exec_driver_sql("SELECT COUNT(*) FROM note").scalar() == 0
    with reading(engine) as reader:
        assert reader.exec_driver_sql("SELECT COUNT(*) FROM note").scalar() == 1


def test_writers_wait_for_each_other_instead_of_failing(engine):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE counter (id INTEGER PRIMARY KEY, number INTEGER)")
        connection.exec_driver_sql("INSERT INTO counter VALUES (1, 0)")
    errors = []

    def count():
        try:
            for _ in range(25):
                with engine.begin() as connection:
                    query = "SELECT number FROM counter WHERE id = 1"
                    number = connection.exec_driver_sql(query + ("" if sqlite else " FOR UPDATE")).scalar()
                    connection.exec_driver_sql(f"UPDATE counter SET number = {number + 1} WHERE id = 1")
        except sa.exc.SQLAlchemyError as error:
            errors.append(error)

    sqlite = engine.dialect.name == "sqlite"
    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert errors == []
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SELECT number FROM counter").scalar() == 100


def test_what_fails_half_way_is_undone(engine):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE note (id INTEGER PRIMARY KEY)")

    def half_way():
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO note VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_way()
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM note").scalar() == 0


def test_a_sqlite_file_in_a_folder_that_is_not_there_yet(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'a' / 'b' / 'library.sqlite'}")
    with reading(engine) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    engine.dispose()


@pytest.mark.mariadb
@pytest.mark.parametrize("mode", ["", "NO_ENGINE_SUBSTITUTION", "STRICT_TRANS_TABLES,NO_ZERO_DATE"])
def test_sessions_are_strict_whatever_the_server_is(mariadb_url, mode):
    engine = open_engine(mariadb_url)

    @sa.event.listens_for(engine, "connect", insert=True)
    def _as_the_server_is(connection, _record):
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = %s", (mode,))

    with engine.begin() as connection:
        modes = connection.exec_driver_sql("SELECT @@SESSION.sql_mode").scalar().split(",")
        assert {"STRICT_ALL_TABLES", *filter(None, mode.split(","))} <= set(modes)
        connection.exec_driver_sql("CREATE TABLE narrow (word VARCHAR(3)) ENGINE=MyISAM DEFAULT CHARSET utf8")
        connection.exec_driver_sql("INSERT INTO narrow VALUES ('abc')")
    for value in ("abcd", "🎬"):
        with pytest.raises(DataError), engine.begin() as connection:
            connection.execute(sa.text("UPDATE narrow SET word = :value"), {"value": value})
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SELECT word FROM narrow").scalar() == "abc"
    engine.dispose()


@pytest.mark.mariadb
def test_a_session_is_set_up_for_short_waits_and_fresh_reads(mariadb_url):
    engine = open_engine(mariadb_url)
    with reading(engine) as connection:
        row = connection.exec_driver_sql(
            "SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@character_set_client"
        ).one()
        assert connection.get_isolation_level() == "READ COMMITTED"
    assert tuple(row) == (LOCK_WAIT_SECONDS, LOCK_WAIT_SECONDS, "utf8mb4")
    engine.dispose()


@pytest.mark.mariadb
def test_an_account_with_a_password_signs_in_without_tls(mariadb_url):
    """As MySQL's accounts are made today, the password is then sent in the server's own encryption."""
    owner, user = open_engine(mariadb_url), f"dt_{uuid.uuid4().hex[:10]}"
    with owner.begin() as connection:
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'a word'", (user,))
    try:
        url = owner.url.set(username=user, password="a word", database="").update_query_dict({"ssl_disabled": "true"})
        engine = open_engine(url)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT CURRENT_USER()").scalar_one() == f"{user}@%"
            assert not connection.exec_driver_sql("SHOW STATUS LIKE 'Ssl_cipher'").one()[1]
        engine.dispose()
    finally:
        with owner.begin() as connection:
            connection.exec_driver_sql("DROP USER %s@'%%'", (user,))
        owner.dispose()


def _count(connection, name):
    return int(connection.exec_driver_sql(f"SHOW SESSION STATUS LIKE '{name}'").one()[1])


@pytest.mark.mariadb
def test_short_transactions_neither_ping_nor_roll_back(mariadb_url):
    engine = open_engine(mariadb_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE word (word VARCHAR(9)) ENGINE=InnoDB")
        number = connection.exec_driver_sql("SELECT CONNECTION_ID()").scalar()
    with engine.connect() as connection:
        before = {name: _count(connection, name) for name in ("Com_rollback", "Com_admin_commands")}
    for _ in range(20):
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO word VALUES ('eins')")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT CONNECTION_ID()").scalar() == number
        # What the first look itself began was taken back.
        assert _count(connection, "Com_rollback") - before["Com_rollback"] == 1
        assert _count(connection, "Com_admin_commands") == before["Com_admin_commands"]
    engine.dispose()


@pytest.mark.postgres
def test_a_postgresql_session_keeps_utc_and_waits_shortly_for_locks(postgres_url):
    engine = open_engine(postgres_url)
    for _ in range(2):  # a rollback must not undo what was set
        with engine.connect() as connection:
            shown = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in ("lock_timeout", "TimeZone")]
            assert shown == [f"{LOCK_WAIT_SECONDS}s", "UTC"]
            assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
            assert connection.exec_driver_sql("SHOW client_encoding").scalar() == "UTF8"
            connection.rollback()
    engine.dispose()


def test_what_was_begun_by_hand_is_rolled_back(engine):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE word (word VARCHAR(9))")
    raw = engine.raw_connection()
    cursor = raw.cursor()
    if engine.dialect.name == "sqlite":
        cursor.execute("BEGIN")
    cursor.execute("INSERT INTO word VALUES ('halb')")
    raw.close()
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM word").scalar() == 0


NUMBER_OF_CONNECTION = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
KILL = {"mysql": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}


@pytest.mark.parametrize(
    "server", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("mariadb", "postgres")]
)
def test_connections_that_died_in_a_pause_are_replaced(server, request, monkeypatch):
    url = request.getfixturevalue(f"{server}_url")
    engine, other = open_engine(url), open_engine(url)
    number = NUMBER_OF_CONNECTION[engine.dialect.name]
    with engine.connect() as first, engine.connect() as second:
        numbers = [each.exec_driver_sql(number).scalar() for each in (first, second)]
    with other.connect() as connection:
        for each in numbers:
            connection.exec_driver_sql(KILL[engine.dialect.name].format(each))
    monkeypatch.setattr("douban_pipeline.core.database._FRESH_SECONDS", 0.0)
    with engine.connect() as first, engine.connect() as second:
        found = [each.exec_driver_sql(number).scalar() for each in (first, second)]
    assert not set(found) & set(numbers)
    for each in (engine, other):
        each.dispose()


def test_who_opens_a_new_file_while_somebody_has_it_waits(sqlite_url):
    """Turning to write-ahead asks for the file alone, and SQLite does not always wait for that by itself."""
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=0)
    other.execute("CREATE TABLE seen (number INTEGER)")
    other.execute("BEGIN EXCLUSIVE")
    file = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0, check_same_thread=False)
    tried = threading.Event()
    hooks = stamina.instrumentation.get_on_retry_hooks()
    stamina.instrumentation.set_on_retry_hooks([lambda _: tried.set()])
    try:
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(_write_ahead, file)
            assert tried.wait(30)
            other.execute("COMMIT")
            other.close()
            done.result(timeout=30)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        stamina.instrumentation.set_on_retry_hooks(hooks)
        file.close()
