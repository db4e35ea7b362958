"""From the tables of every earlier release to this one's and back, by the commands of operators."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from packaging.version import Version

from douban_pipeline import __version__
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.system import System, every_system, system_named
from douban_pipeline.ops import shipped_files, workspace
from douban_pipeline.ops.backup import present_tables
from douban_pipeline.ops.backup_file import lines_of, verify_backup
from douban_pipeline.ops.release_history import (
    JobChange,
    Release,
    changed_jobs,
    release_before,
    release_names,
    this_release,
)
from douban_pipeline_tests.conftest import new_database
from douban_pipeline_tests.harness.fixtures.calling import caller, url_setting  # noqa: F401 (a fixture)
from douban_pipeline_tests.harness.fixtures.library import build_library, video

TABLES_OF_0_1 = Path(__file__).parent / "tables_of_0.1.0.sql.gz"
"""A backup that the release 0.1.0 made on MariaDB, of what its demo had left: the state before there were systems."""


def tree_of(name: str) -> MigrationTree:
    """Return the migrations of a system without opening it, which would start servers."""
    migrations = import_module(f"douban_pipeline.{name}.store.migrations")
    return migrations.tree_of("mac_") if name == "douban" else migrations.TREE


def earlier_states() -> Iterator[Any]:
    """Yield each system with each version that some earlier release ended with."""
    for system in every_system():
        tree, seen = tree_of(system.name), set()
        for release in sorted({tree.release_of(version) for version in tree.versions}, key=Version):
            last = [version for version in tree.versions if Version(tree.release_of(version)) <= Version(release)][-1]
            if last not in seen | {tree.head}:
                seen.add(last)
                marks = [pytest.mark.postgres] if system.name == "tmdb" else []
                yield pytest.param(system.name, last, id=f"{system.name}-{release}", marks=marks)


MENDED = {"douban_id_source"}
"""Columns whose values a migration corrects: the first release did not tell ids that a web search had found."""


def upgrade_to(engine: sa.Engine, tree: MigrationTree, version: str) -> None:
    """Make the tables of an earlier release."""
    config = tree.config()
    with engine.begin() as connection:
        tree.ensure_schema(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, version)


def some_value(column: sa.Column[Any]) -> Any:
    """Return a value for a column; all keys of all tables are equal, so that rows refer to each other."""
    kind = column.type
    if isinstance(kind, sa.Boolean | sa.Integer | sa.Numeric | sa.Float):
        return 1
    if isinstance(kind, sa.DateTime):
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC if kind.timezone else None)
    if isinstance(kind, sa.Date):
        return date(2026, 1, 2)
    if isinstance(kind, sa.LargeBinary):
        return b"\x00\xff"
    if isinstance(kind, sa.JSON):
        return {"片": [1]}
    if isinstance(kind, sa.Uuid):
        return "00000000-0000-0000-0000-000000000001"
    return "{}" if isinstance(kind, sa.Text) and not kind.length else "1"


BOUNDED = {
    "entity_type": "movie",
    "media_type": "movie",
    "data_state": "full",
    "action": "upsert",
    "state": "confirmed",
    "gone_at": None,
}
"""Values of columns that rules of a database bound."""


def fill(engine: sa.Engine, tree: MigrationTree) -> None:
    """Put a row into every table."""
    with engine.begin() as connection:
        for table in present_tables(connection, tree):
            columns = [column for column in table.columns if column.computed is None]
            row = {column.name: some_value(column) for column in columns}
            bounded = {name: BOUNDED[name] for name in row.keys() & BOUNDED.keys()} if tree.schema else {}
            connection.execute(sa.insert(table).values({**row, **bounded}))


def content(engine: sa.Engine, tree: MigrationTree) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables."""
    with engine.connect() as connection:
        return {
            table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
            for table in present_tables(connection, tree)
        }


