"""What every system of the registry gets from the commands of operators: one test for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from alembic import command
from dagster import DagsterInstance

from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.store.shards import beat
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.settings_base import SYSTEMS
from douban_pipeline.douban.store import migrations as douban_migrations
from douban_pipeline.feeds.store import tables
from douban_pipeline.feeds.store.entries import store_entries
from douban_pipeline.feeds.types import Entry
from douban_pipeline.ops.systems.registry import MODULES, system_named
from douban_pipeline_tests.conftest import new_database
from douban_pipeline_tests.harness.fixtures.calling import (
    Called,
    caller,  # noqa: F401 (a fixture)
)
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import build_library, video

NAMES = tuple(MODULES)


def url_setting(name: str) -> str:
    return f"DOUBAN_PIPELINE_{name.upper()}_DATABASE_URL"


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


def test_every_system_is_one_that_the_setting_may_name():
    assert set(NAMES) <= set(SYSTEMS)
    assert [system_named(name).name for name in NAMES] == list(NAMES)


NEEDS = {
    "digest": {
        "DOUBAN_PIPELINE_DIGEST_FEED_SOURCES": "*",
        "DOUBAN_PIPELINE_DIGEST_DEEPSEEK_API_KEY": "k",
        "DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS": "webhook+http://127.0.0.1:9/hook",
    },
    "tmdb": {"DOUBAN_PIPELINE_TMDB_API_KEY": "k"},
}
"""What a system has to be told before its check is content."""


ON_POSTGRES_ALONE = {"tmdb"}
"""Systems whose tables no other database can hold."""


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


@pytest.fixture
def tmdb_database_url() -> Iterator[str]:
    """A new, empty database on PostgreSQL: the system's schema outlives what `postgres_url` clears away."""
    with new_database("postgres") as url:
        yield url


def test_a_system_is_set_up_checked_and_upgraded_alone(placed, tmp_path, call):
    name, database_url = placed
    given = {url_setting(name): database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path), **NEEDS.get(name, {})}
    asked = ("check", "--system", name, "--no-dagster", "--json")
    before = call(*asked, **given)
    assert before.status == 1
    assert findings(before)[f"{name}.tables"]["remedy"] == f"run `douban-pipeline setup --system {name}`"

    plan = call("upgrade", "--system", name, "--dry-run", **given)
    assert "CREATE TABLE" in plan.said
    assert findings(call(*asked, **given))[f"{name}.tables"]["state"] == "fail", "a dry run changes nothing"

    done = call("setup", "--system", name, **given)
    assert done.status == 0, done.said
    assert "version none → " in done.said
    well = findings(call(*asked, **given))
    assert {found["state"] for found in well.values()} == {"ok"}
    assert {f"{name}.{what}" for what in ("settings", "tables", "grants", "clock")} <= set(well)

    tree = system_named(name).tree
    engine = open_engine(database_url)
    with engine.begin() as connection:
        table = ".".join(filter(None, (tree.schema, tree.version_table)))
        connection.execute(sa.text(f"UPDATE {table} SET version_num = '9999'"))
    engine.dispose()
    newer = call("check", "--system", name, "--no-dagster", **given)
    assert "the newest version of this release is" in newer.said
    assert call("upgrade", "--system", name, **given).status == 2


@pytest.mark.mariadb
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_POSTGRES_ALONE])
def test_the_grants_of_a_system_suffice(name, mariadb_url, tmp_path, call):
    owner = open_engine(mariadb_url)
    user = f"dt_{tmp_path.name[-20:]}".replace("-", "_")[:30]
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
            first = system_named(name).tree.metadata.sorted_tables[0].name
            connection.exec_driver_sql(f"REVOKE ALL ON {first} FROM %s@'%%'", (user,))
            connection.exec_driver_sql(f"GRANT SELECT ON {first} TO %s@'%%'", (user,))
        assert f"this account lacks INSERT ON {first}, UPDATE ON {first}" in call(*asked, **given).said
    finally:
        with owner.begin() as connection:
            connection.exec_driver_sql("DROP USER %s@'%%'", (user,))
        owner.dispose()


