"""What is saved of the systems' tables, and what comes back, by the commands of operators."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command

from douban_pipeline.comments.store.migrations import TREE as COMMENTS_TREE
from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import open_engine
from douban_pipeline.feeds.store import tables
from douban_pipeline.feeds.store.entries import store_entries
from douban_pipeline.feeds.types import Entry
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline_tests.harness.fixtures.calling import (
    caller,  # noqa: F401 (a fixture)
    url_setting,
)
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import build_library, video


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
    names = [table.fullname for table in TREE.metadata.sorted_tables]

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
    assert (refused.status, "runs are under way" in refused.said) == (2, True), refused.said
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
    tree, engine = COMMENTS_TREE, open_engine(mariadb_url)
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
    assert (refused.status, "runs are under way" in refused.said) == (2, True)
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
        done = call("backup", str(tmp_path / "all.jsonl.gz"), **given)
        assert done.status == 0, done.said
        assert {path.name for path in tmp_path.glob("*.gz")} == {"all.jsonl.gz", "all-feeds.jsonl.gz"}
        wrong = call("restore", str(tmp_path / "all-feeds.jsonl.gz"), **given)
        assert "tables of feeds" in wrong.said
