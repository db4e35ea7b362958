"""What all systems stand on in a soak: a MariaDB, a PostgreSQL for Dagster, Dagster with a location each, processes."""

from __future__ import annotations

import os
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import dagster as dg
import httpx
from pydantic import SecretStr

from douban_pipeline.core.settings_base import BASE_PREFIX, SystemSettings
from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline.demo.setup import pool_limits
from douban_pipeline_tests.harness.rig.dagster_stack import LOCATION, DagsterStack
from douban_pipeline_tests.harness.rig.mariadb_server import MariaDbServer
from douban_pipeline_tests.harness.rig.postgres_server import PostgresServer
from douban_pipeline_tests.harness.rig.processes import Part, Process, RigError
from douban_pipeline_tests.harness.soak.evidence import Kill, Killed, location_of_run

Say = Callable[[str], None]
DOUBAN = "douban"
_OWN, _MODULES = "douban_pipeline.definitions", "douban_pipeline.locations.{}"


def location_of(system: str) -> str:
    """Return the name of a system's code location."""
    return LOCATION if system == DOUBAN else system


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a soak is.

    Attributes:
        minutes: How long life and troubles go on.
        videos: Videos in Douban's library at the beginning, with keys from 1.
        seed: What the library, life and troubles come from.
    """

    minutes: float
    videos: int
    seed: int


class Ground(Part):
    """Servers of its own at once, and Dagster once all systems have said what their processes need.

    Attributes:
        kills: What was killed on purpose, and when it was back.
    """

    stack: DagsterStack
    instance: dg.DagsterInstance

    def __init__(self, scale: Scale, scratch: Path, out: Path, say: Say) -> None:
        self.scale, self.scratch, self.out, self.say = scale, scratch, out, say
        self.server = MariaDbServer(scratch / "mariadb")
        self.postgres = PostgresServer(scratch / "postgres")
        self.kills: list[Kill] = []
        self._closing = ExitStack()

    @property
    def home(self) -> Path:
        """`DOUBAN_PIPELINE_HOME` of every process."""
        return self.scratch / "home"

    def start(self) -> Self:
        """Start the database servers.

        Raises:
            RigError: It did not start.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        self._closing.enter_context(self.server)
        self._closing.enter_context(self.postgres)
        return self

    def start_dagster(self, environments: Mapping[str, Mapping[str, str]]) -> None:
        """Start Dagster with a location for each system, whose code server alone gets its variables.

        Raises:
            RigError: A part did not start.
        """
        home = {f"{BASE_PREFIX}HOME": str(self.home)}
        own = {location_of(name): {**given, **home} for name, given in environments.items()}
        # What else is started names no library: the CMS's is Douban's alone.
        given = dict(ChainMap(*(values for name, values in own.items() if name != LOCATION)))
        self.stack = DagsterStack(
            self.scratch / "dagster",
            given,
            server=self.postgres.url,
            locations={location_of(name): _MODULES.format(name) if name != DOUBAN else _OWN for name in environments},
            own=own,
            pools=pool_limits(),
        )
        if LOCATION in own:
            own[LOCATION][f"{BASE_PREFIX}UI_URL"] = self.stack.url
        self._closing.enter_context(self.stack)
        self.instance = self._closing.enter_context(self.stack.instance())

    def restart(self, what: Killed, process: Process | MariaDbServer, seconds: float = 0.0) -> bool:
        """Kill a part with -9, and start it again after so many seconds, as what watches over it would."""
        at = datetime.now(UTC)
        process.kill()
        time.sleep(seconds)
        process.start()
        self.kills.append(Kill(at, what, until=datetime.now(UTC)))
        return True

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
            self.stack.launch(job, config=config, tags=tags, location=location_of(system))
        except (RigError, httpx.HTTPError, ValueError):
            return False
        return True

    def succeeded(self, system: str, job: str, **tags: str) -> bool:
        """Return whether a run of a system's job with these tags succeeded."""
        filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS], job_name=job, tags=tags)
        return any(location_of_run(run) == location_of(system) for run in self.instance.get_runs(filters=filters))

    def under_way(self, system: str, job: str = "") -> int:
        """Return how many runs of a system, or of a job of it, wait or are at work."""
        filters = dg.RunsFilter(statuses=UNDER_WAY, job_name=job or None)
        runs = self.instance.get_runs(filters=filters)
        return sum(location_of_run(run) == location_of(system) for run in runs)

    def runs_by_status(self, system: str) -> dict[str, int]:
        """Return how many runs of a system ended how."""
        found: dict[str, int] = {}
        for run in self.instance.get_runs():
            if location_of_run(run) == location_of(system):
                found[f"{run.job_name} {run.status.value}"] = found.get(f"{run.job_name} {run.status.value}", 0) + 1
        return dict(sorted(found.items()))


def variables(settings: SystemSettings, *names: str) -> dict[str, str]:
    """Return the environment variables that give a process the settings ``names``."""
    return {settings.variable(name): _plain(getattr(settings, name)) for name in names}


def _plain(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
