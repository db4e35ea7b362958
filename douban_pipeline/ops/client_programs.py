"""Calls the client programs of MariaDB and MySQL without a password on the command line."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL

from douban_pipeline.core.ui.language import said

DUMP = ("mariadb-dump", "mysqldump")
CLIENT = ("mariadb", "mysql")
_TLS = {"ssl_ca": "ssl-ca", "ssl_cert": "ssl-cert", "ssl_key": "ssl-key", "unix_socket": "socket"}


class OperatingError(Exception):
    """An operator's command failed; the message gives the reason and the remedy."""


def program(names: tuple[str, ...]) -> str:
    """Return the path of the first of ``names`` that is installed.

    Raises:
        OperatingError: None is installed.
    """
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise OperatingError(
        said(
            f"没有安装 {'、'.join(names)} 中的任何一个：请安装软件包 mariadb-client",
            f"neither {' nor '.join(names)} is installed: install the package mariadb-client",
        )
    )


def require_server(url: URL) -> None:
    """Check that the client programs can connect to the server.

    Raises:
        OperatingError: The URL does not name a MariaDB or MySQL server.
    """
    if url.get_backend_name() == "sqlite":
        raise OperatingError(
            said(
                "此命令用于 MariaDB 和 MySQL；演示片库是一个 SQLite 文件：在没有程序运行时复制它即可",
                "this is for MariaDB and MySQL; the library of the demo is one SQLite file: copy it while nothing runs",
            )
        )


@contextmanager
def options_file(url: URL) -> Iterator[Path]:
    """Yield a file with the connection parameters of ``url`` that only this user can read; delete it at the end.

    It must be passed as ``--defaults-file``, the first option: other files, such as a ``~/.my.cnf`` with another
    password, are then not read.

    Raises:
        OperatingError: The URL does not name a MariaDB or MySQL server.
    """
    require_server(url)
    options = {"user": url.username, "password": url.password, "default-character-set": "utf8mb4"}
    options |= {_TLS[name]: value for name, value in url.query.items() if name in _TLS and isinstance(value, str)}
    if "socket" not in options:
        # Without the protocol the programs use a socket for "localhost", unlike the pipeline's driver.
        options |= {"protocol": "tcp", "host": url.host or "127.0.0.1", "port": str(url.port or 3306)}
    lines = [f"{name}={_quoted(value)}" for name, value in options.items() if value is not None]
    # Oracle's mysqldump needs privileges and writes statements that MariaDB's does not; "loose" options may be unknown.
    lines += ["[mysqldump]", "loose-set-gtid-purged=OFF", "loose-column-statistics=0"]
    with tempfile.TemporaryDirectory(prefix="douban_pipeline_") as folder:
        path = Path(folder) / "client.cnf"
        path.touch(mode=0o600)
        path.write_text("\n".join(["[client]", *lines, ""]), encoding="utf-8")
        yield path


def _quoted(value: str) -> str:
    if "\n" in value or "\r" in value:
        raise OperatingError(
            said(
                "数据库密码含有换行，其客户端程序无法读取",
                "the database's password holds a line break, which its client programs cannot read",
            )
        )
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
