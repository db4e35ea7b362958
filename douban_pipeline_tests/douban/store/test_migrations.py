"""Our tables come into being and up to date beside the CMS's, which are never touched."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from multiprocessing.synchronize import Event

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from douban_pipeline import __version__
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.library import Library, processes, video


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def ddl(engine, tables):
    """Return the statements that would create ``tables`` as they are."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            query = "SELECT sql FROM sqlite_master WHERE tbl_name = ? ORDER BY name"
            return [connection.exec_driver_sql(query, (table,)).scalars().all() for table in tables]
        found = [connection.exec_driver_sql(f"SHOW CREATE TABLE `{table}`").one()[1] for table in tables]
    return [re.sub(r"AUTO_INCREMENT=\d+ ", "", statement) for statement in found]


def differences(engine, prefix):
    own = {*own_tables(prefix).metadata.tables, migrations.version_table(prefix)}

    def ours(name, kind, _parents):
        return kind != "table" or name in own

    with engine.connect() as connection:
        options = {"version_table": migrations.version_table(prefix), "compare_type": True, "include_name": ours}
        context = MigrationContext.configure(connection, opts=options)
        return compare_metadata(context, own_tables(prefix).metadata)


@pytest.mark.mariadb
def test_tables_of_migrations_are_those_of_the_code_to_the_letter(mariadb_url):
    engine = open_engine(mariadb_url)
    migrations.tree_of("a_").upgrade(engine)
    own_tables("b_").metadata.create_all(engine)
    names = [name.removeprefix("a_") for name in own_tables("a_").metadata.tables]
    migrated = [statement.replace("a_douban", "b_douban") for statement in ddl(engine, [f"a_{name}" for name in names])]
    created = ddl(engine, [f"b_{name}" for name in names])
    lines = [sorted(line.strip(",") for line in statement.splitlines()) for statement in migrated]
    assert lines == [sorted(line.strip(",") for line in statement.splitlines()) for statement in created]
    engine.dispose()


def test_a_repeated_upgrade_changes_nothing(engine):
    migrations.tree_of("mac_").upgrade(engine)
    names = sorted(own_tables("mac_").metadata.tables)
    engine_before = ddl(engine, names)
    with Library(engine.url.render_as_string(hide_password=False)) as library:
        library.add_states({"vod_id": 7, "douban_review_reason": "留着"})
        before = library.states()
        assert migrations.tree_of("mac_").upgrade(engine) == (
            migrations.tree_of("mac_").head,
            migrations.tree_of("mac_").head,
        )
        assert library.states() == before
    assert ddl(engine, names) == engine_before


@pytest.mark.usefixtures("every_upgrade_by_alembic")
@pytest.mark.parametrize("form", ["head", "classic"])
def test_a_cms_table_is_never_touched(engine, form):
    create_library(engine, [video(7)], default_types(), form=form)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE mac_douban_vod_meta (id INTEGER PRIMARY KEY)")
    cms = ["mac_vod", "mac_type", "mac_douban_vod_meta"]
    before = ddl(engine, cms)
    with Library(engine.url.render_as_string(hide_password=False)) as library:
        rows = library.all_bytes()
        migrations.tree_of("mac_").upgrade(engine)
        assert library.all_bytes() == rows
    assert ddl(engine, cms) == before


def test_an_upgrade_that_was_cut_off_goes_on(engine):
    # Servers without transactions for DDL keep the tables that were made before the power went.
    tables = own_tables("mac_")
    with engine.begin() as connection:
        tables.video.create(connection)
        tables.log.create(connection)
        connection.execute(sa.schema.DropIndex(next(iter(tables.log.indexes))))
    assert migrations.tree_of("mac_").upgrade(engine)[1] == migrations.tree_of("mac_").head
    assert differences(engine, "mac_") == []


