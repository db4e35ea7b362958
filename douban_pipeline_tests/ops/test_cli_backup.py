"""Backups of our tables and reading them back, by the command line, on a real server."""

from __future__ import annotations

import gzip
import hashlib
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import DatabaseError, open_engine
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.ops import backup as backups
from douban_pipeline.ops.backup import BackupHeader, backup_stream, verify_backup
from douban_pipeline.ops.client_programs import OperatingError
from douban_pipeline.ops.restore import plan_restore, restore
from douban_pipeline_tests.harness.fixtures.calling import caller  # noqa: F401 (a fixture)
from douban_pipeline_tests.harness.fixtures.full_disk import largest_file
from douban_pipeline_tests.harness.fixtures.library import (
    Library,
    build_library,
    fresh_mariadb,
    processes,
    video,
)

pytestmark = pytest.mark.mariadb
PASSWORD = "p'\"\\ #;=%40 x"
"""A password that has to be quoted wherever it could go wrong."""


@pytest.fixture(scope="module")
def server():
    """A library with something in every kind of column, and an account with an awkward password."""
    user = f"dt_{uuid.uuid4().hex[:10]}"
    with fresh_mariadb() as url, build_library(url, [video(n) for n in range(1, 8)], clock=SystemClock()) as library:
        with library.engine.begin() as connection:
            database = library.engine.url.database
            connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY %s", (user, PASSWORD))
            connection.exec_driver_sql(f"GRANT ALL ON {database}.* TO %s@'%%'", (user,))
        account = library.engine.url.set(username=user, password=PASSWORD)
        try:
            with Library(account.render_as_string(hide_password=False), clock=SystemClock()) as as_account:
                yield as_account
        finally:
            with library.engine.begin() as connection:
                connection.exec_driver_sql("DROP USER IF EXISTS %s@'%%'", (user,))


@pytest.fixture
def library(server):
    fresh = server.renewed([video(n, vod_name=f"影片{n} ’\\n") for n in range(1, 8)])
    fresh.clock = SystemClock()
    write(fresh, 1, "2001")
    fresh.services.people.remember(["宫崎骏", "Léon \\' \"", "😀"])
    archive = Archive(fresh.engine, fresh.tables.snapshot, fresh.clock)
    archive.put("douban", "1", 200, bytes(range(256)) * 9, "t")
    return fresh


def write(library: Library, vod_id: int, year: str) -> None:
    change = Change(vod_id, "sync", {"vod_year": library.row(vod_id)["vod_year"]}, {"vod_year": year}, reason="豆瓣")
    [outcome] = library.change_log().write([change])
    assert outcome.state == "applied"


def checksums(library: Library) -> dict[str, str]:
    """Return a sum over every byte of every row of our tables."""
    sums = {}
    for table in library.tables.metadata.sorted_tables:
        rows = sorted(map(repr, library.query(sa.text(f"SELECT * FROM {table.name}"))))
        sums[table.name] = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return sums


def environment(library: Library, home: Path) -> dict[str, str]:
    return {"DOUBAN_PIPELINE_DATABASE_URL": library.url, "DOUBAN_PIPELINE_HOME": str(home)}


def saved(library: Library, path: Path) -> Path:
    backups.back_up(library.engine, library.tables, library.prefix, path, library.clock.now())
    return path


def restore_copy(library: Library, path: Path, **options) -> None:
    restore(library.engine, library.tables, library.prefix, path, library.clock.now(), **options)


