"""What the systems beside Douban's stand on in a soak: a MariaDB, a Dagster with a location each, and processes."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import dagster as dg
import httpx
from pydantic import SecretStr

from douban_pipeline.core.settings_base import BASE_PREFIX, SystemSettings
from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline.demo.setup import pool_limits
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.parts import Part
from douban_pipeline_tests.harness.rig.processes import Process, RigError
from douban_pipeline_tests.harness.soak.world import Scale

Say = Callable[[str], None]


class Ground(Part):
    """A MariaDB of its own at once, and Dagster once all systems have said what their processes need.

    Attributes:
        scale: How large the soak is.
        scratch: The folder of everything.
        server: The database server.
        stack: Dagster; only after `start_dagster`.
        instance: Its instance, as this process has it open.

    Args:
        scale: How large the soak is.
        scratch: An empty folder.
        say: Told what is being done.
    """

    stack: DagsterStack
    instance: dg.DagsterInstance

    def __init__(self, scale: Scale, scratch: Path, say: Say) -> None:
        self.scale, self.scratch, self.say = scale, scratch, say
        self.server = MariaDbServer(scratch / "mariadb")
        self._closing = ExitStack()

    @property
    def home(self) -> Path:
        """`DOUBAN_PIPELINE_HOME` of every process."""
        return self.scratch / "home"

    def start(self) -> Self:
        """Start the database server.

        Raises:
            RigError: It did not start.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        self._closing.enter_context(self.server)
        return self

    def start_dagster(self, environments: Mapping[str, Mapping[str, str]]) -> None:
        """Start Dagster with a location for each system.

        Args:
            environments: Variables that name what `database` and others gave, by system: what two of them set, such as
                the address of WeRSS, each has its own of.

        Raises:
            RigError: A part did not start.
        """
        modules = {name: f"douban_pipeline.locations.{name}" for name in environments}
        given = {**dict(ChainMap(*map(dict, environments.values()))), f"{BASE_PREFIX}HOME": str(self.home)}
        # A system's environment names its database alone; the CMS's, in the environment of this process, is not theirs.
        self.stack = DagsterStack(
            self.scratch / "dagster", given, locations=modules, own=environments, pools=pool_limits()
        )
        self._closing.enter_context(self.stack)
        self.instance = self._closing.enter_context(self.stack.instance())

    def stop(self) -> None:
        """Stop all of it; safe to repeat."""
        self._closing.close()

    def database(self, name: str) -> SecretStr:
        """Make a database, and return its address."""
        url = self.server.create(name).update_query_dict({"charset": "utf8mb4"})
        return SecretStr(url.render_as_string(hide_password=False))

    def keep(self, part: Part) -> None:
        """Start a part, and stop it with everything else."""
        self._closing.enter_context(part)

    def program(self, name: str, *command: str) -> Process:
        """Return a program of another's, not started yet, with its log among the others."""
        environment = {"PATH": os.environ.get("PATH", ""), "LANG": "C"}
        return Process(name, command, log=self._log(name), environment=environment, directory=self.scratch)

    def service(self, name: str, *command: str) -> Process:
        """Return a process with the environment of Dagster's, not started yet."""
        return Process(name, command, log=self._log(name), environment=self.stack.environment, directory=self.scratch)

    def watch_over(self, processes: Iterable[Process]) -> int:
        """Start again what has ended by itself, as systemd and Compose do; return how many those were."""
        gone = [process for process in processes if not process.alive]
        for process in gone:
            process.start()
        return len(gone)

    def _log(self, name: str) -> Path:
        return self.scratch / "output" / f"{name}.log"

    def launch(self, system: str, job: str, config: Mapping[str, Any] | None = None, **tags: str) -> bool:
        """Launch a job as the UI does; return False where that failed, as while something is down."""
        try:
            self.stack.launch(job, config=config, tags=tags, location=system)
        except (RigError, httpx.HTTPError, ValueError):
            return False
        return True

    def succeeded(self, system: str, job: str, **tags: str) -> bool:
        """Return whether a run of a system's job with these tags succeeded."""
        filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS], job_name=job, tags=tags)
        return any(_location(run) == system for run in self.instance.get_runs(filters=filters))

    def under_way(self, system: str, job: str = "") -> int:
        """Return how many runs of a system, or of a job of it, wait or are at work."""
        filters = dg.RunsFilter(statuses=UNDER_WAY, job_name=job or None)
        runs = self.instance.get_runs(filters=filters)
        return sum(_location(run) == system for run in runs)

    def runs_by_status(self, system: str) -> dict[str, int]:
        """Return how many runs of a system ended how."""
        found: dict[str, int] = {}
        for run in self.instance.get_runs():
            if _location(run) == system:
                found[f"{run.job_name} {run.status.value}"] = found.get(f"{run.job_name} {run.status.value}", 0) + 1
        return dict(sorted(found.items()))


def _location(run: dg.DagsterRun) -> str:
    origin = run.remote_job_origin
    return origin.location_name if origin is not None else ""


def variables(settings: SystemSettings, *names: str) -> dict[str, str]:
    """Return the environment variables that give a process the settings ``names``."""
    return {settings.variable(name): _plain(getattr(settings, name)) for name in names}


def _plain(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
