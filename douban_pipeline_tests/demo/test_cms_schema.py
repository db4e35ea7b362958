"""The schema that demo and tests stand on is that of the CMS, column by column."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import OperationalError

from douban_pipeline.demo.cms_schema import (
    TYPE_COLUMNS,
    VOD_COLUMNS,
    checked_prefix,
    default_types,
    mysql_ddl,
    sqlite_ddl,
    table_columns,
)

# As a MariaDB that loaded the CMS's own install.sql describes itself: column, type, null, default (- for none), key.
VOD = """
vod_id | int(10) unsigned | NO | - | PRI
type_id | smallint(6) | NO | 0 | MUL
type_id_1 | smallint(6) unsigned | NO | 0 | MUL
group_id | smallint(6) unsigned | NO | 0 | MUL
vod_name | varchar(255) | NO | '' | MUL
vod_sub | varchar(255) | NO | '' |
vod_en | varchar(255) | NO | '' | MUL
vod_status | tinyint(1) unsigned | NO | 0 |
vod_audit_remark | varchar(255) | NO | '' |
vod_letter | char(1) | NO | '' | MUL
vod_color | varchar(6) | NO | '' |
vod_tag | varchar(100) | NO | '' | MUL
vod_class | varchar(255) | NO | '' | MUL
vod_pic | varchar(1024) | NO | '' |
vod_pic_thumb | varchar(1024) | NO | '' |
vod_pic_slide | varchar(1024) | NO | '' |
vod_pic_original | varchar(1024) | NO | '' |
vod_pic_screenshot | text | YES | NULL |
vod_actor | varchar(255) | NO | '' | MUL
vod_director | varchar(255) | NO | '' | MUL
vod_writer | varchar(100) | NO | '' |
vod_behind | varchar(100) | NO | '' |
vod_blurb | varchar(255) | NO | '' |
vod_remarks | varchar(100) | NO | '' |
vod_pubdate | varchar(100) | NO | '' |
vod_publish_time | int(10) unsigned | NO | 0 | MUL
vod_total | mediumint(8) unsigned | NO | 0 | MUL
vod_serial | varchar(20) | NO | 0 |
vod_tv | varchar(30) | NO | '' |
vod_weekday | varchar(30) | NO | '' |
vod_area | varchar(20) | NO | '' | MUL
vod_lang | varchar(10) | NO | '' | MUL
vod_year | varchar(10) | NO | '' | MUL
vod_version | varchar(30) | NO | '' | MUL
vod_state | varchar(30) | NO | '' | MUL
vod_author | varchar(60) | NO | '' |
vod_jumpurl | varchar(150) | NO | '' |
vod_tpl | varchar(30) | NO | '' |
vod_tpl_play | varchar(30) | NO | '' |
vod_tpl_down | varchar(30) | NO | '' |
vod_isend | tinyint(1) unsigned | NO | 0 | MUL
vod_lock | tinyint(1) unsigned | NO | 0 | MUL
vod_level | tinyint(1) unsigned | NO | 0 | MUL
vod_copyright | tinyint(1) unsigned | NO | 0 |
vod_points | smallint(6) unsigned | NO | 0 |
vod_points_play | smallint(6) unsigned | NO | 0 | MUL
vod_points_down | smallint(6) unsigned | NO | 0 | MUL
vod_hits | mediumint(8) unsigned | NO | 0 | MUL
vod_hits_day | mediumint(8) unsigned | NO | 0 | MUL
vod_hits_week | mediumint(8) unsigned | NO | 0 | MUL
vod_hits_month | mediumint(8) unsigned | NO | 0 | MUL
vod_duration | varchar(10) | NO | '' |
vod_up | mediumint(8) unsigned | NO | 0 | MUL
vod_down | mediumint(8) unsigned | NO | 0 | MUL
vod_score | decimal(3,1) unsigned | NO | 0.0 | MUL
vod_score_all | mediumint(8) unsigned | NO | 0 | MUL
vod_score_num | mediumint(8) unsigned | NO | 0 | MUL
vod_time | int(10) unsigned | NO | 0 | MUL
vod_time_add | int(10) unsigned | NO | 0 | MUL
vod_time_hits | int(10) unsigned | NO | 0 |
vod_time_make | int(10) unsigned | NO | 0 | MUL
vod_recycle_time | int(10) unsigned | NO | 0 |
vod_trysee | smallint(6) unsigned | NO | 0 |
vod_douban_id | int(10) unsigned | NO | 0 |
vod_douban_score | decimal(3,1) unsigned | NO | 0.0 |
vod_reurl | varchar(255) | NO | '' |
vod_rel_vod | varchar(255) | NO | '' |
vod_rel_art | varchar(255) | NO | '' |
vod_pwd | varchar(10) | NO | '' |
vod_pwd_url | varchar(255) | NO | '' |
vod_pwd_play | varchar(10) | NO | '' |
vod_pwd_play_url | varchar(255) | NO | '' |
vod_pwd_down | varchar(10) | NO | '' |
vod_pwd_down_url | varchar(255) | NO | '' |
vod_content | mediumtext | NO | - |
vod_play_from | varchar(255) | NO | '' |
vod_play_server | varchar(255) | NO | '' |
vod_play_note | varchar(255) | NO | '' |
vod_play_url | mediumtext | NO | - |
vod_down_from | varchar(255) | NO | '' |
vod_down_server | varchar(255) | NO | '' |
vod_down_note | varchar(255) | NO | '' |
vod_down_url | mediumtext | NO | - |
vod_plot | tinyint(1) unsigned | NO | 0 | MUL
vod_plot_name | mediumtext | NO | - |
vod_plot_detail | mediumtext | NO | - |
vod_share_count | int(10) unsigned | NO | 0 |
"""
TYPE = """
type_id | smallint(6) unsigned | NO | - | PRI
type_name | varchar(60) | NO | '' | MUL
type_en | varchar(60) | NO | '' | MUL
type_sort | smallint(6) unsigned | NO | 0 | MUL
type_mid | smallint(6) unsigned | NO | 1 | MUL
type_pid | smallint(6) unsigned | NO | 0 | MUL
type_status | tinyint(1) unsigned | NO | 1 |
type_tpl | varchar(30) | NO | '' |
type_tpl_list | varchar(30) | NO | '' |
type_tpl_detail | varchar(30) | NO | '' |
type_tpl_play | varchar(30) | NO | '' |
type_tpl_down | varchar(30) | NO | '' |
type_key | varchar(255) | NO | '' |
type_des | varchar(255) | NO | '' |
type_title | varchar(255) | NO | '' |
type_union | varchar(255) | NO | '' |
type_extend | text | NO | - |
type_logo | varchar(255) | NO | '' |
type_pic | varchar(1024) | NO | '' |
type_jumpurl | varchar(150) | NO | '' |
"""
NEW_IN_2026 = {
    "vod_audit_remark",
    "vod_pic_original",
    "vod_publish_time",
    "vod_recycle_time",
    "vod_share_count",
}


WIDTH = re.compile(r"(?<=int)\(\d+\)")


def described(block: str, form: str = "head") -> list[tuple[str, ...]]:
    rows = [tuple(part.strip() for part in line.split("|")) for line in block.strip().splitlines()]
    return [row for row in rows if form == "head" or row[0] not in NEW_IN_2026]


@pytest.mark.parametrize(("form", "columns", "indexes"), [("head", 87, 35), ("classic", 82, 34)])
def test_forms(form, columns, indexes):
    vod = table_columns(form)["vod"]
    assert len(vod) == columns
    assert sum(column.indexed for column in vod) == indexes
    assert {column.name for column in VOD_COLUMNS if column.since_2026} == NEW_IN_2026


@pytest.mark.mariadb
@pytest.mark.parametrize("form", ["head", "classic"])
def test_mariadb_describes_itself_as_the_real_cms_does(mariadb_url, form):
    engine = create_engine(mariadb_url)
    with engine.begin() as connection:
        for statement in mysql_ddl("mac_", form):
            connection.exec_driver_sql(statement)
        for table, block in (("mac_vod", VOD), ("mac_type", TYPE)):
            # MariaDB gives defaults as SQL: '' in quotes, the text NULL for a nullable column, a real NULL for none.
            # MySQL gives them as they are, and no widths of whole numbers.
            found = connection.execute(
                text(
                    "SELECT column_name, column_type, is_nullable, column_default, column_key, "
                    "extra AS extra, collation_name AS collation_name "
                    "FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = :name "
                    "ORDER BY ordinal_position"
                ),
                {"name": table},
            ).all()
            seen = []
            for name, kind, null, default, key, _, _ in found:
                shown = "-" if default is None else default if default == "''" else default.strip("'")
                seen.append((name, kind, null, shown, key))
            expected = described(block, form)
            if not connection.dialect.is_mariadb:
                expected = [
                    (name, WIDTH.sub("", kind), null, "-" if default == "NULL" else default.strip("'"), key)
                    for name, kind, null, default, key in expected
                ]
            assert seen == expected
            assert found[0].extra == "auto_increment"
            assert {row.collation_name for row in found} == {None, "utf8mb3_general_ci"}
            engine_name, collation = connection.execute(
                text(
                    "SELECT engine, table_collation FROM information_schema.tables "
                    "WHERE table_schema = DATABASE() AND table_name = :name"
                ),
                {"name": table},
            ).one()
            assert (engine_name, collation) == ("MyISAM", "utf8mb3_general_ci")
            indexes = connection.execute(
                text(
                    "SELECT index_name, column_name FROM information_schema.statistics "
                    "WHERE table_schema = DATABASE() AND table_name = :name"
                ),
                {"name": table},
            ).all()
            expected = [row[0] for row in described(block, form) if row[4] == "MUL"]
            assert sorted(indexes) == sorted([("PRIMARY", seen[0][0]), *((name, name) for name in expected)])
    engine.dispose()


@pytest.mark.mariadb
def test_strict_mode_wants_only_the_columns_without_default(mariadb_url):
    engine = create_engine(mariadb_url)
    nameless = ["vod_content", "vod_play_url", "vod_down_url", "vod_plot_name", "vod_plot_detail"]
    with engine.begin() as connection:
        connection.exec_driver_sql("SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
        for statement in mysql_ddl():
            connection.exec_driver_sql(statement)
        names = ", ".join(nameless)
        connection.exec_driver_sql(f"INSERT INTO mac_vod (vod_name, {names}) VALUES ('无间道', '', '', '', '', '')")
        assert connection.exec_driver_sql("SELECT vod_id, vod_serial, vod_score FROM mac_vod").one()[:2] == (1, "0")
        for left_out in nameless:
            rest = [name for name in nameless if name != left_out]
            with pytest.raises(OperationalError, match="1364"):
                connection.exec_driver_sql(
                    f"INSERT INTO mac_vod ({', '.join(rest)}) VALUES ({', '.join(['%s'] * len(rest))})",
                    tuple("" for _ in rest),
                )
    engine.dispose()


@pytest.mark.parametrize("form", ["head", "classic"])
def test_sqlite_has_the_same_columns_widths_and_indexes(sqlite_url, form):
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        for statement in sqlite_ddl("mac_", form):
            connection.exec_driver_sql(statement)
    inspector = inspect(engine)
    for table, block in (("mac_vod", VOD), ("mac_type", TYPE)):
        expected = described(block, form)
        columns = inspector.get_columns(table)
        assert [column["name"] for column in columns] == [row[0] for row in expected]
        widths = [re.fullmatch(r"(?:var)?char\((\d+)\)", row[1]) for row in expected]
        assert [getattr(column["type"], "length", None) for column in columns] == [
            int(found[1]) if found else None for found in widths
        ]
        assert [column["nullable"] for column in columns] == [row[2] == "YES" for row in expected]
        assert inspector.get_pk_constraint(table)["constrained_columns"] == [expected[0][0]]
        indexed = {row[0] for row in expected if row[4] == "MUL"}
        assert {index["name"] for index in inspector.get_indexes(table)} == {f"ix_{table}_{name}" for name in indexed}
    with engine.begin() as connection:
        names = "vod_content, vod_play_url, vod_down_url, vod_plot_name, vod_plot_detail"
        connection.exec_driver_sql(f"INSERT INTO mac_vod ({names}) VALUES ('', '', '', '', '')")
        row = connection.exec_driver_sql("SELECT * FROM mac_vod").mappings().one()
        assert {column.name: row[column.name] for column in table_columns(form)["vod"][1:]} == {
            column.name: column.fallback for column in table_columns(form)["vod"][1:]
        }
        connection.exec_driver_sql("DELETE FROM mac_vod")
        connection.exec_driver_sql(f"INSERT INTO mac_vod ({names}) VALUES ('', '', '', '', '')")
        assert connection.exec_driver_sql("SELECT vod_id FROM mac_vod").scalar() == 2, "an id was used twice"
    engine.dispose()


def test_two_prefixes_live_in_one_sqlite_file(sqlite_url):
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        for prefix in ("mac_", "", "site2_"):
            for statement in sqlite_ddl(prefix, "classic"):
                connection.exec_driver_sql(statement)
    assert {"mac_vod", "vod", "site2_vod"} <= set(inspect(engine).get_table_names())
    engine.dispose()


@pytest.mark.parametrize("prefix", ["Mac_", "a" * 21, "mac-", "mac`", 'x"', "mac_\n", "苹果_"])
def test_prefixes_that_could_be_sql_are_refused(prefix):
    for make in (checked_prefix, mysql_ddl, sqlite_ddl):
        with pytest.raises(ValueError, match="prefix"):
            make(prefix)


@pytest.mark.parametrize("arguments", [{"engine": "MyISAM; DROP"}, {"charset": "utf8 x"}, {"form": "2019"}])
def test_other_arguments_are_checked(arguments):
    with pytest.raises(ValueError, match=r"allowed|form"):
        mysql_ddl(**arguments)


def test_every_column_says_whether_it_is_text():
    for column in (*VOD_COLUMNS, *TYPE_COLUMNS):
        assert column.is_text == (re.match(r"(?:tiny|small|medium)?int|decimal", column.type) is None), column
        assert column.default is None or column.is_text or float(column.default) == 0 or column.name.startswith("type_")


def test_the_category_tree_is_whole():
    types = {row["type_id"]: row for row in default_types()}
    assert len(types) == len(default_types())
    names = {row["type_name"]: row for row in types.values()}
    for name, parent in [
        ("电影", 0), ("动作片", 1), ("战争片", 1), ("纪录片", 1), ("连续剧", 0), ("国产剧", 2), ("欧美剧", 2),
        ("短剧", 2), ("综艺", 0), ("动漫", 0), ("国产动漫", 4), ("日韩动漫", 4), ("欧美动漫", 4),
    ]:  # fmt: skip
        assert (names[name]["type_pid"], names[name]["type_mid"]) == (parent, 1)
    assert names["伦理片"]["type_id"] == 20
    assert {row["type_id"] for row in types.values() if row["type_mid"] == 2} == {5, 17, 18}
    assert set(types[1]) <= {column.name for column in TYPE_COLUMNS}
    for row in types.values():
        assert row["type_pid"] in {0, *types}
        filters = json.loads(row["type_extend"])
        assert all(isinstance(value, str) for value in filters.values())
        assert {"class", "area", "lang", "year"} <= set(filters)
    assert json.loads(types[1]["type_extend"])["area"].startswith("大陆,香港,台湾,美国,韩国,日本,")
    assert json.loads(types[2]["type_extend"])["area"].startswith("内地,")
    assert json.loads(types[6]["type_extend"])["area"] == ""
