"""The servers for trying, and the commands on them: nothing is set, everything is in HOME."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.ops.cli import app
from douban_pipeline.tmdb import kept_servers
from douban_pipeline.tmdb.embedded import embedded_graph, is_running
from douban_pipeline.tmdb.kept_servers import kept_postgres, running, stop
from douban_pipeline_tests.conftest import end_kept_servers
from douban_pipeline_tests.tmdb.given import RECORDED


@pytest.mark.long
def test_without_settings_the_store_is_in_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOUBAN_PIPELINE_TMDB_DATABASE_URL", raising=False)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["tmdb", *arguments])
        assert result.exit_code == 0, (result.output, result.exception)
        return result.output

    run("setup", "--no-graph")
    assert json.loads(run("load", str(RECORDED), "--json"))["summary"]["new"] == 3
    assert "postgres" in run("stop")
    assert "none ran" in run("stop")


def test_keepers_that_tests_leave_are_ended_with_the_run(monkeypatch: pytest.MonkeyPatch):
    ended, running = subprocess.Popen(["true"]), subprocess.Popen(["sleep", "600"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    left = [ended, running]
    monkeypatch.setattr(kept_servers, "_started", left)
    end_kept_servers()
    assert (ended.returncode, running.returncode, left) == (0, -signal.SIGTERM, [])


KEPT = """
import os, sys
from pathlib import Path
import psycopg
from douban_pipeline.tmdb.kept_servers import kept_postgres

with kept_postgres(Path(sys.argv[1])) as url, psycopg.connect(url) as connection:
    print(connection.execute("SELECT pg_postmaster_start_time()").fetchone()[0], flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_a_server_in_home_stays_for_the_next_command_and_whoever_is_killed_breaks_nothing():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        folder = Path(home) / "tmdb" / "postgres"

        def count() -> int:
            with kept_postgres(folder) as url, psycopg.connect(url) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS used (at timestamptz DEFAULT now())")
                connection.execute("INSERT INTO used DEFAULT VALUES")
                row = connection.execute("SELECT count(*), pg_postmaster_start_time() FROM used").fetchone()
            assert row is not None
            started.append(str(row[1]))
            return int(row[0])

        started: list[str] = []
        command = [sys.executable, "-c", KEPT, str(folder)]
        users = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        together = {user.stdout.readline().strip() for user in users if user.stdout is not None}
        assert len(together) == 1, "two that begin at once use one server"
        for user in users:
            user.kill()
            user.communicate()
        assert (count(), running(Path(home))) == (1, ["postgres"])
        assert together == {*started}
        os.kill(int((folder.parent / "postgres.keeper").read_text()), signal.SIGKILL)
        while running(Path(home)):
            pass
        assert count() == 2
        os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        while is_running(folder):
            pass
        assert count() == 3
        assert stop(Path(home)) == ["postgres"]
        with kept_postgres(folder, idle=0):
            assert running(Path(home)) == ["postgres"]
        kept_servers._started[-1].wait(30)
        assert (running(Path(home)), (folder / "postmaster.pid").exists()) == ([], False)


ELSEWHERE = """
import os, sys
from pathlib import Path
from sqlalchemy import create_engine, text
from douban_pipeline.tmdb.embedded import embedded_postgres

with embedded_postgres(Path(sys.argv[1])) as url, create_engine(url).connect() as connection:
    print(connection.execute(text("SHOW server_encoding")).scalar_one(), os.environ["LC_ALL"])
"""


@pytest.mark.long
def test_postgres_starts_where_the_locale_is_not_installed(tmp_path: Path):
    given = {**os.environ, "LANG": "xx_YY.UTF-8", "LC_ALL": "xx_YY.UTF-8"}
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "postgres")]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "UTF8 xx_YY.UTF-8\n"), done.stderr


KILLED = """
import sys
from pathlib import Path
from douban_pipeline.tmdb.embedded import embedded_graph

with embedded_graph(Path(sys.argv[1]), memory_mb=256):
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_a_graph_in_use_is_refused_and_one_that_a_killed_process_left_is_taken_over(tmp_path: Path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "graph")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        with pytest.raises(DatabaseError, match="another process uses the graph"), embedded_graph(tmp_path / "graph"):
            pass
        left = int((tmp_path / "graph" / "pid").read_text())
        os.kill(process.pid, signal.SIGKILL)
    with embedded_graph(tmp_path / "graph", memory_mb=256):
        assert not _runs(left, tmp_path)


def _runs(pid: int, folder: Path) -> bool:
    try:
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
