"""Servers that are too old are refused in a sentence, and nothing is sent that the oldest supported ones lack."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.server_version import checked_version, server_name
from douban_pipeline_tests.harness.fixtures import old_servers
from douban_pipeline_tests.harness.fixtures.old_servers import newer_than_supported


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("5.7.44-log", "MySQL 5.7.44-log"),
        ("8.0.11-TiDB-v7.5.0", "MySQL 8.0.11-TiDB-v7.5.0"),
        ("9.7.4-2", "MySQL 9.7.4-2"),
        ("5.7.mysql_aurora.2.11.1", "MySQL 5.7.mysql_aurora.2.11.1"),
        ("10.3.39-MariaDB-0+deb10u1", "MariaDB 10.3.39-MariaDB-0+deb10u1"),
        ("11.4.2-MariaDB", "MariaDB 11.4.2-MariaDB"),
        ("5.5.5-10.11.6-MariaDB-log", "MariaDB 10.11.6-MariaDB-log"),
        ("unknown", "MySQL unknown"),
    ],
)
def test_a_server_is_named_with_its_version(version, name):
    assert checked_version(version) == name


@pytest.mark.parametrize(
    ("version", "oldest"),
    [
        ("5.6.51-log", "MySQL 5.7"),
        ("5.5.68-MariaDB", "MariaDB 10.3"),
        ("10.2.44-MariaDB-1:10.2", "MariaDB 10.3"),
        ("5.5.5-10.1.48-MariaDB", "MariaDB 10.3"),
    ],
)
def test_an_old_one_is_refused_with_what_would_do(version, oldest):
    with pytest.raises(DatabaseError, match=f"is older than {oldest}: use MySQL 5.7 or MariaDB 10.3, or newer"):
        checked_version(version)


def test_every_engine_says_what_it_is(any_database_url):
    engine = open_engine(any_database_url)
    with engine.connect() as connection:
        kind, version = server_name(connection).split(" ", 1)
    engine.dispose()
    kinds = {"sqlite": {"SQLite"}, "postgresql": {"PostgreSQL"}}
    assert kind in kinds.get(engine.dialect.name, {"MariaDB", "MySQL"})
    assert version[0].isdecimal()


TABLE = sa.table("video", sa.column("a"), sa.column("b"))


@pytest.mark.parametrize(
    "statement",
    [
        sa.select(sa.select(TABLE.c.a).cte("newest").c.a),
        sa.select(sa.func.row_number().over(order_by=TABLE.c.a)),
        sa.select(TABLE.c.a).with_for_update(skip_locked=True),
        sa.select(TABLE.c.a).with_for_update(nowait=True),
        sa.select(TABLE.c.a, sa.select(TABLE.c.b).lateral("each").c.b),
        sa.insert(TABLE).returning(TABLE.c.a),
        sa.select(sa.func.md5(TABLE.c.a)),
        sa.intersect(sa.select(TABLE.c.a), sa.select(TABLE.c.b)),
        sa.text("CREATE INDEX by_length ON video ((CHAR_LENGTH(a)))"),
        sa.text("ALTER TABLE video RENAME COLUMN a TO b"),
    ],
    ids=str,
)
def test_what_an_old_server_lacks_is_found_in_a_compiled_statement(statement):
    dialect = sa.create_mock_engine("mysql+pymysql://", lambda: None).dialect
    dialect.insert_returning = True
    assert newer_than_supported(str(statement.compile(dialect=dialect)))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM video WHERE b IN (%s, %s) FOR UPDATE",
        "INSERT INTO video (a) VALUES (%s) ON DUPLICATE KEY UPDATE a = VALUES(a)",
        "CREATE TABLE video (a INT COMMENT 'RETURNING (see below)', `over` INT, KEY by_a (a))",
        "SELECT COUNT(*) AS rank_over FROM video",
    ],
)
def test_what_every_server_knows_is_let_through(statement):
    assert not newer_than_supported(statement)


@pytest.mark.mariadb
def test_each_statement_that_is_sent_is_looked_at(mariadb_url):
    engine = open_engine(mariadb_url)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT COUNT(*) OVER ()")
    engine.dispose()
    assert "OVER (" in old_servers._sent
    old_servers._sent.clear()
