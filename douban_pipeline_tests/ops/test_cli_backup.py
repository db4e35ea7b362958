"""Backups of our tables and reading them back, by the command line, on a real server."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import threading
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.system import system_named
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.ops import backup as backups
from douban_pipeline.ops.backup_file import PARTIAL, BackupHeader, backup_stream, file_in, verify_backup
from douban_pipeline.ops.restore import plan_restore, restore
from douban_pipeline_tests.harness.fixtures.calling import caller  # noqa: F401 (a fixture)
from douban_pipeline_tests.harness.fixtures.client_programs import client_program
from douban_pipeline_tests.harness.fixtures.full_disk import largest_file
from douban_pipeline_tests.harness.fixtures.library import (
    Library,
    build_library,
    fresh_mariadb,
    processes,
    video,
)

pytestmark = pytest.mark.mariadb
DOUBAN = system_named("douban")
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
    backups.back_up(DOUBAN, library.services, path, library.clock.now())
    return path


def restore_copy(library: Library, path: Path, **options) -> None:
    restore(DOUBAN, library.services, path, library.clock.now(), **{"keep_in": None, **options})


def test_what_was_saved_comes_back_to_the_byte_and_what_was_replaced_is_kept(library, tmp_path, call):
    settings = environment(library, tmp_path)
    path = tmp_path / "ours.jsonl.gz"
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


def save_in_a_process(url: str, path: Path, begun: Path) -> None:
    def hang(_value: object) -> object:
        begun.touch()
        threading.Event().wait()
        return None

    backups._packed = hang
    with Library(url, clock=SystemClock()) as library:
        saved(library, path)


def test_a_backup_that_is_killed_leaves_the_one_before(library, tmp_path):
    path = saved(library, tmp_path / "ours.jsonl.gz")
    before, begun = path.read_bytes(), tmp_path / "begun"
    process = processes().Process(target=save_in_a_process, args=(library.url, path, begun))
    process.start()
    while not begun.exists():
        assert process.is_alive()
    process.kill()
    process.join()
    assert path.read_bytes() == before
    assert verify_backup(saved(library, path)).prefix == "mac_"
    assert not (tmp_path / f"ours.jsonl.gz{PARTIAL}").exists()


def test_a_full_disk_is_reported_and_leaves_the_backup_before(library, tmp_path):
    path = saved(library, tmp_path / "ours.jsonl.gz")
    before = path.read_bytes()
    refused = pytest.raises(OperatingError, match="cannot be written: File too large; what was there before is kept")
    with largest_file(1000), refused:
        saved(library, path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["ours.jsonl.gz"]


def test_only_the_newest_backups_of_a_folder_are_kept(library, tmp_path, call):
    (tmp_path / "other.jsonl.gz").touch()
    for day in range(1, 5):
        file_in(tmp_path, "mac_", datetime(2026, 1, day, tzinfo=UTC)).touch()
    result = call("backup", str(tmp_path), "--keep", "2", **environment(library, tmp_path))
    assert result.status == 0, result.said
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 3
    assert {"other.jsonl.gz", "douban_pipeline-mac_20260104T000000Z.jsonl.gz"} < set(names)


def reported(library: Library, path: Path, **options) -> str:
    plan = plan_restore(DOUBAN, library.services, path, **{"replace": True, **options})
    return "; ".join(plan.refusals)


def test_what_must_not_be_restored_is_refused(library, tmp_path):
    path = saved(library, tmp_path / "ours.jsonl.gz")
    assert reported(library, path) == ""
    assert "add --replace" in reported(library, path, replace=False)

    def changed(old: str, new: str) -> Path:
        sql = gzip.decompress(path.read_bytes()).replace(old.encode(), new.encode(), 1)
        other = tmp_path / "other.jsonl.gz"
        other.write_bytes(gzip.compress(sql))
        return other

    head = migrations.tree_of("mac_").head
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
    path = saved(library, tmp_path / "ours.jsonl.gz")
    path.write_bytes(spoil(path.read_bytes()))
    before = checksums(library)
    with pytest.raises(OperatingError, match=said):
        restore_copy(library, path, replace=True)
    assert checksums(library) == before


@pytest.fixture
def sql_file(library, tmp_path) -> Path:
    """A backup as earlier releases wrote it, by the server's own program."""
    path, names = tmp_path / "earlier.sql.gz", sorted(table.name for table in library.tables.metadata.sorted_tables)
    options = ["--single-transaction", "--quick", "--hex-blob", "--no-tablespaces", "--skip-add-locks"]
    options += ["--skip-triggers", "--skip-tz-utc", str(library.engine.url.database)]
    with client_program(library.engine.url, "mariadb-dump", "mysqldump") as dump:
        done = subprocess.run([*dump, *options, *names, "mac_douban_version"], capture_output=True, check=True)
    newest = datetime(2026, 1, 1, tzinfo=UTC)
    header = BackupHeader("mac_", migrations.tree_of("mac_").head, "0.1.0", library.clock.now(), newest)
    with path.open("wb") as target, backup_stream(target, header) as packed:
        packed.write(done.stdout)
    return path