def test_what_was_saved_comes_back_to_the_byte_and_what_was_replaced_is_kept(library, tmp_path, call):
    settings = environment(library, tmp_path)
    path = tmp_path / "ours.sql.gz"
    before, cms = checksums(library), library.all_bytes()
    saving = call("backup", str(path), **settings)
    assert saving.status == 0, saving.said
    assert path.stat().st_mode & 0o777 == 0o600
    write(library, 2, "2002")
    after, cms_after = checksums(library), library.all_bytes()
    assert cms != cms_after

    asking = call("restore", str(path), "--replace", **settings)
    assert asking.status == 0, asking.said
    assert "1 changes to 1 videos that are in the present log" in asking.said
    assert "dry run: nothing was changed; add --no-dry-run to do it" in asking.said
    assert checksums(library) == after

    doing = call("restore", str(path), "--replace", "--no-dry-run", **settings)
    assert doing.status == 0, doing.said
    assert "initialise_library" in doing.said
    assert checksums(library) == before
    assert library.all_bytes() == cms_after
    assert PASSWORD not in saving.said + asking.said + doing.said

    [kept] = (tmp_path / "backups").iterdir()
    assert str(kept) in doing.said
    restore_copy(library, kept, replace=True)
    assert checksums(library) == after


def test_the_password_is_on_no_command_line(library, tmp_path, monkeypatch):
    """Not in what the server's programs are called with, nor in their environment."""
    dump, spied = backups.program(backups.DUMP), tmp_path / "bin" / "mariadb-dump"
    spied.parent.mkdir()
    spied.write_text(
        f'#!/bin/sh\n{{ env; printf "%s\\n" "$@"; }} > {tmp_path}/seen\nexec {dump} "$@"\n', encoding="utf-8"
    )
    spied.chmod(0o755)
    monkeypatch.setenv("PATH", str(spied.parent), prepend=":")
    saved(library, tmp_path / "ours.sql.gz")
    seen = (tmp_path / "seen").read_text(encoding="utf-8")
    assert "--defaults-file=" in seen
    assert PASSWORD not in seen


def save_in_a_process(url: str, path: Path, programs: str) -> None:
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    with Library(url, clock=SystemClock()) as library:
        saved(library, path)


def test_a_backup_that_is_killed_leaves_the_one_before(library, tmp_path):
    path = saved(library, tmp_path / "ours.sql.gz")
    before = path.read_bytes()
    slow = tmp_path / "bin" / "mariadb-dump"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\necho 'half of it'; exec sleep 60\n", encoding="utf-8")
    slow.chmod(0o755)
    process = processes().Process(target=save_in_a_process, args=(library.url, path, str(slow.parent)))
    process.start()
    partial = tmp_path / f"ours.sql.gz{backups.PARTIAL}"
    while not partial.exists():
        assert process.is_alive()
    process.kill()
    process.join()
    assert path.read_bytes() == before
    assert verify_backup(saved(library, path)).prefix == "mac_"
    assert not partial.exists()


