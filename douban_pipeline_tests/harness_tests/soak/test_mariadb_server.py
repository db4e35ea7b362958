"""The rig's own MariaDB: killed with -9 it comes back on its port with what was committed, MyISAM tables in order."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import DataError, OperationalError

from douban_pipeline_tests.conftest import missing
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.processes import RigError


def test_a_killed_server_comes_back_on_its_port_with_its_data(tmp_path: Path):
    try:
        server = MariaDbServer(tmp_path / "db")
    except RigError as error:
        missing("mariadb", str(error))
    with server:
        url, first = server.create("library"), server.process.pid
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB")
            connection.exec_driver_sql(
                "CREATE TABLE vod (id INT PRIMARY KEY, name VARCHAR(20), KEY (name)) ENGINE=MyISAM"
            )
            connection.exec_driver_sql("INSERT INTO kept VALUES (1)")
            connection.exec_driver_sql("INSERT INTO vod VALUES (1, '三体')")
        with engine.connect() as connection:  # left open: the table is marked as in use when the server dies
            connection.exec_driver_sql("INSERT INTO kept VALUES (2)")
            connection.exec_driver_sql("INSERT INTO vod VALUES (2, '狂飙')")
            server.kill()
            assert not server.answers
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", server.port))  # nobody else is given its port while it is away
            with pytest.raises(OperationalError):
                connection.exec_driver_sql("SELECT 1")
            connection.invalidate()
        server.start()
        assert server.process.pid != first
        assert server.url.port == url.port
        with engine.connect() as connection:
            # What was not committed is gone; MyISAM knows no commit and keeps it.
            assert connection.exec_driver_sql("SELECT id FROM kept").scalars().all() == [1]
            found = connection.exec_driver_sql("SELECT id FROM vod WHERE name >= '' ORDER BY id").scalars().all()
            assert found == [1, 2]
            with pytest.raises(DataError, match="1366"):  # strict, as a site's server is
                connection.exec_driver_sql("INSERT INTO kept VALUES ('x')")
        engine.dispose()
        with pytest.raises(RigError), MariaDbServer(tmp_path / "second", options={"port": str(server.port)}):
            pytest.fail("another server's answer at the port was taken for its own")
    assert not server.process.alive
