"""A real maccms10 of the rig's own, served by PHP on loopback, and its admin as a person uses it.

The CMS is no part of the project: its archive, its installer and its admin's client stand in `SCRIPTS`, beside the
checkout, and are used from there. It gets a folder, a port and a database of its own; of the server of that database it
leaves an account without rights.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import unescape
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
from sqlalchemy import URL, create_engine

from douban_pipeline_tests.harness.rig.dagster_stack import HOST, free_port
from douban_pipeline_tests.harness.rig.databases import MARIADB, drop_database, server_url
from douban_pipeline_tests.harness.rig.processes import Part, RigError, lives
from douban_pipeline_tests.harness.rig.waiting import wait_for

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT.parent / "shared" / "cms"
PROGRAMS = ("php", "mariadb", "curl")
EXTENSIONS = ("pdo_mysql", "mbstring", "curl", "gd", "dom", "zip")
SOURCE_HOST = "Localhost"
"""How the CMS's collector is told of a resource site on this machine: it refuses 127.0.0.1 and localhost as they are
written here, and needs no entry in the hosts file for this."""
INSTALL_SECONDS = 120.0
_STOP_SECONDS = 15.0
_AJAX = {"X-Requested-With": "XMLHttpRequest"}
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not exist: what the CMS asks of other machines fails at once."""
Form = dict[str, list[str]]
"""The fields of a form as they were when it was opened."""


def cms_refusal(server: URL) -> str | None:
    """Return why no CMS can be served with its database on ``server``, or None if one can."""
    if not (SCRIPTS / "start.sh").is_file():
        return f"no CMS in {SCRIPTS}"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (Debian: php-cli, mariadb-client, curl)"
    loaded = subprocess.run(["php", "-m"], capture_output=True, text=True, check=False).stdout.lower().split()
    lacking = [name for name in EXTENSIONS if name not in loaded]
    if lacking:
        return f"PHP lacks {', '.join(lacking)} (Debian: php-mysql, php-mbstring, php-curl, php-gd, php-xml, php-zip)"
    if (server.host, server.username, server.password or "") != (HOST, "root", ""):
        return f"its installer needs a MariaDB at {HOST} with root without a password"
    return None