def test_a_full_disk_is_reported_and_leaves_the_backup_before(library, tmp_path):
    path = saved(library, tmp_path / "ours.sql.gz")
    before = path.read_bytes()
    refused = pytest.raises(OperatingError, match="cannot be written: File too large; what was there before is kept")
    with largest_file(1000), refused:
        saved(library, path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["ours.sql.gz"]


def test_only_the_newest_backups_of_a_folder_are_kept(library, tmp_path, call):
    (tmp_path / "other.sql.gz").touch()
    for day in range(1, 5):
        backups.file_in(tmp_path, "mac_", datetime(2026, 1, day, tzinfo=UTC)).touch()
    result = call("backup", str(tmp_path), "--keep", "2", **environment(library, tmp_path))
    assert result.status == 0, result.said
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 3
    assert {"other.sql.gz", "douban_pipeline-mac_20260104T000000Z.sql.gz"} < set(names)


def reported(library: Library, path: Path, **options) -> str:
    now = library.clock.now()
    plan = plan_restore(library.engine, library.tables, library.prefix, path, now, **{"replace": True, **options})
    return "; ".join(plan.refusals)


def test_what_must_not_be_restored_is_refused(library, tmp_path):
    path = saved(library, tmp_path / "ours.sql.gz")
    assert reported(library, path) == ""
    assert "add --replace" in reported(library, path, replace=False)

    def changed(old: str, new: str) -> Path:
        sql = gzip.decompress(path.read_bytes()).replace(old.encode(), new.encode(), 1)
        other = tmp_path / "other.sql.gz"
        other.write_bytes(gzip.compress(sql))
        return other

    head = migrations.head("mac_")
    assert "tables under 'xx_'" in reported(library, changed('"prefix": "mac_"', '"prefix": "xx_"'))
    assert "of version 9999" in reported(library, changed(f'"version": "{head}"', '"version": "9999"'))
    library.enqueue(library.queue(), [NewTask(1, TaskType.SYNC_DOUBAN, TaskStage.SYNC)])
    library.execute(
        "UPDATE mac_douban_task SET status = 'RUNNING', lease_owner = 'r@elsewhere:1', lease_until = :until",
        until=(library.clock.now() + timedelta(minutes=5)).replace(tzinfo=None),
    )
    assert "runs are under way (r@elsewhere:1)" in reported(library, path)
    before = checksums(library)
    with pytest.raises(OperatingError, match="runs are under way"):
        restore_copy(library, path, replace=True)
    assert checksums(library) == before


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: b"hello", "is not a backup"),
        (lambda data: gzip.compress(b"DROP TABLE mac_vod;\n"), "is not a backup"),
        (lambda data: data[: len(data) // 2], "damaged or incomplete"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-40]), "its end is missing"),
    ],
)
def test_a_wrong_or_damaged_file_is_refused(library, tmp_path, spoil, said):
    path = saved(library, tmp_path / "ours.sql.gz")
    path.write_bytes(spoil(path.read_bytes()))
    before = checksums(library)
    with pytest.raises(OperatingError, match=said):
        restore_copy(library, path, replace=True)
    assert checksums(library) == before


def test_a_restore_that_is_cut_off_leaves_nothing_that_would_be_worked_on(library, tmp_path):
    path = saved(library, tmp_path / "ours.sql.gz")
    before = checksums(library)
    broken = tmp_path / "broken.sql.gz"
    sql = gzip.decompress(path.read_bytes()).replace(b"CREATE TABLE `mac_douban_task`", b"CREATE TROUBLE", 1)
    broken.write_bytes(gzip.compress(sql))
    with pytest.raises(OperatingError, match="Our tables are incomplete now"):
        restore_copy(library, broken, replace=True)
    with pytest.raises(DatabaseError, match="do not exist yet"):
        library.services.ready()
    restore_copy(library, path, replace=True)
    assert checksums(library) == before
    assert library.services.ready() is library.services


def test_a_backup_of_an_earlier_release_comes_back_and_is_upgraded(tmp_path):
    with fresh_mariadb() as url:
        engine = open_engine(url)
        config = migrations.config_for("mac_")
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0003")
        with Library(url, clock=SystemClock()) as library:
            library.execute("INSERT INTO mac_douban_person VALUES ('宫崎骏', '2026-01-01')")
            path = saved(library, tmp_path / "old.sql.gz")
            migrations.upgrade(engine, "mac_")
            restore_copy(library, path, replace=True)
            assert migrations.current(engine, "mac_") == "0003"
            migrations.upgrade(engine, "mac_")
            assert [row["name"] for row in library.query(sa.select(library.tables.person))] == ["宫崎骏"]
        engine.dispose()


def test_the_demo_s_library_is_reported_to_be_a_file(sqlite_url, call, tmp_path):
    build_library(sqlite_url, [video(1)]).engine.dispose()
    copy = tmp_path / "x.sql.gz"
    with (
        copy.open("wb") as target,
        backup_stream(target, BackupHeader("mac_", "0010", "1.0", datetime(2026, 3, 1, tzinfo=UTC), None)),
    ):
        pass
    for words in (["backup", str(tmp_path / "y.sql.gz")], ["restore", str(copy)]):
        result = call(*words, DOUBAN_PIPELINE_DATABASE_URL=sqlite_url)
        assert result.status == 2
        assert "for MariaDB and MySQL" in result.said
