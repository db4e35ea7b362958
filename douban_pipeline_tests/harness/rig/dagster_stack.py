"""Dagster as in production: webserver, daemon and code location as processes of their own, on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import dagster as dg
import httpx
import psutil
import yaml
from sqlalchemy import URL

from douban_pipeline.dagster_kit.runs import set_pool_limits
from douban_pipeline.douban.resources import POOL_LIMITS
from douban_pipeline_tests.harness.rig.databases import POSTGRES, scratch_database
from douban_pipeline_tests.harness.rig.processes import Part, Process, RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for

START_SECONDS = 300.0
"""How long a part may take to start: a crowded machine takes its time."""
HOST = "127.0.0.1"
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")
_UNDER_WAY = ("REQUESTED", "CANCELING", "FAILING")
LOCATION = "douban_pipeline"
_DOUBAN = {LOCATION: "douban_pipeline.definitions"}
REPOSITORY = "__repository__"
PROJECT = Path(__file__).resolve().parents[3]
"""The checkout: the rig runs from one, as the demo does."""

Storage = Literal["sqlite", "postgres"]
_OPENING = threading.Lock()
"""Held while an instance is opened: where it stores is read from this process's environment."""


def free_port() -> int:
    """Return a port of loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def reserved_port() -> socket.socket:
    """Return a socket that holds a port of loopback until it is closed, so that no other process is given it.

    A server that sets SO_REUSEADDR, as MariaDB does, can listen at the port all the same.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind((HOST, 0))
    return reservation


