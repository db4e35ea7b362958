"""Our tables come into being and up to date beside the CMS's, which are never touched."""

from __future__ import annotations

import re
from multiprocessing.synchronize import Event

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

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
def test_the_version_is_committed_before_the_next_process_may_begin(mariadb_url):
    engine = open_engine(mariadb_url)
    events = []
    sa.event.listen(engine, "commit", lambda connection: events.append("commit"))

    @sa.event.listens_for(engine, "before_cursor_execute")
    def _statement(connection, cursor, statement, *others):
        events.append("released" if "RELEASE_LOCK" in statement else "statement")

    migrations.tree_of("mac_").upgrade(engine)
    until_released = events[: events.index("released")]
    assert until_released[-1] == "commit"
    engine.dispose()


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


def test_a_run_on_a_database_that_is_not_set_up_says_what_to_do(engine):
    create_library(engine, [video(7)], default_types())
    with Library(engine.url.render_as_string(hide_password=False)) as library:
        with pytest.raises(DatabaseError, match=r"do not exist yet: .*launch the job initialise_library"):
            library.services.ready()
        migrations.tree_of("mac_").upgrade(engine)
        assert library.services.ready() is library.services
        for version, said in (
            ("0017", r"made by a release candidate: export its decisions there .* and import them"),
            ("1002", f"made by a newer release; the newest version of this release, {__version__}, is"),
        ):
            library.execute(f"UPDATE mac_douban_version SET version_num = '{version}'")
            with pytest.raises(DatabaseError, match=said):
                library.services.ready()
