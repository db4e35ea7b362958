"""Our tables are saved with the databases' own programs, and come back with their clients."""

from __future__ import annotations

import gzip
import os
import shlex
import stat
import subprocess
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import URL, make_url

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import open_engine
from douban_pipeline.feeds.store import tables
from douban_pipeline.feeds.store.entries import store_entries
from douban_pipeline.feeds.types import Entry
from douban_pipeline_tests.harness.fixtures.calling import (
    Caller,
    caller,  # noqa: F401 (a fixture)
    url_setting,
)
from douban_pipeline_tests.harness.fixtures.client_programs import client_program
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import build_library, video


def fill(engine: sa.Engine, number: int) -> None:
    """Put a source with an entry and a raw answer into the feeds' tables, or another one beside them."""
    now, name = 1_700_000_000, f"s{number}"
    with engine.begin() as connection:
        row = {"kind": "rss", "url": f"http://e.com/{number}", "url_hash": name, "host": "e.com"}
        row |= {"title": "狂飙 😀 \\n'", "options": {"path": "a.b"}, "created_at": now, "updated_at": now}
        connection.execute(sa.insert(tables.source), {"source_id": name, **row})
        connection.execute(sa.insert(tables.stats), {"source_id": name, "mean_gap": 1.5, "why": {"bound": "accrual"}})
        store_entries(connection, name, [Entry(f"g{number}", "http://e.com/a", "标题", "", now)], now)
    Archive(engine, tables.snapshot, FakeClock()).put("e.com", name, 200, bytes(range(256)), "t")


def content(engine: sa.Engine) -> dict[str, list[str]]:
    with engine.connect() as connection:
        every = tables.metadata.sorted_tables
        return {table.name: sorted(map(repr, connection.execute(sa.select(table)))) for table in every}


def restore(url: URL, saved: Path) -> None:
    """Run the database's own client on a backup, as the manual says."""
    sql = gzip.decompress(saved.read_bytes())
    if url.get_backend_name() == "sqlite":
        Path(str(url.database)).unlink()
        subprocess.run(["sqlite3", str(url.database)], input=sql, check=True)
    elif url.get_backend_name() == "postgresql":
        place = url.set(drivername="postgresql").render_as_string(hide_password=False)
        subprocess.run(["psql", "--quiet", "--set=ON_ERROR_STOP=1", place], input=sql, check=True, capture_output=True)
    else:
        with client_program(url, "mariadb", "mysql") as client:
            subprocess.run([*client, str(url.database)], input=sql, check=True)


def test_what_was_saved_comes_back_and_nothing_else_is_touched(any_database_url, tmp_path, call: Caller):
    engine = open_engine(any_database_url)
    given = {url_setting("feeds"): any_database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    given["DOUBAN_PIPELINE_SYSTEMS"] = "feeds"
    assert call("setup", **given).status == 0
    fill(engine, 1)
    others = sa.Table("mac_vod", sa.MetaData(), sa.Column("vod_id", sa.Integer, primary_key=True))
    others.create(engine)
    before, folder = content(engine), tmp_path / "saved"
    done = call("backup", str(folder), **given)
    assert done.status == 0, done.said
    [saved] = folder.iterdir()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert "mac_vod" not in gzip.decompress(saved.read_bytes()).decode(errors="replace")
    fill(engine, 2)
    assert content(engine) != before
    url = engine.url
    engine.dispose()
    restore(url, saved)
    assert content(engine) == before
    fill(engine, 3)  # new rows get numbers of their own
    engine.dispose()


def test_the_printed_command_asks_for_the_password_and_writes_the_same(mariadb_url, tmp_path, call: Caller):
    given = {"DOUBAN_PIPELINE_DATABASE_URL": mariadb_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    assert "the tables of douban do not exist" in call("backup", str(tmp_path), "--print", **given).said
    assert call("upgrade", **given).status == 0
    assert call("backup", str(tmp_path / "run"), **given).status == 0
    printed = call("backup", str(tmp_path), "--print", **given).said.strip()
    assert "--password" not in printed, "this account has none"
    subprocess.run(["sh", "-c", printed], check=True)
    [run], [by_hand] = (tmp_path / "run").iterdir(), tmp_path.glob("douban-*")
    lines = [
        [line for line in gzip.decompress(each.read_bytes()).splitlines() if not line.startswith(b"--")]
        for each in (run, by_hand)
    ]
    assert lines[0] == lines[1]
    assert b"CREATE TABLE `mac_douban_log`" in b"\n".join(lines[0])


def test_only_the_newest_are_kept_and_a_failed_one_leaves_nothing(tmp_path, call: Caller, monkeypatch):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_SYSTEMS": "feeds"}
    assert call("setup", **given).status == 0
    folder = tmp_path / "saved"
    folder.mkdir()
    old = [folder / f"feeds-2020010{day}T000000Z.sql.gz" for day in (1, 2, 3)]
    for each in (*old, folder / "feeds-mine.sql"):
        each.touch()
    assert call("backup", str(folder), "--keep", "2", **given).status == 0
    left = sorted(path.name for path in folder.iterdir())
    assert left[0] == "feeds-20200103T000000Z.sql.gz"
    assert (len(left), left[2]) == (3, "feeds-mine.sql")
    programs = tmp_path / "bin"
    programs.mkdir()
    broken = programs / "sqlite3"
    broken.write_text("#!/bin/sh\necho half\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    failed = call("backup", str(folder), **given)
    assert (failed.status, "sqlite3 failed (3)" in failed.said) == (2, True), failed.said
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    absent = call("backup", str(folder), **given)
    assert (absent.status, "sqlite3 is not installed: install sqlite3" in absent.said) == (2, True)
    assert sorted(path.name for path in folder.iterdir()) == left


@pytest.mark.mariadb
def test_an_account_with_just_the_printed_rights_suffices_and_no_command_line_has_its_password(
    mariadb_url, tmp_path, call: Caller, monkeypatch
):
    """Other users of the machine can read command lines."""
    user, folder = f"dt_{uuid.uuid4().hex[:10]}", tmp_path / "saved"
    url = make_url(mariadb_url).set(username=user, password="geheim").render_as_string(hide_password=False)
    given = {"DOUBAN_PIPELINE_DATABASE_URL": url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    programs = tmp_path / "bin"
    programs.mkdir()
    with build_library(mariadb_url, [video(1)]) as library, library.engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE USER {user}@'%%' IDENTIFIED BY 'geheim'")
        try:
            for line in call(
                "grants", "--user", user, "--host", "%", DOUBAN_PIPELINE_DATABASE_URL=mariadb_url
            ).said.splitlines():
                if not line.startswith("--"):
                    connection.exec_driver_sql(line.rstrip(";").replace("%", "%%"))
            done = call("backup", str(folder), **given)
            assert done.status == 0, done.said
            [saved] = folder.iterdir()
            assert b"INSERT INTO `mac_douban_version`" in gzip.decompress(saved.read_bytes())
            for name in ("mysqldump", "mariadb-dump"):
                (programs / name).write_text('#!/bin/sh\necho "$MYSQL_PWD" "$@"\n')
                (programs / name).chmod(0o755)
            monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
            assert call("backup", str(folder), "--keep", "1", **given).status == 0
            printed = call("backup", str(folder), "--print", **given).said
        finally:
            connection.exec_driver_sql(f"DROP USER {user}@'%%'")
    [saved] = folder.iterdir()
    password, *arguments = shlex.split(gzip.decompress(saved.read_bytes()).decode())
    assert password == "geheim"
    assert f"--user={user}" in arguments
    assert "geheim" not in " ".join(arguments) + printed
    assert " --password " in printed
