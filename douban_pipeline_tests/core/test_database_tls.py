"""Connections to a MariaDB that accepts encrypted ones alone are encrypted, and verified where the URL names a CA."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.processes import RigError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="TLS is not tested: openssl is not installed")


def certify(folder: Path, name: str) -> tuple[Path, Path]:
    """Return a new key and the certificate, signed by itself, of 127.0.0.1."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject]
    subprocess.run([*new, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return key, certificate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def encrypting(folder: Path) -> Iterator[sa.URL]:
    """The URL of a MariaDB that refuses connections without TLS."""
    key, certificate = certify(folder, "server")
    small = {"innodb-buffer-pool-size": "16M", "innodb-log-file-size": "16M", "innodb-flush-log-at-trx-commit": "0"}
    tls = {"ssl-cert": str(certificate), "ssl-key": str(key), "require-secure-transport": "ON"}
    try:
        server = MariaDbServer(folder / "server", options={**small, **tls})
    except RigError as error:
        pytest.skip(f"TLS is not tested: {error}")
    try:
        yield server.start().url
    finally:
        server.stop()


def ciphers(url: sa.URL) -> list[str]:
    """Return how two connections of one engine are encrypted, as the server tells it; empty for one that is not."""
    engine = open_engine(url)
    try:
        with engine.connect() as first, engine.connect() as second:
            status = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"
            return [connection.exec_driver_sql(status).one()[1] for connection in (first, second)]
    finally:
        engine.dispose()


def test_a_server_that_offers_tls_is_spoken_to_in_it(encrypting):
    assert all(ciphers(encrypting))


def test_the_ca_that_the_url_names_is_the_only_one_trusted(encrypting, folder):
    _, other = certify(folder, "other")
    assert all(ciphers(encrypting.update_query_dict({"ssl_ca": str(folder / "server.pem")})))
    with pytest.raises(OperationalError, match="CERTIFICATE_VERIFY_FAILED"):
        ciphers(encrypting.update_query_dict({"ssl_ca": str(other)}))


def test_the_context_for_servers_without_a_ca_is_made_once(encrypting):
    engine = open_engine(encrypting)
    with engine.connect() as first, engine.connect() as second:
        assert first.connection.ctx is second.connection.ctx
    engine.dispose()
