"""The CMS's tables are read by column name, in whatever form a site has them."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlalchemy as sa

from douban_pipeline.cms.maccms import (
    MATCH_COLUMNS,
    READ_COLUMNS,
    WRITABLE_COLUMNS,
    Category,
    inspect_cms,
    live_condition,
)
from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.demo.cms_schema import mysql_ddl, table_columns
from douban_pipeline_tests.harness.fixtures.library import build_library, video

OTHERS = {"vod_id", "vod_time", "vod_status", "vod_lock", "vod_play_url", "vod_hits", "vod_remarks", "vod_serial"}


@pytest.fixture
def library(shared_library):
    return shared_library.renewed(
        [video(7, vod_name="Léon", vod_douban_score=8.1), video(8), video(300, vod_recycle_time=99)]
    )


def test_rows_come_with_their_types(library):
    with reading(library.engine) as connection:
        rows = library.cms.rows(connection, [8, 7, 1])
    assert sorted(rows) == [7, 8]
    row = rows[7]
    assert set(row) == {*READ_COLUMNS, "vod_recycle_time"}
    assert (row["vod_name"], row["vod_douban_id"], row["vod_douban_score"]) == ("Léon", 0, Decimal("8.1"))
    assert (row["vod_year"], row["vod_total"], row["vod_content"]) == ("2024", 0, "<p>原有简介</p>")


def test_what_belongs_to_the_cms_alone_can_never_be_written():
    assert not OTHERS & WRITABLE_COLUMNS
    assert set(READ_COLUMNS) >= WRITABLE_COLUMNS
    assert set(READ_COLUMNS) >= set(MATCH_COLUMNS)


@pytest.mark.parametrize(("form", "bin_there"), [("head", True), ("classic", False)])
def test_both_forms_of_the_cms_are_understood(database_url, form, bin_there):
    with build_library(database_url, [video(7)], form=form, prefix="x_", own=False) as library:
        assert library.cms.vod.name == "x_vod"
        assert library.cms.has_recycle_bin is bin_there
        widths = {column.name: column.width for column in table_columns(form)["vod"] if column.width}
        known = {name: widths[name] for name in library.cms.widths}
        assert library.cms.widths == known
        assert (known["vod_area"], known["vod_lang"], known["vod_name"]) == (20, 10, 255)
        with reading(library.engine) as connection:
            live = sa.select(library.cms.vod.c.vod_id).where(live_condition(library.cms))
            assert connection.execute(live).scalars().all() == [7]


def test_the_recycle_bin_is_not_live(library):
    with reading(library.engine) as connection:
        live = sa.select(library.cms.vod.c.vod_id).where(live_condition(library.cms))
        assert sorted(connection.execute(live).scalars()) == [7, 8]


def test_columns_of_the_sites_own_do_no_harm(database_url):
    with build_library(database_url, [video(7)], own=False) as library:
        library.execute("ALTER TABLE mac_vod ADD COLUMN site_note VARCHAR(20) NOT NULL DEFAULT 'x'")
        cms = inspect_cms(library.engine, "mac_")
        assert "site_note" not in cms.vod.c
        with reading(library.engine) as connection:
            assert cms.rows(connection, [7])[7]["vod_name"] == "影片7"


@pytest.mark.mariadb
def test_which_columns_hold_three_byte_characters_only(mariadb_url):
    engine = open_engine(mariadb_url)
    narrow, wide = mysql_ddl("a_"), mysql_ddl("b_", engine="InnoDB", charset="utf8mb4")
    with engine.begin() as connection:
        for statement in (*narrow, *wide):
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("ALTER TABLE a_vod MODIFY vod_content MEDIUMTEXT CHARACTER SET utf8mb4 NOT NULL")
    assert {"vod_name", "vod_actor", "vod_blurb"} < inspect_cms(engine, "a_").utf8mb3
    assert "vod_content" not in inspect_cms(engine, "a_").utf8mb3
    assert inspect_cms(engine, "b_").utf8mb3 == frozenset()
    engine.dispose()


def test_a_wrong_prefix_names_the_setting_and_hides_the_password(database_url):
    url = sa.make_url(database_url)
    with build_library(database_url, own=False) as library, pytest.raises(DatabaseError) as caught:
        inspect_cms(library.engine, "wrong_")
    message = str(caught.value)
    assert "there is no table wrong_vod" in message
    assert "DOUBAN_PIPELINE_TABLE_PREFIX" in message
    assert url.database in message


@pytest.mark.mariadb
def test_an_account_that_may_not_read_the_table_is_not_told_that_the_server_is_away(mariadb_url, tmp_path):
    owner = open_engine(mariadb_url)
    user = f"dt_{tmp_path.name[-20:]}".replace("-", "_")[:30]
    with owner.begin() as connection:
        for statement in mysql_ddl("mac_"):
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'", (user,))
        connection.exec_driver_sql("GRANT SELECT ON mac_vod TO %s@'%%'", (user,))
    account = open_engine(owner.url.set(username=user, password="p").render_as_string(hide_password=False))
    try:
        with pytest.raises(DatabaseError) as caught:
            inspect_cms(account, "wrong_")
    finally:
        account.dispose()
        with owner.begin() as connection:
            connection.exec_driver_sql("DROP USER %s@'%%'", (user,))
        owner.dispose()
    assert "may not read the table wrong_vod" in str(caught.value)
    assert "DOUBAN_PIPELINE_TABLE_PREFIX = 'wrong_'" in str(caught.value)
    assert "the account sees the prefix 'mac_'" in str(caught.value)
    assert "cannot be reached" not in str(caught.value)


def test_a_table_of_some_other_program_is_not_taken_for_the_cms(sqlite_url):
    engine = open_engine(sqlite_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE mac_vod (vod_id INTEGER, vod_name TEXT)")
        connection.exec_driver_sql("CREATE TABLE mac_type (type_id INTEGER)")
    with pytest.raises(DatabaseError, match=r"mac_vod lacks type_id, .*not the table of a maccms10"):
        inspect_cms(engine, "mac_")
    engine.dispose()


def test_a_server_that_does_not_answer_names_the_setting_and_hides_the_password():
    engine = open_engine("mysql+pymysql://site:geheim@127.0.0.1:9/maccms")
    with pytest.raises(DatabaseError, match="DOUBAN_PIPELINE_DATABASE_URL") as caught:
        inspect_cms(engine, "mac_")
    assert "site:***@127.0.0.1:9/maccms" in str(caught.value)
    assert "geheim" not in str(caught.value)
    engine.dispose()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("first", "last", "expected"), [(0, None, [7, 8, 300]), (7, None, [8, 300]), (0, 8, [7, 8]), (8, 299, [])]
)
def test_the_library_is_streamed_by_key_without_gap_or_repeat(library, size, first, last, expected):
    batches = list(library.cms.stream(library.engine, ("vod_name",), first=first, last=last, size=size))
    assert [row["vod_id"] for batch in batches for row in batch] == expected
    assert all(0 < len(batch) <= size for batch in batches)
    assert not expected or set(batches[0][0]) == {"vod_id", "vod_name"}


def test_categories_are_those_of_videos(library):
    with reading(library.engine) as connection:
        found = library.cms.categories(connection, {})
    assert found[6] == Category(6, 1, "动作片", found[6].extend)
    assert (found[1].parent_id, '"area": "大陆' in found[1].extend or "\\u5927" in found[1].extend) == (0, True)
    assert not {5, 17, 18} & set(found)


@pytest.mark.parametrize(
    ("column", "value", "holds"),
    [
        ("vod_name", "Léon", True),
        ("vod_name", "Leon", False),
        ("vod_name", "LÉON", False),
        ("vod_name", "Léon ", False),
        ("vod_douban_score", Decimal("8.1"), True),
        ("vod_douban_score", Decimal("8.0"), False),
        ("vod_douban_id", 0, True),
        ("vod_year", "2024", True),
        ("vod_year", None, False),
    ],
)
def test_equal_means_equal_to_the_byte(library, column, value, holds):
    condition = library.cms.equals(column, value, library.engine.dialect.name)
    query = sa.select(library.cms.vod.c.vod_id).where(library.cms.vod.c.vod_id == 7, condition)
    assert bool(library.query(query)) is holds
