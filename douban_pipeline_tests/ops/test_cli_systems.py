"""What every system of the registry gets from the commands of operators: one test for all of them."""

from __future__ import annotations

import json
import sys
import uuid
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
import sqlalchemy as sa
from dagster import DagsterInstance

from douban_pipeline import __version__
from douban_pipeline.comments.cache.binlog import status_name
from douban_pipeline.comments.identity import USER_COLUMNS
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.store.shards import beat
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.core.extras import install_command
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.system import SystemPart, every_system, system_named
from douban_pipeline.douban.store import migrations as douban_migrations
from douban_pipeline.locations import location_of
from douban_pipeline_tests.harness.fixtures.calling import (
    Called,
    caller,  # noqa: F401 (a fixture)
    url_setting,
)

NAMES = tuple(name for name in SYSTEMS if name != "douban")
"""The systems that need no CMS; the core system's commands have tests of their own."""


def findings(reported: Called) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in json.loads(reported.said)["findings"]}


def test_all_names_every_system_and_the_worst_of_each_is_told(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_TMDB_DATABASE_URL": "sqlite:///x"}
    asked = call("check", "--system", "all", "--no-dagster", "--json", **given)
    assert asked.status == 1
    told = json.loads(asked.said)
    assert list(told["systems"]) == ["douban", *NAMES]
    assert told["systems"]["tmdb"] == "fail"
    for system, state in told["systems"].items():
        own = [each["state"] for each in told["findings"] if each["name"].startswith(f"{system}.")]
        assert not own or state == max(own, key=("ok", "warn", "fail").index)
    assert "tmdb: fail" in call("check", "--system", "all", "--no-dagster", **given).said.splitlines()[-1]


@pytest.mark.parametrize(
    ("waits", "workers", "state"),
    [(False, 0, "ok"), (True, 0, "warn"), (True, 1, "warn")],
)
def test_events_that_nobody_applies_are_a_warning(waits, workers, state, tmp_path, call):
    url = f"sqlite:///{tmp_path / 'comments.sqlite'}"
    given = {"DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    assert call("setup", "--system", "comments", **given).status == 0
    engine, now = open_engine(url), datetime.now(UTC)
    with engine.begin() as connection:
        if waits:
            section = ensure_section(connection, 1, 7, now)
            event = EventInput(section, EventKind.PUBLISH, Actor("u:2", 2), "k", 5, {"content": "好看"})
            append(connection, [event], now - timedelta(minutes=5))
        if workers:
            beat(connection, "w", now + timedelta(hours=1))
    engine.dispose()
    found = findings(call("check", "--system", "comments", "--no-dagster", "--json", **given))
    assert found["comments.worker"]["state"] == state
    assert ("no worker runs" in found["comments.worker"]["remedy"]) == (waits and not workers)


def test_every_system_is_found_by_its_name_and_has_all_its_parts():
    """Each part is where its system says, which no import shows; a system's place and its location's agree."""
    assert [system.name for system in every_system()] == list(SYSTEMS)
    for system in every_system():
        parts = [getattr(system, name) for name in dir(system)]
        assert all(part() is not None for part in parts if isinstance(part, SystemPart))
        assert import_module(system.location).defs


NEEDS = {
    "digest": {
        "DOUBAN_PIPELINE_DIGEST_FEED_SOURCES": "*",
        "DOUBAN_PIPELINE_DIGEST_DEEPSEEK_API_KEY": "k",
        "DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS": "webhook+http://127.0.0.1:9/hook operator=webhook+http://127.0.0.1:9/alerts",
    },
    "tmdb": {"DOUBAN_PIPELINE_TMDB_API_KEY": "k"},
}
"""What a system has to be told before its check is content."""


ON_POSTGRES_ALONE = {"tmdb"}
"""Systems whose tables no other database can hold."""


def tree_of(name: str) -> MigrationTree:
    """Return the migrations of a system's tables."""
    return import_module(f"douban_pipeline.{name}.store.migrations").TREE


@pytest.fixture(
    params=[
        pytest.param((name, url), id=f"{name}-{url}", marks=[getattr(pytest.mark, url)] if url != "sqlite" else [])
        for name in NAMES
        for url in (["postgres"] if name in ON_POSTGRES_ALONE else ["sqlite", "mariadb", "postgres"])
    ]
)
def placed(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Each system on each engine that may hold its tables: its name, and the address of an empty database."""
    name, server = request.param
    if name in ON_POSTGRES_ALONE:
        return name, str(request.getfixturevalue("tmdb_database_url"))
    return name, str(request.getfixturevalue(f"{server}_url"))


def test_a_system_is_set_up_checked_and_upgraded_alone(placed, tmp_path, call):
    name, database_url = placed
    given = {url_setting(name): database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path), **NEEDS.get(name, {})}
    asked = ("check", "--system", name, "--no-dagster", "--json")
    before = call(*asked, **given)
    assert before.status == 1
    assert findings(before)[f"{name}.tables"]["remedy"] == f"run `douban-pipeline setup --system {name}`"

    plan = call("upgrade", "--system", name, "--plan", **given)
    assert "CREATE TABLE" in plan.said
    assert findings(call(*asked, **given))[f"{name}.tables"]["state"] == "fail", "a plan changes nothing"

    done = call("setup", "--system", name, **given)
    assert done.status == 0, done.said
    assert "version none → " in done.said
    well = findings(call(*asked, **given))
    lacking = {"tmdb.graph"} if name == "tmdb" else set()  # a server of its own, which is not set here
    assert {place for place, found in well.items() if found["state"] != "ok"} == lacking
    assert {f"{name}.{what}" for what in ("settings", "tables", "grants", "clock")} <= set(well)

    tree = tree_of(name)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        table = ".".join(filter(None, (tree.schema, tree.version_table)))
        connection.execute(sa.text(f"UPDATE {table} SET version_num = '9999'"))
    engine.dispose()
    newer = call("check", "--system", name, "--no-dagster", **given)
    assert f"the newest version of this release, {__version__}, is" in newer.said
    assert call("upgrade", "--system", name, **given).status == 2


@pytest.mark.mariadb
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_POSTGRES_ALONE])
def test_the_grants_of_a_system_suffice(name, mariadb_url, tmp_path, call):
    owner = open_engine(mariadb_url)
    user = f"dt_{uuid.uuid4().hex[:10]}"
    account = owner.url.set(username=user, password="p").render_as_string(hide_password=False)
    given = {url_setting(name): account, "DOUBAN_PIPELINE_HOME": str(tmp_path), **NEEDS.get(name, {})}
    asked = ("check", "--system", name, "--no-dagster")
    with owner.begin() as connection:
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'", (user,))
    try:
        said = call("grants", "--system", name, "--user", user, "--host", "%", **given).said
        statements = [line for line in said.splitlines() if line.startswith("GRANT")]
        assert "cannot be reached" not in call(*asked, **given).said
        with owner.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement.replace("%", "%%"))
        assert call("setup", "--system", name, **given).status == 0
        well = call(*asked, **given)
        assert well.status == 0, well.said
        with owner.begin() as connection:
            first = tree_of(name).metadata.sorted_tables[0].name
            connection.exec_driver_sql(f"REVOKE ALL ON {first} FROM %s@'%%'", (user,))
            connection.exec_driver_sql(f"GRANT SELECT ON {first} TO %s@'%%'", (user,))
        assert f"this account lacks INSERT ON {first}, UPDATE ON {first}" in call(*asked, **given).said
    finally:
        with owner.begin() as connection:
            connection.exec_driver_sql("DROP USER %s@'%%'", (user,))
        owner.dispose()


def run_for_mac(owner: sa.Engine, lines: list[str]) -> None:
    """Run what is granted on the CMS's and Douban's tables, and on the server."""
    with owner.begin() as connection:
        for line in lines:
            if "mac_" in line or "REPLICATION" in line:
                for statement in line.removesuffix(";").split("; "):
                    connection.exec_driver_sql(statement.replace("%", "%%"))


@pytest.mark.mariadb
def test_what_settings_of_comments_do_to_the_cms_is_granted_and_no_more(mariadb_url, tmp_path, call):
    owner = open_engine(mariadb_url)
    user = f"dt_{uuid.uuid4().hex[:10]}"
    database = owner.url.database
    given = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_DATABASE_URL": mariadb_url,
        "DOUBAN_PIPELINE_COMMENTS_FOLLOW": "binlog",
        "DOUBAN_PIPELINE_COMMENTS_REDIS_URL": "redis://127.0.0.1:1/0",
    }

    def granted(**settings: str) -> list[str]:
        said = call("grants", "--system", "comments", "--user", user, "--host", "%", **given, **settings).said
        return [line for line in said.splitlines() if line.startswith(("GRANT", "SET")) and "`cmt_" not in line]

    exporting = granted(DOUBAN_PIPELINE_COMMENTS_EXPORT="true")
    unread = {"DOUBAN_PIPELINE_COMMENTS_CMS_LOGIN": "false", "DOUBAN_PIPELINE_COMMENTS_IMPORT_BATCH": "0"}
    plain = granted(**unread)
    rest = [line for line in plain if "alembic" not in line and "version" not in line]
    assert rest == [
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%';",
        f"GRANT SELECT (vod_id, vod_name, vod_pic) ON `{database}`.`mac_vod` TO '{user}'@'%';",
    ]
    assert f"GRANT SELECT, UPDATE (comment_status) ON `{database}`.`mac_comment` TO '{user}'@'%';" in exporting
    assert f"GRANT SELECT ON `{database}`.`mac_comment` TO '{user}'@'%';" in granted()
    with owner.begin() as connection:
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'", (user,))
        made = "comment_id int, comment_status int, comment_up int, comment_content varchar(255)"
        connection.exec_driver_sql(f"CREATE TABLE mac_comment ({made})")
        names = ", ".join(f"{name} int" for name in (*USER_COLUMNS, "user_pwd"))
        connection.exec_driver_sql(f"CREATE TABLE mac_user ({names})")
        connection.exec_driver_sql("CREATE TABLE mac_vod (vod_id int, vod_name int, vod_pic int, vod_pwd int)")
    run_for_mac(owner, exporting)  # before Douban's tables are there nothing is granted on them, and nothing fails
    douban_migrations.tree_of("mac_").upgrade(owner)
    account_url = owner.url.set(username=user, password="p").render_as_string(hide_password=False)
    apart = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_DATABASE_URL": account_url,
        "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": f"sqlite:///{tmp_path / 'comments.sqlite'}",
    }
    assert call("setup", "--system", "comments", **apart).status == 0
    try:
        account = open_engine(account_url)
        with account.begin() as connection:
            version = connection.exec_driver_sql("SELECT VERSION()").scalar_one()
            connection.exec_driver_sql(f"SHOW {status_name(version)} STATUS")
            connection.exec_driver_sql("SELECT user_name, user_random FROM mac_user")
            connection.exec_driver_sql("SELECT vod_name, vod_pic FROM mac_vod")
            connection.exec_driver_sql("UPDATE mac_comment SET comment_status = 1 WHERE comment_id = 1")
        for forbidden in (
            "UPDATE mac_comment SET comment_content = ''",
            "UPDATE mac_comment SET comment_up = 1",
            "SELECT user_pwd FROM mac_user",
            "SELECT vod_pwd FROM mac_vod",
            "UPDATE mac_douban_subject SET title = ''",
            "SELECT douban_id_locked FROM mac_douban_video",
        ):
            with account.begin() as connection, pytest.raises(sa.exc.OperationalError):
                connection.exec_driver_sql(forbidden)
        account.dispose()
    finally:
        with owner.begin() as connection:
            connection.exec_driver_sql("DROP USER %s@'%%'", (user,))
        owner.dispose()


def test_where_accounts_do_not_matter_there_is_nothing_to_grant(tmp_path, call):
    said = call("grants", "--system", "feeds", DOUBAN_PIPELINE_HOME=str(tmp_path)).said
    assert said.startswith("-- feeds: sqlite:///")


def test_the_setting_says_which_systems_are_served(tmp_path, call):
    given = {"DOUBAN_PIPELINE_SYSTEMS": "feeds", "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    assert call("setup", **given).status == 0
    names = {name.partition(".")[0] for name in findings(call("check", "--no-dagster", "--json", **given))}
    assert names == {"feeds"}
    shown = call("settings", **given, COLUMNS="300").said
    assert "DOUBAN_PIPELINE_FEEDS_PROFILE" in shown
    assert "DOUBAN_PIPELINE_TOP_N" not in shown
    assert "there is no system 'nix'" in call("check", "--system", "nix", **given).said


def test_a_check_before_the_setup_creates_no_file(tmp_path, call):
    home = tmp_path / "home"
    asked = call("check", "--system", "feeds", "--no-dagster", DOUBAN_PIPELINE_HOME=str(home))
    assert (asked.status, "run `douban-pipeline setup --system feeds`" in asked.said) == (1, True)
    assert not home.exists()


def test_a_system_s_wrong_setting_is_a_finding_beside_the_others(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_FEEDS_POLLS_PER_SOURCE_PER_DAY": "-1"}
    reported = findings(call("check", "--system", "feeds", "--no-dagster", "--json", **given))
    assert "DOUBAN_PIPELINE_FEEDS_POLLS_PER_SOURCE_PER_DAY = '-1' is not allowed" in reported["feeds.settings"]["told"]


def test_the_pools_of_the_systems_served_are_looked_at(tmp_path, call):
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DAGSTER_HOME": str(tmp_path), "DOUBAN_PIPELINE_SYSTEMS": "feeds"}
    pools = [*system_named("feeds").pool_limits()]
    before = findings(call("check", "--json", **given))["pools"]
    assert before["state"] == "fail"
    assert all(pool in before["told"] for pool in pools)
    assert "feeds_web 2" in call("setup", **given).said
    assert findings(call("check", "--json", **given))["pools"]["state"] == "ok"
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        assert {limit.name for limit in instance.event_log_storage.get_pool_limits()} == set(pools)


def test_accounts_without_werss_are_told(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path)}
    call("setup", "--system", "feeds", **given)
    added = call("feeds", "add", "MP_WXS_1", "--kind", "werss", DOUBAN_PIPELINE_WERSS_URL="http://werss", **given)
    assert added.status == 0, added.said
    reported = findings(call("check", "--system", "feeds", "--no-dagster", "--json", **given))
    assert "WERSS_URL is not set" in reported["feeds.werss"]["told"]


def test_a_system_without_its_libraries_is_left_out_with_a_word(tmp_path, call, monkeypatch):
    """By commands that serve all systems, and by Dagster, whose whole workspace one failing location would fail."""
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it could not be imported
    given = {"DOUBAN_PIPELINE_SYSTEMS": "feeds,tmdb", "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    missing = f"psycopg is not installed; the extra tmdb brings it: {install_command('tmdb')}"
    for command in (("setup",), ("grants",), ("settings",), ("upgrade", "--plan"), ("backup", str(tmp_path))):
        done = call(*command, **given)
        assert (done.status, f"tmdb: left out: {missing}" in done.said) == (0, True), done.said
        named = call(*command, "--system", "tmdb", **given)
        assert (named.status, named.said.strip()) == (2, f"error: {missing}")
    checked = call("check", "--no-dagster", **given)
    assert checked.status == 1
    assert f"fail tmdb.libraries {missing} → or take tmdb out of DOUBAN_PIPELINE_SYSTEMS" in checked.said
    left_out = location_of("douban_pipeline.locations.tmdb")
    assert left_out.metadata["left_out"].value == f"tmdb: {missing}"
    assert not list(left_out.assets or ())
