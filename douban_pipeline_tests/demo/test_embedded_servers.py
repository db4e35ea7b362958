"""The servers of wheels: other locales, folders in use, and servers that killed processes left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.demo.embedded_servers import embedded_graph

ELSEWHERE = """
import os, sys
from pathlib import Path
from sqlalchemy import create_engine, text
from douban_pipeline.demo.embedded_servers import embedded_postgres

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
from douban_pipeline.demo.embedded_servers import embedded_graph

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
