"""The rig's own MariaDB leaves alone what lies beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine

from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.processes import RigError


def test_temporary_files_of_another_server_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = tmp_path / "common"
    common.mkdir()
    of_another = common / "#sql-temptable-1a2b-3-0.MAI"
    of_another.touch()
    monkeypatch.setenv("TMPDIR", str(common))
    small = {"innodb-buffer-pool-size": "16M", "innodb-log-file-size": "16M"}
    try:
        server = MariaDbServer(tmp_path / "server", options=small)
    except RigError as error:
        pytest.skip(f"the rig's own MariaDB is not tested: {error}")
    with server, create_engine(server.url).connect() as connection:
        assert connection.exec_driver_sql("SELECT @@tmpdir").scalar_one() == str(server.folder / "tmp")
    assert of_another.exists()