@pytest.mark.mariadb
def test_what_settings_of_comments_do_to_the_cms_is_granted_and_no_more(mariadb_url, tmp_path, call):
    owner = open_engine(mariadb_url)
    user = f"dt_{tmp_path.name[-20:]}".replace("-", "_")[:30]
    database = owner.url.database
    given = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_DATABASE_URL": mariadb_url,
        "DOUBAN_PIPELINE_COMMENTS_FOLLOW": "binlog",
        "DOUBAN_PIPELINE_COMMENTS_REDIS_URL": "redis://127.0.0.1:1/0",
    }

    def granted(**settings: str) -> list[str]:
        said = call("grants", "--system", "comments", "--user", user, "--host", "%", **given, **settings).said
        return [line for line in said.splitlines() if line.startswith("GRANT") and "`cmt_" not in line]

    exporting = granted(DOUBAN_PIPELINE_COMMENTS_EXPORT="true")
    unread = {"DOUBAN_PIPELINE_COMMENTS_CMS_LOGIN": "false", "DOUBAN_PIPELINE_COMMENTS_IMPORT_BATCH": "0"}
    plain = granted(**unread, DOUBAN_PIPELINE_COMMENTS_TITLES_FROM_DOUBAN="false")
    assert granted(**unread, DOUBAN_PIPELINE_SYSTEMS="comments") == plain, "without Douban's system there are no titles"
    rest = [line for line in plain if "alembic" not in line and "version" not in line]
    assert rest == [f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%';"]
    columns = "comment_status, comment_up, comment_down, comment_report"
    assert f"GRANT SELECT, UPDATE ({columns}) ON `{database}`.`mac_comment` TO '{user}'@'%';" in exporting
    assert f"GRANT SELECT ON `{database}`.`mac_comment` TO '{user}'@'%';" in granted()
    with owner.begin() as connection:
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'", (user,))
        made = ", ".join(f"{name} int" for name in [*columns.split(", "), "comment_id"])
        connection.exec_driver_sql(f"CREATE TABLE mac_comment ({made}, comment_content varchar(255))")
        names = "user_id int, user_name int, user_nick_name int, group_id int, user_status int, user_random int"
        connection.exec_driver_sql(f"CREATE TABLE mac_user ({names}, user_pwd int)")
    douban_migrations.upgrade(owner, "mac_")
    account_url = owner.url.set(username=user, password="p").render_as_string(hide_password=False)
    apart = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_DATABASE_URL": account_url,
        "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": f"sqlite:///{tmp_path / 'comments.sqlite'}",
    }
    asked = ("check", "--system", "comments", "--no-dagster")
    assert call("setup", "--system", "comments", **apart).status == 0
    try:
        refused = call(*asked, **apart).said
        assert "warn comments.titles" in refused
        assert "the library's tables cannot be read" in refused
        with owner.begin() as connection:
            for statement in exporting:
                if "mac_" in statement or "REPLICATION" in statement:
                    connection.exec_driver_sql(statement.replace("%", "%%"))
        assert "ok   comments.titles" in call(*asked, **apart).said
        account = open_engine(account_url)
        with account.begin() as connection:
            connection.exec_driver_sql("SHOW MASTER STATUS")
            connection.exec_driver_sql("SELECT user_name, user_random FROM mac_user")
            connection.exec_driver_sql("UPDATE mac_comment SET comment_up = 1 WHERE comment_id = 1")
        for forbidden in (
            "UPDATE mac_comment SET comment_content = ''",
            "SELECT user_pwd FROM mac_user",
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
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_FEEDS_WORKERS": "0"}
    reported = findings(call("check", "--system", "feeds", "--no-dagster", "--json", **given))
    assert "DOUBAN_PIPELINE_FEEDS_WORKERS = '0' is not allowed" in reported["feeds.settings"]["told"]


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
    added = call("feeds", "add", "MP_WXS_1", "--kind", "werss", DOUBAN_PIPELINE_FEEDS_WERSS_URL="http://werss", **given)
    assert added.status == 0, added.said
    reported = findings(call("check", "--system", "feeds", "--no-dagster", "--json", **given))
    assert "FEEDS_WERSS_URL is not set" in reported["feeds.werss"]["told"]


# --- backup and restore -----------------------------------------------------------------------------------------------


def fill(engine: sa.Engine, number: int) -> None:
    """Put a source with an entry and a raw answer into the feeds' tables, or another one beside them."""
    now = 1_700_000_000
    name = f"s{number}"
    with engine.begin() as connection:
        row = {
            "kind": "rss",
            "url": f"http://e.com/{number}",
            "url_hash": name,
            "host": "e.com",
            "title": "狂飙 😀 \\n'",
        }
        more = {"options": {"path": "a.b"}, "created_at": now, "updated_at": now}
        connection.execute(sa.insert(tables.source), {"source_id": name, **row, **more})
        connection.execute(sa.insert(tables.stats), {"source_id": name, "mean_gap": 1.5, "why": {"bound": "accrual"}})
        store_entries(connection, name, [Entry(f"g{number}", "http://e.com/a", "标题", "", now)], now)
        # The first value of a row, the host of a source in a local network, looks like the line of a table.
        host = {"source": "table" if number == 1 else name, "interval_ms": 1, "concurrency": 1, "holders": {}}
        since = {"next_slot_at": FakeClock().now(), "updated_at": FakeClock().now()}
        connection.execute(sa.insert(tables.gate), {**host, **since, "state": "closed"})
    Archive(engine, tables.snapshot, FakeClock()).put("e.com", name, 200, bytes(range(256)), "t")


def content(engine: sa.Engine) -> dict[str, list[str]]:
    with engine.connect() as connection:
        every = tables.metadata.sorted_tables
        return {table.name: sorted(map(repr, connection.execute(sa.select(table)))) for table in every}


def test_what_was_saved_comes_back_and_what_was_replaced_is_kept(any_database_url, tmp_path, call):
    engine = open_engine(any_database_url)
    given = {url_setting("feeds"): any_database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    given["DOUBAN_PIPELINE_SYSTEMS"] = "feeds"
    assert call("setup", **given).status == 0
    fill(engine, 1)
    saved = content(engine)
    path = tmp_path / "ours.jsonl.gz"
    saving = call("backup", str(path), **given)
    assert saving.status == 0, saving.said
    fill(engine, 2)
    later = content(engine)
    refused = call("restore", str(path), **given)
    assert (refused.status, "add --replace" in refused.said) == (1, True)
    assert call("restore", str(path), "--no-dry-run", **given).status == 2
    assert "dry run: nothing was changed; add --no-dry-run" in call("restore", str(path), "--replace", **given).said
    assert content(engine) == later

    doing = call("restore", str(path), "--replace", "--no-dry-run", **given)
    assert doing.status == 0, doing.said
    assert content(engine) == saved
    fill(engine, 3)  # new rows get numbers of their own
    [kept] = (tmp_path / "backups").iterdir()
    assert call("restore", str(kept), "--replace", "--no-dry-run", **given).status == 0
    assert content(engine) == later
    engine.dispose()


@pytest.mark.postgres
def test_a_schema_of_its_own_with_its_json_comes_back_as_it_was(tmdb_database_url, tmp_path, call):
    given = {url_setting("tmdb"): tmdb_database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    given["DOUBAN_PIPELINE_SYSTEMS"] = "tmdb"
    assert call("setup", **given).status == 0
    engine = open_engine(tmdb_database_url)
    planted = (
        "INSERT INTO tmdb.movies (tmdb_id, title, release_date, raw, raw_hash) VALUES "
        "(1, '霸王别姬 😀', '1993-07-26', '{\"a\": 7.50, \"b\": 12345678901234567890, \"c\": null}', 'v1:x')",
        "INSERT INTO tmdb.people (tmdb_id, name, data_state) VALUES (2, '张国荣', 'stub')",
        "INSERT INTO tmdb.movie_translations (tmdb_movie_id, language, title, raw) VALUES (1, 'en-US', 'F', 'null')",
        "INSERT INTO tmdb.neo4j_etl_outbox (entity_type, tmdb_id, raw_hash, graph_hash) VALUES ('movie', 1, 'x', 'y')",
        "INSERT INTO tmdb.enrichment_requests (user_id, session_id, query_text, conversation_id) "
        "VALUES ('u', 's', 'q', gen_random_uuid())",
        "INSERT INTO tmdb.enrichment_request_entities SELECT id, 'movie', 1, true, 0.5 FROM tmdb.enrichment_requests",
    )
    names = [table.fullname for table in system_named("tmdb").tree.metadata.sorted_tables]

    def rows() -> dict[str, list[str]]:
        with engine.connect() as connection:
            every = {name: connection.execute(sa.text(f"SELECT t::text FROM {name} AS t")) for name in names}
            return {name: sorted(text for (text,) in found) for name, found in every.items()}

    with engine.begin() as connection:
        for statement in planted:
            connection.exec_driver_sql(statement.replace("%", "%%"))
    saved = rows()
    path = tmp_path / "ours.jsonl.gz"
    saving = call("backup", str(path), **given)
    assert saving.status == 0, saving.said
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE tmdb.neo4j_etl_outbox SET locked_by = 'w', available_at = 'infinity'"))
        connection.execute(sa.text("DELETE FROM tmdb.movies"))
    refused = call("restore", str(path), "--replace", "--no-dry-run", **given)
    assert (refused.status, "1 runs are under way" in refused.said) == (2, True), refused.said
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE tmdb.neo4j_etl_outbox SET available_at = now()"))
    done = call("restore", str(path), "--replace", "--no-dry-run", **given)
    assert done.status == 0, done.said
    assert rows() == saved
    with engine.begin() as connection:  # what is gone altogether is made anew
        connection.execute(sa.text("DROP SCHEMA tmdb CASCADE"))
    again = call("restore", str(path), "--no-dry-run", **given)
    assert again.status == 0, again.said
    assert rows() == saved
    engine.dispose()


@pytest.mark.mariadb
def test_a_file_in_home_moves_to_a_server(mariadb_url, tmp_path, call):
    alone = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_SYSTEMS": "feeds"}
    call("setup", **alone)
    file = open_engine(f"sqlite:///{tmp_path / 'feeds.sqlite'}")
    fill(file, 1)
    folder = tmp_path / "backups"
    folder.mkdir()
    for _ in range(2):
        assert call("backup", str(folder), "--keep", "1", **alone).status == 0
    [path] = folder.iterdir()
    server = {**alone, url_setting("feeds"): mariadb_url}
    # Tables that are not there are made, of the backup's version.
    done = call("restore", str(path), "--no-dry-run", **server)
    assert done.status == 0, done.said
    engine = open_engine(mariadb_url)
    assert content(engine) == content(file)
    assert call("check", "--no-dagster", **server).status == 0
    for opened in (engine, file):
        opened.dispose()


@pytest.mark.mariadb
def test_a_restore_cut_off_between_drops_leaves_no_version_and_can_be_done_again(mariadb_url, tmp_path, call):
    given = {url_setting("comments"): mariadb_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    given["DOUBAN_PIPELINE_SYSTEMS"] = "comments"
    tree, engine = system_named("comments").tree, open_engine(mariadb_url)
    config = tree.config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, tree.versions[-2])
    path = tmp_path / "earlier.jsonl.gz"
    assert call("backup", str(path), **given).status == 0
    assert call("upgrade", **given).status == 0
    drops: list[str] = []

    def cut_off(_connection, _cursor, statement, *_):
        drops.extend([statement] if "DROP TABLE" in statement else [])
        if len(drops) == 3:
            raise KeyboardInterrupt

    asked = ("restore", str(path), "--replace", "--no-dry-run")
    sa.event.listen(sa.Engine, "before_cursor_execute", cut_off)
    try:
        stopped = call(*asked, **given)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", cut_off)
    assert stopped.status == 130
    assert "Our tables may be incomplete" in stopped.said
    assert tree.current(engine) is None
    done = call(*asked, **given)
    assert done.status == 0, done.said
    assert tree.current(engine) == tree.versions[-2]
    engine.dispose()


def test_nothing_is_restored_while_sources_are_leased_or_from_a_damaged_file(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_SYSTEMS": "feeds"}
    call("setup", **given)
    engine = open_engine(f"sqlite:///{tmp_path / 'feeds.sqlite'}")
    fill(engine, 1)
    path = tmp_path / "ours.jsonl.gz"
    call("backup", str(path), **given)
    with engine.begin() as connection:
        connection.execute(sa.update(tables.stats).values(lease_token="run", lease_until=2**40))
    refused = call("restore", str(path), "--replace", "--no-dry-run", **given)
    assert (refused.status, "1 runs are under way" in refused.said) == (2, True)
    path.write_bytes(path.read_bytes()[:-30])
    before = content(engine)
    damaged = call("restore", str(path), "--replace", "--no-dry-run", **given)
    assert (damaged.status, "damaged or incomplete" in damaged.said) == (2, True)
    assert content(engine) == before
    engine.dispose()


@pytest.mark.mariadb
def test_all_systems_are_saved_in_one_call_each_in_its_file(mariadb_url, tmp_path, call):
    with build_library(mariadb_url, [video(1)]):
        given = {"DOUBAN_PIPELINE_DATABASE_URL": mariadb_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
        given["DOUBAN_PIPELINE_SYSTEMS"] = "douban,feeds"
        call("setup", "--system", "feeds", **given)
        done = call("backup", str(tmp_path / "all.sql.gz"), **given)
        assert done.status == 0, done.said
        assert {path.name for path in tmp_path.glob("*.gz")} == {"all.sql.gz", "all-feeds.jsonl.gz"}
        wrong = call("restore", str(tmp_path / "all-feeds.jsonl.gz"), **given)
        assert "tables of feeds" in wrong.said
