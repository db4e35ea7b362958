"""The services as their units start them: the commands as written there, with the example's environment."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from dagster import DagsterInstance

from douban_pipeline.core.clock import SystemClock
from douban_pipeline_tests.conftest import server_url
from douban_pipeline_tests.deploy.files import DEPLOY, INSTALLED, environment, unit
from douban_pipeline_tests.harness.fixtures.library import build_library, fresh_mariadb, video
from douban_pipeline_tests.harness.rig.dagster_stack import PROJECT, free_port
from douban_pipeline_tests.harness.rig.databases import POSTGRES, scratch_database
from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.harness.rig.waiting import wait_for
from douban_pipeline_tests.stand_ins.replay import ReplayServer

pytestmark = [pytest.mark.mariadb, pytest.mark.postgres]
SECONDS = 180
QUESTION = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }"


class Installation:
    """An installation in a folder of its own, in place of `/opt`, `/etc` and `/var/lib`."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        server_url("postgres")  # or the test is skipped
        self.folder, self.ui = folder, free_port()
        library = closing.enter_context(fresh_mariadb())
        build_library(library, [video(1)], clock=SystemClock()).engine.dispose()
        storage = closing.enter_context(scratch_database(POSTGRES, "e_units"))
        self.home, self.dagster = folder / "douban_pipeline", folder / "dagster"
        for path in (self.home, self.dagster):
            path.mkdir(mode=0o750)
        upstream = closing.enter_context(ReplayServer([]))
        shutil.copyfile(DEPLOY / "dagster.yaml", self.dagster / "dagster.yaml")
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            **environment(),
            "DOUBAN_PIPELINE_DATABASE_URL": library,
            "DOUBAN_PIPELINE_DOUBAN_URL": upstream.douban_url,
            "DOUBAN_PIPELINE_SEARCH_URL": upstream.search_url,
            "DOUBAN_PIPELINE_HOME": str(self.home),
            "DAGSTER_HOME": str(self.dagster),
            "DAGSTER_CODE_PORT": str(free_port()),
            "DAGSTER_FEEDS_PORT": str(free_port()),
            "DAGSTER_PG_HOST": storage.host or "127.0.0.1",
            "DAGSTER_PG_PORT": str(storage.port or 5432),
            "DAGSTER_PG_DB": storage.database or "",
            "DAGSTER_PG_USERNAME": storage.username or "",
            "DAGSTER_PG_PASSWORD": storage.password or "",
        }

    def command(self, line: str) -> list[str]:
        """Return a command of a unit or of the guide, with its paths, ports and variables put in."""
        programs = Path(sys.executable).parent
        line = line.replace(f"{INSTALLED}/.venv/bin", str(programs)).replace(INSTALLED, str(PROJECT))
        line = re.sub(r"\$\{(\w+)\}", lambda found: self.environment[found.group(1)], line)
        return shlex.split(line.replace("-p 3000", f"-p {self.ui}"))

    def start(self, name: str) -> Process:
        """Start a service as its unit says."""
        service = unit(name)["Service"]
        assert service["WorkingDirectory"] == environment()["DOUBAN_PIPELINE_HOME"]
        log = self.folder / f"{name}.log"
        command = self.command(service["ExecStart"])
        return Process(name, command, log=log, environment=self.environment, directory=self.home).start()

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, as a person or a timer does."""
        return subprocess.run(
            self.command(line), env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=SECONDS
        )

    def sees_the_locations(self) -> bool:
        """Return whether the UI knows the code locations."""
        try:
            answer = httpx.post(f"http://127.0.0.1:{self.ui}/graphql", json={"query": QUESTION}, timeout=20)
        except httpx.HTTPError:
            return False
        nodes = answer.json()["data"]["repositoriesOrError"].get("nodes") or []
        return sorted(node["location"]["name"] for node in nodes) == ["douban_pipeline", "feeds"]


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with ExitStack() as closing:
        installed = Installation(tmp_path, closing)
        for name in installed.environment:
            if name.startswith("DAGSTER"):
                monkeypatch.setenv(name, installed.environment[name])
        yield installed


@pytest.mark.long
def test_the_services_start_as_their_units_say_and_a_check_is_green(installation: Installation):
    binary = f"{INSTALLED}/.venv/bin/douban-pipeline"
    setup = installation.run(f"{binary} setup")
    assert setup.returncode == 0, setup.stdout + setup.stderr
    with ExitStack() as closing:
        running = []
        for name in ("code", "feeds", "webserver", "daemon"):
            process = installation.start(name)
            closing.callback(process.stop)
            running.append(process)
        assert wait_for(installation.sees_the_locations, seconds=SECONDS), [item.last_words() for item in running]

        with DagsterInstance.from_config(str(installation.dagster)) as instance:
            wanted = set(instance.get_required_daemon_types())
            assert wait_for(lambda: wanted <= set(instance.get_daemon_heartbeats()), seconds=SECONDS)
        check = installation.run(unit("check")["Service"]["ExecStart"] + " --json")
        assert check.returncode == 0, check.stdout
        findings = json.loads(check.stdout)["findings"]
        assert {finding["name"]: finding["state"] for finding in findings} == dict.fromkeys(
            [
                "settings",
                "profile",
                "database",
                "server",
                "tables",
                "grants",
                "clock",
                "home",
                "douban",
                "searxng",
                "feeds.settings",
                "feeds.server",
                "feeds.tables",
                "feeds.grants",
                "feeds.clock",
                "feeds.sources",
                "workspace",
                "instance",
                "daemon",
                "pools",
            ],
            "ok",
        )
    assert not any(process.alive for process in running)