def there_and_back(name: str, url: str, tmp_path: Path, call) -> None:
    """Upgrade the tables of an earlier release, and restore the backup from before; rows are kept both ways."""
    tree, engine, path = tree_of(name), open_engine(url), tmp_path / "before.jsonl.gz"
    setting = "DOUBAN_PIPELINE_DATABASE_URL" if name == "douban" else url_setting(name)
    given = {setting: url, "DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_SYSTEMS": name}
    version, before = tree.current(engine), content(engine, tree)
    for again in range(2):
        if not again:
            assert call("backup", str(path), **given).status == 0
        upgraded = call("upgrade", **given)
        assert upgraded.status == 0, upgraded.said
        assert f"version {version} → {tree.head}" in upgraded.said
        after = content(engine, tree)
        for table, rows in before.items():
            for row in rows:
                same = row.keys() - MENDED
                kept = [{name: found.get(name) for name in same} for found in after[table]]
                assert {name: row[name] for name in same} in kept, table
        if again:
            break
        asked = call("restore", str(path), "--replace", **given)
        assert (asked.status, "dry run: nothing was changed; add --no-dry-run" in asked.said) == (0, True), asked.said
        restored = call("restore", str(path), "--replace", "--no-dry-run", **given)
        assert restored.status == 0, restored.said
        assert tree.current(engine) == version
        assert content(engine, tree) == before, "the tables of later releases are gone, and each row is back"
    engine.dispose()


@pytest.mark.parametrize(("name", "version"), list(earlier_states()))
def test_every_earlier_release_is_upgraded_and_comes_back(name, version, tmp_path, call):
    file = nullcontext(f"sqlite:///{tmp_path / 'tables.sqlite'}")
    with new_database("postgres") if name == "tmdb" else file as url:
        engine = open_engine(url)
        upgrade_to(engine, tree_of(name), version)
        fill(engine, tree_of(name))
        engine.dispose()
        there_and_back(name, url, tmp_path, call)