class LiveCms(Part):
    """A CMS that was just installed, without any video."""

    admin: Any

    def __init__(self, folder: Path, server: URL, database: str, *, keeps_database: bool = False) -> None:
        self.folder, self._server, self._keeps_database = folder.absolute(), server, keeps_database
        self.url = server.set(database=database)
        self._port = free_port()
        self.base = f"http://{HOST}:{self._port}"

    def start(self) -> Self:
        """Install and serve it, and log in.

        Raises:
            RigError: It cannot be installed; the message holds what its installer said.
        """
        refusal = cms_refusal(self._server)
        if refusal is not None:
            raise RigError(refusal)
        with self._programs() as path:
            command = [str(SCRIPTS / "start.sh"), str(self.folder), str(self._port), str(self.url.database)]
            quiet = {"http_proxy": _NOWHERE, "https_proxy": _NOWHERE, "no_proxy": f"{HOST},localhost"}
            done = subprocess.run(
                command,
                env={**os.environ, **quiet, "PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=INSTALL_SECONDS,
            )
        if done.returncode or '"code":1,' not in done.stdout:
            raise RigError(f"the CMS was not installed: {done.stdout.strip()}\n{self.last_words()}")
        self._configure(("reg_num", "0"))  # else one visitor a day may register from an address
        module = _module("admin")
        module._Fields = _whole_texts(module._Fields)
        self.admin = module.Admin(self.base)
        return self

    @contextmanager
    def _programs(self) -> Iterator[str]:
        """Give a path of programs for the installer, which knows one port of the database's server alone."""
        port, path = self._server.port or 3306, os.environ.get("PATH", "")
        if port == 3306:
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="douban-cms-") as folder:
            for name, arguments in (
                ("mariadb", f'--port={port} "$@"'),
                ("curl", f'"${{@//hostport=3306/hostport={port}}}"'),
            ):
                script = Path(folder) / name
                script.write_text(f"#!/usr/bin/env bash\nexec {shlex.quote(str(shutil.which(name)))} {arguments}\n")
                script.chmod(0o700)
            yield f"{folder}{os.pathsep}{path}"

    def last_words(self) -> str:
        """Return the end of its log, and where the log is."""
        log = self.folder / "php.log"
        return f"{log.read_text(errors='replace')[-2000:].strip() if log.exists() else ''}\n(log: {log})"

    def stop(self) -> None:
        """Stop it, and delete its folder and its database; safe to repeat."""
        if hasattr(self, "admin"):
            self.admin.http.close()
        known = self.folder / "php.pid"
        if known.exists():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                served = psutil.Process(int(known.read_text()))
                family = [served, *served.children(recursive=True)]
                os.killpg(served.pid, signal.SIGTERM)  # a session of its own, with workers
                wait_for(lambda: not any(map(lives, family)), seconds=_STOP_SECONDS, poll=0.05)
                for process in filter(lives, family):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self._keeps_database:
            self._drop()

    def _drop(self) -> None:
        name = str(self.url.database)
        drop_database(self._server, name)
        engine = create_engine(self._server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for host in (HOST, "localhost"):
                with suppress(Exception):  # it was never granted
                    connection.exec_driver_sql(f"REVOKE ALL ON `{name}`.* FROM cms@'{host}'")
        engine.dispose()

    def set_rules(self, *, inrule: str | None = None, uprule: str | None = None) -> None:
        """Change the collector's rules: what makes a video the same, and which fields it updates."""
        rules = (("inrule", inrule), ("uprule", uprule))
        # Those of videos; further down other modules have rules of the same names.
        self._configure(*((name, value) for name, value in rules if value is not None), after="'psename' =>")

    def _configure(self, *values: tuple[str, str], after: str = "<?php") -> None:
        """Set values in the CMS's configuration, each where its name first stands behind ``after``."""
        config = self.folder / "application" / "extra" / "maccms.php"
        first, found, rest = config.read_text(encoding="utf-8").partition(after)
        for name, value in values:
            rest, count = re.subn(rf"'{name}' => '[^']*'", f"'{name}' => '{value}'", rest, count=1)
            if not found or not count:
                raise RigError(f"{config} has no {name}")
        config.write_text(first + found + rest, encoding="utf-8")

    def collect(self, flag: str, port: int, page: int = 1) -> str:
        """Run the collector over one page of a resource site on this machine; return what it prints."""
        printed = self.admin.collect(flag, f"http://{SOURCE_HOST}:{port}/api.php/provide/vod/", page)
        return re.sub(r"<[^>]*>", " ", printed)

    def restore(self, *vod_ids: int) -> dict[str, Any]:
        """Take videos out of the recycle bin, as the admin's button does."""
        return self._post("vod/restore", ids=",".join(map(str, vod_ids)))

    def purge(self, *vod_ids: int) -> dict[str, Any]:
        """Delete videos for good, past the recycle bin."""
        return self._post("vod/del", ids=",".join(map(str, vod_ids)), purge=1)

    def set_in_list(self, vod_id: int, column: str, value: object) -> dict[str, Any]:
        """Change a column of a video in the admin's list, where no form is opened."""
        return self._post("vod/field", ids=vod_id, col=column, val=value)

    def delete_comment(self, comment_id: int) -> dict[str, Any]:
        """Delete a comment."""
        return self._post("comment/del", ids=comment_id)

    def adopt(self, vod_id: int) -> dict[str, Any]:
        """Adopt the AI annotation of a video that waits, with all it says."""
        page = self.admin.http.get(f"{self.admin.at}/ai_annotation/index.html").text
        token = re.search(r'name="__token__" value="([0-9a-f]+)"', page)
        if token is None:
            raise RigError("the page of AI annotations has no token")
        return self._post("ai_annotation/adopt", mid=1, content_id=vod_id, __token__=token.group(1))

    def _post(self, page: str, **fields: Any) -> dict[str, Any]:
        answer = self.admin.http.post(f"{self.admin.at}/{page}.html", headers=self.admin.headers, data=fields)
        found: dict[str, Any] = answer.json()
        return found

    def visitor(self, name: str, password: str = "visitor1") -> httpx.Client:
        """Register a visitor, log in, and return the browser with the cookies."""
        browser = httpx.Client(base_url=self.base, headers=_AJAX, timeout=60, trust_env=False)
        given = {"user_name": name, "user_pwd": password, "user_pwd2": password}
        for page in ("reg", "login"):
            answer = browser.post(f"/index.php/user/{page}.html", data=given).json()
            if answer["code"] != 1:
                raise RigError(f"the CMS refuses a visitor: {answer['msg']}")
        return browser


def _whole_texts(fields: type[HTMLParser]) -> type[HTMLParser]:
    if hasattr(HTMLParser, "RCDATA_CONTENT_ELEMENTS"):
        return fields

    class Fields(fields):  # type: ignore[misc, valid-type]
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            super().handle_starttag(tag, attrs)
            if tag == "textarea":
                self.set_cdata_mode(tag)

        def handle_data(self, data: str) -> None:
            super().handle_data(unescape(data) if self.cdata_elem == "textarea" else data)

    return Fields


def _module(name: str) -> Any:
    """Load a module of `SCRIPTS`, and write nothing beside it."""
    spec = spec_from_file_location(f"cms_{name}", SCRIPTS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise RigError(f"no {name}.py in {SCRIPTS}")
    module = module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


if __name__ == "__main__":
    print(cms_refusal(server_url(MARIADB)) or "", end="")  # noqa: T201 (for scripts)
