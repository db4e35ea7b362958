"""A MySQL of the rig's own: Debian's stable releases have none, so its packages are unpacked into a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.processes import RigError

_PACKAGE, _SUITE = "mysql-server-core", "unstable"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_NEEDLESS = ("perl", "libperl")
"""Packages that only scripts for installing need."""
_FETCH_SECONDS = 180
_ROOT = "CREATE USER root@'127.0.0.1' IDENTIFIED BY ''; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;"
"""Without names of hosts, the usual root@localhost may use the socket alone."""


def unpacked() -> Path:
    """Return the folder with MySQL's server and all that it needs, fetched from Debian at the first call.

    The machine's own sources of packages stay as they are: apt is given a folder of its own.

    Raises:
        RigError: It cannot be had here.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "douban_pipeline_tests"
    root = cache / "mysql"
    if (root / "usr/sbin/mysqld").exists():
        return root
    for needed in ("apt-get", "dpkg-deb"):
        if shutil.which(needed) is None:
            raise RigError(f"MySQL cannot be fetched: {needed} is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as scratch:
        fetched = Path(scratch) / "mysql"
        for archive in _fetched(Path(scratch) / "apt"):
            _run("dpkg-deb", "-x", str(archive), str(fetched))
        try:
            fetched.rename(root)
        except OSError:  # another process was faster
            if not root.exists():
                raise
    return root


def _fetched(apt: Path) -> list[Path]:
    """Fetch the packages into a folder, and return their files."""
    for folder in ("lists/partial", "archives/partial", "preferences.d"):
        (apt / folder).mkdir(parents=True)
    (apt / "status").touch()  # as if nothing were installed: its C library is not the machine's
    (apt / "sources.list").write_text(f"deb [signed-by={_KEYS}] http://deb.debian.org/debian {_SUITE} main\n")
    places = {
        "Dir::State": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": apt / "preferences.d",
        "Dir::Etc::preferencesparts": apt / "preferences.d",
        "APT::Update::Post-Invoke-Success": "",
        "APT::Sandbox::User": "",
        "Acquire::Retries": 1,
        "Acquire::http::Timeout": 20,
    }
    options = [f"-o{name}={value}" for name, value in places.items()]
    _run("apt-get", *options, "-qq", "update")
    _run("apt-get", *options, "-qq", "-y", "--no-install-recommends", "--download-only", "install", _PACKAGE)
    return [file for file in (apt / "archives").glob("*.deb") if not file.name.startswith(_NEEDLESS)]


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise RigError(f"MySQL cannot be fetched: {command[0]} took longer than {_FETCH_SECONDS} s") from None
    if done.returncode:
        raise RigError(f"MySQL cannot be fetched: {done.stderr.strip()[-500:]}")


class MySqlServer(MariaDbServer):
    """A MySQL, otherwise as `MariaDbServer`."""

    name = "mysqld"
    _options: Mapping[str, str] = {
        "character-set-server": "utf8mb4",
        "innodb-buffer-pool-size": "128M",
        "innodb-flush-log-at-trx-commit": "0",
        "sync-binlog": "0",
        # The CMS itself writes into several tables without transactions at once, which GTIDs do not allow.
        "gtid-mode": "OFF",
        "enforce-gtid-consistency": "OFF",
        "max-connections": "200",
        "local-infile": "1",
        "performance-schema": "OFF",
        "mysqlx": "OFF",
        "secure-file-priv": "NULL",
    }

    def _command(self) -> list[str]:
        usr = unpacked() / "usr"
        libraries = usr / "lib/x86_64-linux-gnu"
        loader = libraries / "ld-linux-x86-64.so.2"  # of the C library among them, which is newer than the machine's
        places = {"basedir": usr, "lc-messages-dir": usr / "share/mysql", "plugin-dir": usr / "lib/mysql/plugin"}
        program = [str(loader), "--library-path", str(libraries), str(usr / "sbin/mysqld"), "--no-defaults"]
        return [*program, *(f"--{name}={place}" for name, place in places.items())]

    def _installing(self) -> list[str]:
        first = self.folder / "first.sql"
        first.write_text(_ROOT)
        data = [f"--datadir={self._data}", f"--tmpdir={self._temporary}", f"--init-file={first}"]
        return [*self._command(), *self._account(), "--initialize-insecure", *data]


if __name__ == "__main__":
    try:
        unpacked()
    except RigError as refusal:
        print(refusal, end="")  # noqa: T201 (for scripts)