def test_tables_with_rows_but_without_a_version_are_never_dropped(engine):
    migrations.tree_of("mac_").upgrade(engine)
    with Library(engine.url.render_as_string(hide_password=False)) as library:
        library.add_states({"vod_id": 7})
        library.execute("DROP TABLE mac_douban_version")
        with pytest.raises(DatabaseError, match="mac_douban_video holds rows"):
            migrations.tree_of("mac_").upgrade(engine)
        assert library.state(7)["vod_id"] == 7


def upgrade_in_a_process(url: str, start: Event) -> None:
    """Upgrade once told to, and use the tables at once."""
    start.wait(60)
    with Library(url) as library:
        migrations.tree_of("mac_").upgrade(library.engine)
        assert migrations.tree_of("mac_").current(library.engine) == migrations.tree_of("mac_").head
        library.query("SELECT COUNT(*) FROM mac_douban_video")


def test_processes_that_upgrade_at_once_do_not_stand_in_each_others_way(engine):
    context = processes()
    start = context.Event()
    url = engine.url.render_as_string(hide_password=False)
    upgrades = [context.Process(target=upgrade_in_a_process, args=(url, start)) for _ in range(3)]
    for process in upgrades:
        process.start()
    start.set()
    for process in upgrades:
        process.join(timeout=90)
    assert [process.exitcode for process in upgrades] == [0, 0, 0]
    assert differences(engine, "mac_") == []


@pytest.mark.usefixtures("every_upgrade_by_alembic")
def test_several_sites_share_a_database_each_with_just_the_tables_we_know(engine):
    expected = set()
    for prefix in ("mac_", "x_", ""):
        assert migrations.tree_of(prefix).current(engine) is None
        assert migrations.tree_of(prefix).upgrade(engine) == (None, migrations.tree_of(prefix).head)
        expected |= {*own_tables(prefix).metadata.tables, f"{prefix}douban_version"}
        assert set(sa.inspect(engine).get_table_names()) == expected
    migrations.tree_of("x_").upgrade(engine)
    for prefix in ("mac_", "x_", ""):
        assert migrations.tree_of(prefix).current(engine) == migrations.tree_of(prefix).head
        assert differences(engine, prefix) == []


def test_tables_that_stayed_behind_under_the_cms_s_old_prefix_are_found_and_named(engine):
    create_library(engine, [video(1)], default_types(), prefix="mac_")
    old, new = migrations.tree_of("mac_"), migrations.tree_of("site_")
    old.upgrade(engine)
    create_library(engine, [video(1)], default_types(), prefix="site_")
    assert "site_douban_video" in new.plan(engine).sql, "two sites in one database"
    with engine.begin() as connection:
        for name in ("vod", "type"):
            connection.exec_driver_sql(f"DROP TABLE mac_{name}")
    for attempt in (new.upgrade, new.plan, new.ensure):
        with pytest.raises(DatabaseError, match=r"'mac_'.*RENAME TABLE .*mac_douban_video TO site_douban_video"):
            attempt(engine)
    names = sa.inspect(engine).get_table_names()
    assert not [name for name in names if name.startswith("site_douban")]
    with engine.begin() as connection:
        for name in names:
            if name.startswith("mac_douban_"):
                connection.exec_driver_sql(f"ALTER TABLE {name} RENAME TO site_{name.removeprefix('mac_')}")
    new.ensure(engine)


def test_versions_stand_in_one_line():
    script = ScriptDirectory.from_config(migrations.tree_of("mac_").config())
    assert len(script.get_heads()) == 1
    assert [revision.revision for revision in script.walk_revisions()][-1] == "0001"