@pytest.mark.mariadb
def test_what_the_first_release_saved_is_restored_upgraded_and_comes_back(mariadb_url, tmp_path, call):
    given = {"DOUBAN_PIPELINE_DATABASE_URL": mariadb_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    restored = call("restore", str(TABLES_OF_0_1), "--no-dry-run", **given)
    assert restored.status == 0, restored.said
    assert "Next: `douban-pipeline upgrade`" in restored.said
    engine = open_engine(mariadb_url)
    counted = {table: len(rows) for table, rows in content(engine, tree_of("douban")).items()}
    engine.dispose()
    assert (counted["mac_douban_video"], counted["mac_douban_log"], counted["mac_douban_intro"]) == (30, 42, 21)
    there_and_back("douban", mariadb_url, tmp_path, call)


def test_older_code_drops_what_a_newer_release_made_when_a_backup_from_before_is_restored(sqlite_url, tmp_path, call):
    given = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    path, later = tmp_path / "before.jsonl.gz", "mac_douban_later"
    restoring = ("restore", str(path), "--replace")
    with build_library(sqlite_url, [video(1)]) as library:
        assert call("backup", str(path), **given).status == 0
        library.execute(f"CREATE TABLE {later} (id INTEGER PRIMARY KEY, note TEXT)")
        library.execute(f"INSERT INTO {later} VALUES (1, 'x')")
        library.execute("CREATE TABLE mac_douban_vod_meta (id INTEGER PRIMARY KEY)")  # the CMS's own
        library.execute("UPDATE mac_douban_version SET version_num = '9999', release_name = '7.5.0', table_names = ''")
        for options in ((), ("--no-dry-run",)):
            refused = call(*restoring, *options, **given)
            assert (refused.status, "made by 7.5.0" in refused.said) == (2, True), "nobody knows which tables it has"
        names = f"mac_douban_video,{later}"
        library.execute("UPDATE mac_douban_version SET table_names = :names", names=names)
        asked = call(*restoring, **given)
        assert asked.status == 0, asked.said
        assert "the present tables are of release 7.5.0" in asked.said
        (tmp_path / "backups").write_text("a file where the folder of copies would be")
        for options in ((), ("--no-dry-run",)):
            refused = call(*restoring, *options, **given)
            assert refused.status
            assert "the present tables cannot be kept" in refused.said
        (tmp_path / "backups").unlink()
        done = call(*restoring, "--no-dry-run", **given)
        assert done.status == 0, done.said
        left = set(sa.inspect(library.engine).get_table_names())
        assert later not in left
        assert "mac_douban_vod_meta" in left
        assert library.services.ready() is library.services
        [kept] = (tmp_path / "backups").iterdir()
        header = verify_backup(kept)
        assert (header.version, header.release) == ("9999", "7.5.0")
        assert any(line.startswith(b'["table","mac_douban_later"') for line in lines_of(kept))


# --- what an upgrade will do ------------------------------------------------------------------------------------------


def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make an installation of the release 0.3.0 with units and an instance; return its environment."""
    url, units, dagster = f"sqlite:///{tmp_path / 'library.sqlite'}", tmp_path / "units", tmp_path / "dagster"
    monkeypatch.setattr(shipped_files, "UNITS", units)
    for folder in (units, dagster):
        folder.mkdir()
    unit = "[Service]\nExecStart=/x/dagster-daemon run -w /opt/douban_pipeline/deploy/workspace.yaml\n"
    (units / "douban-pipeline-daemon.service").write_text(unit)
    (dagster / "dagster.yaml").write_text("storage: {postgres: {postgres_url: {env: DAGSTER_PG_URL}}}\n")
    engine = open_engine(url)
    upgrade_to(engine, tree_of("douban"), "0014")
    engine.dispose()
    return {"DOUBAN_PIPELINE_DATABASE_URL": url, "DOUBAN_PIPELINE_HOME": str(tmp_path), "DAGSTER_HOME": str(dagster)}


def test_the_plan_names_what_has_to_be_done_by_hand_and_changes_nothing(tmp_path, monkeypatch, call):
    given = planned(tmp_path, monkeypatch)
    wrong = {
        "DOUBAN_PIPELINE_SERVE_PORT": "x",
        "DOUBAN_PIPELINE_YEAR_GAP": "4",
        "DOUBAN_PIPELINE_REVIEW_URL": "https://x/review/",
    }
    before = (tmp_path / "library.sqlite").read_bytes()
    plan = call("upgrade", "--plan", **given, **wrong)
    assert plan.status == 1
    head = tree_of("douban").head
    for said in (
        f"release 0.3.0 → {__version__}",
        "DOUBAN_PIPELINE_SERVE_PORT = 'x' is not allowed",
        "DOUBAN_PIPELINE_YEAR_GAP is a constant now (3): remove it",
        "DOUBAN_PIPELINE_REVIEW_URL is DOUBAN_PIPELINE_PUBLIC_URL now: without /review/ at its end",
        f"douban: version 0014 → {head}",
        "CREATE TABLE mac_douban_batch_outbox (",
        "douban/initialise_library: initialise.dry_run is true where it is left out, it was false",
        "DAGSTER_PG_URL is not set",
        "put DAGSTER_CODE_PORT=4000 into the environment",
        "names /opt/douban_pipeline/deploy/workspace.yaml, which does not exist → `sudo cp ",
        "systemctl restart douban-pipeline.target  # code, daemon, serve, viewer, webserver",
        "First do what the lines with fail say",
    ):
        assert said in plan.said, plan.said
    assert "FEEDS" not in plan.said, "a system that is not installed asks for nothing"
    assert (tmp_path / "library.sqlite").read_bytes() == before

    (tmp_path / "units" / "douban-pipeline-daemon.service").write_text(
        (shipped_files.project_folder() / "deploy/systemd/douban-pipeline-daemon.service").read_text()
    )
    right = {"DAGSTER_PG_URL": "x", "DAGSTER_CODE_HOST": "127.0.0.1", "DAGSTER_CODE_PORT": "4000"}
    plan = call("upgrade", "--plan", **given, **right)
    assert plan.status == 0, plan.said
    assert "In this order: backup, upgrade, setup, restart" in plan.said
    assert "is new → `sudo cp " in plan.said, "a unit that this installation lacks"
    call("upgrade", **given)
    assert f"release {__version__} → {__version__}" in call("upgrade", "--plan", **given, **right).said


def test_a_plan_without_the_database_tells_the_rest(tmp_path, call):
    url = "mysql+pymysql://u:secret@127.0.0.1:1/x"
    plan = call("upgrade", "--plan", DOUBAN_PIPELINE_DATABASE_URL=url, DOUBAN_PIPELINE_HOME=str(tmp_path))
    assert (plan.status, "secret" in plan.said) == (1, False)
    assert "release none" in plan.said


def test_a_plan_names_a_library_that_this_release_needs(tmp_path, monkeypatch, call):
    monkeypatch.setattr(System, "absent_library", property(lambda system: system.libraries[0]))
    plan = call("upgrade", "--plan", "--system", "tmdb", DOUBAN_PIPELINE_HOME=str(tmp_path))
    assert plan.status == 1
    assert "is not installed; the extra tmdb brings it: " in " ".join(plan.said.split())


def test_steps_and_defaults_that_changed_are_found_for_the_systems_that_are_installed():
    def release(name: str, **jobs: dict[str, str | None]) -> Release:
        return Release(name, settings={}, jobs={f"a/{job}": fields for job, fields in jobs.items()}, pools={}, files={})

    old = release("1", undo={"take_back.dry_run": "false", "take_back.id": None}, gone={}, same={"s.x": "1"})
    new = release("2", undo={"revert.dry_run": "true", "revert.id": None, "revert.why": '""'}, same={"s.x": "1"})
    assert list(changed_jobs(old, new, ["a"])) == [
        JobChange(
            "a/undo",
            steps=(("take_back", "revert"),),
            new=("revert.why",),
            defaults=(("revert.dry_run", "false", "true"),),
        ),
        JobChange("a/gone", removed=True),
    ]
    assert list(changed_jobs(old, new, ["b"])) == []
    assert release_names()[-1] == this_release().name == __version__
    assert release_before("0.3.5").name == "0.3.0"


# --- the workspace ----------------------------------------------------------------------------------------------------


def test_a_code_server_that_is_dead_fails_the_check(tmp_path):
    workspace.write_workspace(tmp_path, ["douban", "feeds"])
    with socket.create_server(("127.0.0.1", 0)) as alive, socket.create_server(("127.0.0.1", 0)) as dying:
        ports = [str(each.getsockname()[1]) for each in (alive, dying)]
        servers = {"DAGSTER_CODE_HOST": "127.0.0.1", "DAGSTER_CODE_PORT": ports[0]}
        servers |= {"DAGSTER_FEEDS_HOST": "127.0.0.1", "DAGSTER_FEEDS_PORT": ports[1]}
        assert list(workspace.server_results(tmp_path, servers)) == []
        dying.close()
        [found] = workspace.server_results(tmp_path, servers)
        assert (found.name, found.state) == ("code", "fail")
        assert f"the code server of feeds = grpc://127.0.0.1:{ports[1]} cannot be reached" in found.message
    assert list(workspace.server_results(tmp_path, {})) == [], "that no address is set is said by another"
    (tmp_path / "workspace.yaml").write_text("load_from:\n- python_module: {module_name: a}\n")
    assert list(workspace.server_results(tmp_path, {})) == []


def test_the_workspace_asks_for_the_installed_systems_alone_and_a_check_names_what_is_missing(tmp_path, monkeypatch):
    file = tmp_path / "workspace.yaml"
    douban, feeds = system_named("douban"), system_named("feeds")
    servers = {"DAGSTER_CODE_HOST": "127.0.0.1", "DAGSTER_CODE_PORT": "4000"}

    def found(systems, **variables: str) -> list[tuple[str, str]]:
        results = workspace.workspace_results(tmp_path, systems, variables)
        return [(result.state, result.message.replace(str(tmp_path), "") + result.remedy) for result in results]

    assert found([douban])[0][0] == "warn"
    assert workspace.write_workspace(tmp_path, ["douban"]) == file
    assert workspace.write_workspace(tmp_path, ["douban"]) is None
    assert "FEEDS" not in file.read_text()
    assert found([douban], **servers) == [("ok", "douban_pipeline")]
    [(state, said)] = found([douban, feeds], **servers)
    assert (state, "/workspace.yaml has no location feeds" in said) == ("fail", True)
    workspace.write_workspace(tmp_path, ["douban", "feeds"])
    assert [state for state, _ in found([douban, feeds], **servers)] == ["fail", "fail"]
    assert "DAGSTER_FEEDS_PORT=4001" in found([douban, feeds], **servers)[1][1]
    file.write_text("load_from: []\n")
    assert workspace.write_workspace(tmp_path, ["douban"]) is None, "a file of the owner's own"
