"""Backs up the tables of any system with the database's own program; its own client restores them."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import inspect

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.console import plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.files import replaced
from douban_pipeline.core.grants import MYSQL
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.platform import Platform
from douban_pipeline.ops.installed import installed

_PACKAGES = {
    "mariadb-dump": "mariadb-client",
    "pg_dump": "postgresql-client",
    "sqlite3": "sqlite3",
}
"""Debian's packages of the programs."""
_ENDING = ".sql.gz"


def back_up(names: Sequence[str] | None, folder: Path, *, keep: int | None, only_print: bool) -> None:
    """Write each system's tables, one moment of all of them, to a new file in ``folder``; or print the commands.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        folder: Made if it is not there.
        keep: Number of backups to keep of each system; None keeps all.
        only_print: Print the commands, which ask for the password, and run none.

    Raises:
        OperatingError: There is nothing to save, the program is not installed, or it failed.
    """
    now = SystemClock().now()
    for system in installed(names):
        with system.opened() as services:
            command, environment = dump_command(services)
            file = folder / f"{system.name}-{now:%Y%m%dT%H%M%SZ}{_ENDING}"
            if only_print:
                asked = ["--password"] if environment else []
                plain(f"{shlex.join([command[0], *asked, *command[1:]])} | gzip > {shlex.quote(str(file))}")
                continue
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _dump(command, environment, file)
        plain(f"{file}: {system.name}, {file.stat().st_size / 1e6:.1f} MB")
        for old in sorted(folder.glob(f"{system.name}-*{_ENDING}"))[: -keep if keep else 0]:
            old.unlink()
            plain(terminal_text("removed {old}").format(old=old))


def dump_command(services: Platform) -> tuple[list[str], dict[str, str]]:
    """Return the command that prints a system's tables as SQL, and the environment with the password, if there is one.

    Raises:
        OperatingError: The tables do not exist.
    """
    url, tree = services.engine.url, services.tree
    with reading(services.engine) as connection:
        present = set(inspect(connection).get_table_names(tree.schema))
    tables = sorted({*(table.name for table in tree.metadata.sorted_tables), tree.version_table} & present)
    if tree.version_table not in present:
        raise OperatingError(
            terminal_text("the tables of {system} do not exist: there is nothing to save").format(system=tree.system)
        )
    database, place = url.database or "", [f"--host={url.host or 'localhost'}"]
    if url.port:
        place.append(f"--port={url.port}")
    backend = url.get_backend_name()
    if backend in MYSQL:
        program = "mysqldump" if shutil.which("mysqldump") else "mariadb-dump"
        one_moment = ["--single-transaction", "--no-tablespaces", "--default-character-set=utf8mb4"]
        if socket := url.query.get("unix_socket"):
            place = [f"--socket={socket}"]
        command = [program, *place, f"--user={url.username or ''}", *one_moment, database, *tables]
        return command, {"MYSQL_PWD": url.password} if url.password else {}
    if backend == "postgresql":
        chosen = [f"--schema={tree.schema}"] if tree.schema else [f"--table={name}" for name in tables]
        user = [f"--username={url.username}"] if url.username else []
        command = ["pg_dump", *place, *user, "--clean", "--if-exists", "--no-owner", *chosen, database]
        return command, {"PGPASSWORD": url.password} if url.password else {}
    return ["sqlite3", database, f".dump {' '.join(tables)}"], {}


def _dump(command: Sequence[str], environment: dict[str, str], file: Path) -> None:
    """Run a command and pack what it prints into a file, which is there whole or not at all."""
    program = command[0]
    if shutil.which(program) is None:
        raise OperatingError(
            terminal_text("{program} is not installed: install {package}").format(
                program=program, package=_PACKAGES[program]
            )
        )
    with replaced(file, mode=0o600) as part, gzip.open(part, "wb") as packed:
        with subprocess.Popen(  # noqa: S603 (no shell)
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        ) as running:
            try:
                shutil.copyfileobj(running.stdout, packed)  # type: ignore[arg-type]
            except BaseException:
                running.kill()
                raise
        if running.returncode:
            raise OperatingError(
                terminal_text("{program} failed ({status}); what it printed stands above").format(
                    program=program, status=running.returncode
                )
            )