def test_a_run_on_a_database_that_is_not_set_up_says_what_to_do(engine):
    create_library(engine, [video(7)], default_types())
    with Library(engine.url.render_as_string(hide_password=False)) as library:
        with pytest.raises(DatabaseError, match=r"do not exist yet: .*launch the job initialise_library"):
            library.services.ready()
        migrations.tree_of("mac_").upgrade(engine)
        assert library.services.ready() is library.services
        for version, said in (
            ("0001", f"are at version 0001, this release needs {migrations.tree_of('mac_').head}"),
            ("9999", f"version 9999, made by {__version__};"),
        ):
            library.execute(f"UPDATE mac_douban_version SET version_num = '{version}'")
            with pytest.raises(DatabaseError, match=said):
                library.services.ready()


def upgrade_to(engine, version):
    """Bring our tables to an earlier version, as an earlier release did."""
    config = migrations.tree_of("mac_").config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)


FIRST_ROWS = """
INSERT INTO mac_douban_verdict (vod_id, shard, task_id, verdict, douban_id, score, complete, source_healthy, reasons,
    explanation, facts, rule_version, state, run_id, created_at)
VALUES (7, 7, 1, 'CONFIRMED', 90000101, 95.5, 1, 1, '[]', '年份相符', '{"title": "片名"}', 'm1', 'applied', 'r',
    '2026-01-01 00:00:00');
INSERT INTO mac_douban_review_candidate (verdict_id, vod_id, `rank`, douban_id, title, score, facts, snapshot_id,
    created_at)
VALUES (1, 7, 1, 90000101, '片名', 95.5, '{}', 3, '2026-01-01 00:00:00')
"""


@pytest.fixture
def first_release(engine):
    """A library as the first release left it, with a verdict and its candidate."""
    upgrade_to(engine, "0001")
    with engine.begin() as connection:
        for statement in FIRST_ROWS.split(";"):
            connection.exec_driver_sql(statement.replace("%", "%%"))
    return engine


def has_the_rows_of_the_first_release(engine):
    with Library(engine.url.render_as_string(hide_password=False)) as library:
        tables = library.tables
        [verdict] = library.query(sa.select(tables.verdict))
        [candidate] = library.query(sa.select(tables.candidate))
        stored = (verdict["vod_id"], verdict["score"], verdict["explanation"], verdict["facts"], verdict["state"])
        assert stored == (7, 95.5, "年份相符", {"title": "片名"}, "applied")
        assert (verdict["profile"], verdict["strata"], verdict["crowded"]) == ("plan", None, False)
        assert (candidate["title"], candidate["snapshot_id"], candidate["fetched"]) == ("片名", 3, True)
        assert library.query(sa.select(tables.brake)) == []


def test_the_verdicts_of_the_first_release_are_taken_along(first_release):
    assert migrations.tree_of("mac_").upgrade(first_release) == ("0001", migrations.tree_of("mac_").head)
    assert differences(first_release, "mac_") == []
    has_the_rows_of_the_first_release(first_release)


def test_a_later_upgrade_that_was_cut_off_goes_on_too(first_release):
    # What a server without transactions for DDL had done when the power went.
    with first_release.begin() as connection:
        connection.exec_driver_sql(
            "ALTER TABLE mac_douban_verdict ADD COLUMN profile VARCHAR(16) NOT NULL DEFAULT 'plan'"
        )
        own_tables("mac_").brake.create(connection)
    assert migrations.tree_of("mac_").upgrade(first_release) == ("0001", migrations.tree_of("mac_").head)
    assert differences(first_release, "mac_") == []
    has_the_rows_of_the_first_release(first_release)


LINKS = {
    1: ("auto", "applied", "[11, 21, 22]", "ai_search"),
    2: ("auto", "applied", "[12,21]", "auto"),
    3: ("auto", "applied", "[11]", "ai_search"),
    4: ("auto", "applied", None, "auto"),
    5: ("auto", "applied", "[]", "auto"),
    6: ("auto", "applied", "[99, 11]", "auto"),
    7: ("auto", "reverted", "[11]", "auto"),
    8: ("person", "applied", "[11]", "person"),
    9: ("cms", "applied", "[13]", "cms"),
    10: ("auto", "applied", "[13, 21]", "ai_search"),
}
"""Source of an id, state of the change that wrote it, answers its verdict rests on, and the source afterwards."""