def test_the_sql_of_an_earlier_release_comes_back_to_the_byte(library, sql_file, tmp_path, call):
    before = checksums(library)
    write(library, 2, "2002")
    done = call("restore", str(sql_file), "--replace", "--no-dry-run", **environment(library, tmp_path))
    assert done.status == 0, done.said
    assert checksums(library) == before
    assert library.services.ready() is library.services
    [kept] = (tmp_path / "backups").iterdir()
    restore_copy(library, kept, replace=True)
    assert library.query(sa.select(library.tables.log.c.vod_id)) == [{"vod_id": 1}, {"vod_id": 2}]


def test_a_restore_of_sql_that_is_cut_off_leaves_nothing_that_would_be_worked_on(library, sql_file, tmp_path):
    before = checksums(library)
    broken = tmp_path / "broken.sql.gz"
    sql = gzip.decompress(sql_file.read_bytes()).replace(b"CREATE TABLE `mac_douban_task`", b"CREATE TROUBLE", 1)
    broken.write_bytes(gzip.compress(sql))
    with pytest.raises(OperatingError, match="Our tables are incomplete now"):
        restore_copy(library, broken, replace=True)
    with pytest.raises(DatabaseError, match="do not exist yet"):
        library.services.ready()
    restore_copy(library, sql_file, replace=True)
    assert checksums(library) == before
    assert library.services.ready() is library.services


def test_a_restore_that_is_cut_off_leaves_what_was_there(library, tmp_path):
    path = saved(library, tmp_path / "ours.jsonl.gz")
    write(library, 2, "2002")
    before = checksums(library)
    broken = tmp_path / "broken.jsonl.gz"
    head, last = gzip.decompress(path.read_bytes()).rsplit(b"[", 1)
    broken.write_bytes(gzip.compress(head + b"[0," + last))
    with pytest.raises(ValueError, match="zip"):
        restore_copy(library, broken, replace=True)
    assert checksums(library) == before


def test_the_demo_s_library_is_saved_and_restored_too_but_not_from_sql(sqlite_url, call, tmp_path):
    given = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    with build_library(sqlite_url, [video(1)], clock=SystemClock()) as library:
        write(library, 1, "2001")
        before = checksums(library)
        assert call("backup", str(tmp_path / "x.jsonl.gz"), **given).status == 0
        write(library, 1, "2002")
        done = call("restore", str(tmp_path / "x.jsonl.gz"), "--replace", "--no-dry-run", **given)
        assert done.status == 0, done.said
        assert checksums(library) == before
    sql = tmp_path / "x.sql.gz"
    header = BackupHeader("mac_", migrations.tree_of("mac_").head, "1.0", datetime(2026, 3, 1, tzinfo=UTC), None)
    with sql.open("wb") as target, backup_stream(target, header) as packed:
        packed.write(b"SELECT 1;\n")
    refused = call("restore", str(sql), "--replace", **given)
    assert (refused.status, "is for MariaDB and MySQL" in refused.said) == (1, True)