class DagsterStack(Part):
    """Dagster's processes over an instance of their own."""

    def __init__(
        self,
        home: Path,
        settings: Mapping[str, str],
        *,
        storage: Storage = "postgres",
        server: URL | None = None,
        changes: Mapping[str, Any] | None = None,
        daemon: bool = True,
        webserver: bool = True,
        locations: Mapping[str, str] = _DOUBAN,
        own: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        pools: Mapping[str, int] = POOL_LIMITS,
    ) -> None:
        self.home, self.storage, self._pools, self._own = home, storage, pools, own
        self._changes, self._server = dict(changes or {}), server
        self._wanted = (daemon, webserver)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.environment = {
            **kept,
            "DAGSTER_HOME": str(home),
            "PYTHONUNBUFFERED": "1",
            **settings,
        }
        self.port = free_port()
        self._code_ports = {name: free_port() for name in locations}
        self._closing = ExitStack()
        self.codes: dict[str, Process] = {}
        for name, module in locations.items():
            code = ["code-server", "start", "-m", module, "--location-name", name]
            called = "code" if name == LOCATION else f"code-{name}"
            self.codes[name] = self._process(called, "dagster", *code, "-h", HOST, "-p", str(self._code_ports[name]))
        self.code = next(iter(self.codes.values()))
        workspace = ["-w", str(home / "workspace.yaml")]
        self.daemon = self._process("daemon", "dagster._daemon", "run", *workspace)
        where = ["-h", HOST, "-p", str(self.port)]
        self.webserver = self._process("webserver", "dagster_webserver", *where, *_pool_options(), *workspace)

    def _process(self, name: str, module: str, *arguments: str) -> Process:
        return Process(
            name,
            [sys.executable, "-m", module, *arguments],
            # Not "logs": what lies in that folder of DAGSTER_HOME the webserver takes for telemetry and sends away.
            log=self.home / "output" / f"{name}.log",
            environment=self.environment,
            directory=self.home,
        )

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> Self:
        """Start everything and wait until it answers.

        Raises:
            RigError: A part did not start.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        if self.storage == "postgres":
            self._use_postgres(self._closing.enter_context(scratch_database(self._server or POSTGRES, "dagster")))
        self._write_configuration()
        with self.instance() as instance:
            set_pool_limits(instance, self._pools)
        daemon, webserver = self._wanted
        codes = [(code, True) for code in self.codes.values()]
        for process, wanted in (*codes, (self.webserver, webserver), (self.daemon, daemon)):
            if wanted:
                self._closing.callback(process.stop)
                process.start()
        for name, code in self.codes.items():
            code.wait_until(partial(_listens, self._code_ports[name]), seconds=START_SECONDS)
        if webserver:
            self.webserver.wait_until(self._answers, seconds=START_SECONDS)
        return self

    def _use_postgres(self, url: URL) -> None:
        self.environment |= {
            "DAGSTER_PG_HOST": url.host or HOST,
            "DAGSTER_PG_PORT": str(url.port or 5432),
            "DAGSTER_PG_DB": url.database or "",
            "DAGSTER_PG_USERNAME": url.username or "",
            "DAGSTER_PG_PASSWORD": url.password or "",
        }
        for name, code in self.codes.items():
            code.give({**self.environment, **self._own.get(name, {})})
        for process in (self.daemon, self.webserver):
            process.give(self.environment)

    def _write_configuration(self) -> None:
        source = PROJECT / "deploy" / "dagster.yaml" if self.storage == "postgres" else PROJECT / "dagster.yaml"
        if self._changes:
            merged = {**yaml.safe_load(source.read_text()), **self._changes}
            (self.home / "dagster.yaml").write_text(yaml.safe_dump(merged, allow_unicode=True))
        else:
            shutil.copyfile(source, self.home / "dagster.yaml")
        servers = [
            {"grpc_server": {"host": HOST, "port": port, "location_name": name}}
            for name, port in self._code_ports.items()
        ]
        (self.home / "workspace.yaml").write_text(yaml.safe_dump({"load_from": servers}))

    def instance(self) -> AbstractContextManager[dg.DagsterInstance]:
        """Open its instance in this process. The variables of its storage are put into this process's environment."""
        names = [name for name in self.environment if name.startswith("DAGSTER_")]
        with _OPENING:
            os.environ.update({name: self.environment[name] for name in names})
            return dg.DagsterInstance.from_config(str(self.home))

    def _answers(self) -> bool:
        try:
            found = self.ask("{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }")
        except (httpx.HTTPError, RigError):
            return False
        return len(found["repositoriesOrError"].get("nodes") or ()) == len(self.codes)

    def ask(self, query: str, variables: Mapping[str, Any] | None = None, *, seconds: float = 60) -> dict[str, Any]:
        """Ask the webserver by GraphQL and return its ``data``.

        Raises:
            RigError: It answered with errors.
            httpx.HTTPError: It did not answer.
        """
        answer = httpx.post(
            f"{self.url}/graphql", json={"query": query, "variables": dict(variables or {})}, timeout=seconds
        )
        found = answer.json()
        if found.get("errors"):
            raise RigError(f"GraphQL: {json.dumps(found['errors'], ensure_ascii=False)[:2000]}")
        return dict(found["data"])

    def launch(
        self,
        job: str,
        *,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> str:
        """Launch a job of a location, the first if none is named, as the UI does; return the run's id.

        Raises:
            RigError: It was refused.
        """
        where = location or next(iter(self.codes))
        selector = {"repositoryLocationName": where, "repositoryName": REPOSITORY, "jobName": job}
        query = """
            mutation Launch($params: ExecutionParams!) {
              launchPipelineExecution(executionParams: $params) {
                __typename
                ... on LaunchRunSuccess { run { runId } }
                ... on PythonError { message }
                ... on RunConfigValidationInvalid { errors { message } }
              }
            }"""
        params = {
            "selector": selector,
            "runConfigData": json.dumps(config or {}),
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in (tags or {}).items()]},
        }
        found = self.ask(query, {"params": params})["launchPipelineExecution"]
        if found["__typename"] != "LaunchRunSuccess":
            raise RigError(f"{job} was not launched: {found}")
        return str(found["run"]["runId"])

    def launch_backfill(self, assets: Sequence[str], partitions: Sequence[str]) -> str:
        """Launch a backfill of ``assets`` over ``partitions`` as the asset page does; return its id.

        Raises:
            RigError: It was refused.
        """
        query = """
            mutation Backfill($params: LaunchBackfillParams!) {
              launchPartitionBackfill(backfillParams: $params) {
                __typename
                ... on LaunchBackfillSuccess { backfillId }
                ... on PythonError { message }
              }
            }"""
        params = {"assetSelection": [{"path": [name]} for name in assets], "partitionNames": list(partitions)}
        found = self.ask(query, {"params": params})["launchPartitionBackfill"]
        if found["__typename"] != "LaunchBackfillSuccess":
            raise RigError(f"the backfill was not launched: {found}")
        return str(found["backfillId"])

    def wait_for_backfill(self, backfill_id: str, *, seconds: float) -> str:
        """Wait until a backfill has ended; return its status.

        Raises:
            RigError: It goes on after ``seconds``.
        """
        with self.instance() as instance:

            def ended() -> str | None:
                backfill = instance.get_backfill(backfill_id)
                return None if backfill is None or backfill.status.name in _UNDER_WAY else backfill.status.name

            status = wait_for(ended, seconds=seconds, poll=0.5)
        if status is None:
            raise RigError(f"backfill {backfill_id} goes on after {seconds:.0f} s")
        return status

    def run_workers(self, location: str | None = None, *, starting: bool = False) -> dict[str, psutil.Process]:
        """Return the processes at work on runs of a location, the first if none is named, by run id.

        Those of Dagster's own launcher alone are found; with ``starting``, also those that load their code still.
        """
        statuses = [dg.DagsterRunStatus.STARTED, *([dg.DagsterRunStatus.STARTING] if starting else [])]
        found: dict[str, psutil.Process] = {}
        with self.instance() as instance:
            runs = instance.get_runs(filters=dg.RunsFilter(statuses=statuses))
            pids = {run.run_id: _pid_of(instance, run.run_id) for run in runs}
        code = self.codes[location] if location else self.code
        family = {process.pid: process for process in code.family()}
        for run_id, pid in pids.items():
            if pid in family:
                found[run_id] = family[pid]
        return found

    def stop(self) -> None:
        """Stop everything and drop its database; safe to repeat."""
        self._closing.close()


def _pool_options() -> list[str]:
    unit = PROJECT / "deploy" / "systemd" / "douban-pipeline-webserver.service"
    return [part for option in re.findall(r"--db-\S+ \S+", unit.read_text()) for part in option.split()]


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _pid_of(instance: dg.DagsterInstance, run_id: str) -> int | None:
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        found = re.search(r"Started process for run \(pid: (\d+)\)", entry.message or "")
        if found:
            return int(found[1])
    return None