def test_ids_that_a_web_search_found_are_told_from_others(engine):
    upgrade_to(engine, "0005")
    tables, now = own_tables("mac_"), datetime(2026, 1, 1, tzinfo=UTC)
    answers = {11: "searxng", 12: "douban_suggest", 13: "bocha", 21: "douban", 22: "douban"}
    with engine.begin() as connection:
        for number, source in answers.items():
            values = {
                "snapshot_id": number,
                "source": source,
                "key_hash": str(number),
                "request_key": "",
                "status": 200,
            }
            values |= {"sha256": "", "body": b"", "parser_version": "", "fetched_at": now, "seen_at": now}
            connection.execute(sa.insert(tables.snapshot).values(values))
        for vod_id, (source, state, answered, _) in LINKS.items():
            connection.execute(sa.insert(tables.video).values(vod_id=vod_id, shard=vod_id, douban_id_source=source))
            verdict = {"verdict_id": vod_id, "vod_id": vod_id, "shard": vod_id, "task_id": 1, "verdict": "CONFIRMED"}
            verdict |= {"complete": True, "source_healthy": True, "rule_version": "m1", "state": "applied"}
            connection.execute(sa.insert(tables.verdict).values(verdict | {"run_id": "r", "created_at": now}))
            written = {"snapshots": answered, "of": vod_id}
            connection.execute(
                sa.text("UPDATE mac_douban_verdict SET snapshots = :snapshots WHERE verdict_id = :of"), written
            )
            change = {"vod_id": vod_id, "shard": vod_id, "action": "link", "old_values": {}, "new_values": {}}
            change |= {"state_old": {}, "state_new": {}, "operator": "pipeline", "batch_id": "b", "run_id": "r"}
            change |= {"verdict_id": vod_id, "state": state, "prepared_at": now}
            connection.execute(sa.insert(tables.log).values(change))
    migrations.tree_of("mac_").upgrade(engine)
    assert differences(engine, "mac_") == []
    with engine.connect() as connection:
        found = connection.execute(sa.select(tables.video.c.vod_id, tables.video.c.douban_id_source)).tuples()
        assert dict(found.all()) == {vod_id: after for vod_id, (*_, after) in LINKS.items()}


TITLED = [
    # video, its id, its status, the candidate's id, the candidate's title, whether Douban was asked for it
    (1, 90000101, "CONFIRMED", 90000101, "长河落日记事", True),
    (1, 90000101, "CONFIRMED", 90000102, "蓝鲸与灯塔守望者", True),
    (2, 90000101, "CONFIRMED", 90000101, "长河落日记事", True),
    (3, 90000103, "REVIEW", 90000103, "午夜电车站台", True),
    (4, 90000104, "CONFIRMED", 90000104, "麦田", False),
]


def test_titles_of_subjects_begin_with_those_that_links_were_chosen_from(engine):
    upgrade_to(engine, "0011")
    tables, now = own_tables("mac_"), datetime(2026, 1, 1, tzinfo=UTC)
    with engine.begin() as connection:
        for rank, (vod_id, linked, status, douban_id, title, fetched) in enumerate(TITLED):
            if rank != 1:
                state = {"vod_id": vod_id, "shard": vod_id, "vod_douban_id": linked, "douban_review_status": status}
                connection.execute(sa.insert(tables.video).values(state))
            row = {"verdict_id": vod_id, "vod_id": vod_id, "rank": rank, "douban_id": douban_id, "title": title}
            row |= {"score": 95.0, "fetched": fetched, "created_at": now}
            connection.execute(sa.insert(tables.candidate).values(row))
    migrations.tree_of("mac_").upgrade(engine)
    with engine.connect() as connection:
        found = connection.execute(sa.select(tables.subject)).tuples().all()
    assert found == [(90000101, "长河落日记事", now)]
