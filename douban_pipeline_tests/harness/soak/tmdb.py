"""The life of TMDB: people ask about films whose roles change all the time; what is stored goes on to a graph."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr
from sqlalchemy import text

from douban_pipeline.core.extras import missing_library
from douban_pipeline.demo.embedded_servers import embedded_graph
from douban_pipeline.demo.stand_ins.tmdb_server import bundled
from douban_pipeline.tmdb.graph_sync import build_batch
from douban_pipeline.tmdb.guards import incomplete_answers
from douban_pipeline.tmdb.services import TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.due import REFRESH_DAYS
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.harness.rig.dagster_stack import HOST, free_port
from douban_pipeline_tests.harness.rig.databases import POSTGRES, scratch_database
from douban_pipeline_tests.harness.rig.processes import Process, RigError
from douban_pipeline_tests.harness.rig.waiting import wait_for
from douban_pipeline_tests.harness.soak.audit.records import Case
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.ground import variables
from douban_pipeline_tests.harness.soak.harms import Harm
from douban_pipeline_tests.harness.soak.life import DOWN, SystemLife
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbFault, TmdbServer


def audit_tmdb(services: TmdbServices, roles: Mapping[int, str], seen: Mapping[int, Collection[str]]) -> list[Finding]:
    """Return what became of each invariant."""
    full = _full(services)
    return [_graph(services, full), _newest(services, roles), _graph_roles(services, roles, seen), _done(services)]


def _full(services: TmdbServices) -> list[EntityKey]:
    with services.engine.connect() as connection:
        return [
            EntityKey(entity, number)
            for entity, table in TABLES.items()
            for (number,) in connection.execute(
                text(f"SELECT tmdb_id FROM tmdb.{table.name} WHERE data_state = 'full' AND gone_at IS NULL")
            )
        ]


def _graph(services: TmdbServices, full: Sequence[EntityKey]) -> Finding:
    case = Case("the graph is the projection of the stored answers", checked=len(full))
    with services.graph() as target:
        if full:
            for each in target.differences(build_batch(services.store, full)):
                case.breaks(each)
        counts = {name: count for name, count in target.counts().items() if count}
    case.notes.append(", ".join(f"{name} {count}" for name, count in counts.items()))
    return case.finding()


def _newest(services: TmdbServices, roles: Mapping[int, str]) -> Finding:
    case = Case("each answer is kept whole, the newest of each film that was asked for last")
    with services.engine.connect() as connection:
        for breach in incomplete_answers(services, connection):
            case.breaks(f"{breach.what}: {breach.problem}")
        for number, role in roles.items():
            case.checked += 1
            query = text("SELECT raw->'credits'->'cast'->0->>'character' FROM tmdb.movies WHERE tmdb_id = :id")
            found = connection.execute(query, {"id": number}).scalar()
            if found != role:
                case.breaks(f"movie/{number}: its first role is {found!r} in the store, TMDB says {role!r}")
    return case.finding()


def _graph_roles(services: TmdbServices, roles: Mapping[int, str], seen: Mapping[int, Collection[str]]) -> Finding:
    case = Case("the graph holds the newest role of a film, and none that it had before")
    with services.graph() as target:
        for number, role in roles.items():
            rows = target.ask("MATCH (:Movie {tmdb_id: $id})<-[e:ACTED_IN]-() RETURN e.character AS role", id=number)
            found = {str(row["role"]) for row in rows if row["role"]}
            case.checked += 1
            if role not in found:
                case.breaks(f"movie/{number}: {role!r} is not in the graph")
            for old in sorted(found & (set(seen[number]) - {role})):
                case.breaks(f"movie/{number}: {old!r} is in the graph, and was changed")
    return case.finding()


def _done(services: TmdbServices) -> Finding:
    case = Case("no change waits for the graph, and none was put aside")
    counts = services.store.run(outbox.counts)
    case.checked = 1
    if counts.waiting:
        case.breaks(f"{counts.waiting} changes wait, {counts.failing} of them failed")
    if counts.dead:
        case.breaks(f"{counts.dead} changes were put aside")
    types = ", ".join(entity.value for entity in EntityType)
    case.notes.append(f"of {types}")
    return case.finding()


_FILMS = {9261: "喜宴", 10451: "饮食男女", 146: "卧虎藏龙", 90_000_035: "推手"}
_FAULTS = ("throttled", "failing", "cut", "page", "empty", "schema")
_ILL_SECONDS = (5.0, 15.0)
_KEY = "soak"
_MEMORY_MB = 256
_START_SECONDS = 300.0
_GRAPH_DOWN = (1.0, 4.0)


class TmdbLife(SystemLife):
    """Users of the question service; TMDB renames roles, and answers badly for a while."""

    name = "tmdb"
    rhythm = (0.5, 2.5)

    def prepare(self) -> Mapping[str, str]:
        """Start a stand-in of TMDB, a graph and a database of its own.

        Raises:
            RigError: The wheel of the graph is not installed.
        """
        if find_spec("arcadedb_embedded") is None:
            raise RigError(f"{missing_library('arcadedb_embedded', 'tmdb-embedded')}; or leave it out with --systems")
        self._closing = ExitStack()
        enter = self._closing.enter_context
        recordings = [*bundled()]
        self._films = {
            number: next(each for each in recordings if each["path"] == f"/3/movie/{number}") for number in _FILMS
        }
        self.roles = {number: str(_first(each)["character"]) for number, each in self._films.items()}
        self.seen = {number: {role} for number, role in self.roles.items()}
        self.server = enter(TmdbServer(recordings, key=_KEY))
        self._folder = self.ground.scratch / "graph"
        graph = enter(embedded_graph(self._folder, memory_mb=_MEMORY_MB))
        url = enter(scratch_database(POSTGRES, "tmdb")).set(drivername="postgresql")
        self._graph_port = int(graph.uri.rpartition(":")[2])
        self._graph: Process | None = None
        self.settings = TmdbSettings.load(
            home=self.ground.home,
            library_url=SecretStr(""),
            database_url=SecretStr(url.render_as_string(hide_password=False)),
            graph_uri=graph.uri,
            graph_user=graph.user,
            graph_password=SecretStr(graph.password),
            graph_database=graph.database,
            api_url=self.server.api_url,
            api_key=SecretStr(_KEY),
            questions_per_minute=100_000,
        )
        self.services: TmdbServices = open_services(self.settings)
        self.services.store.upgrade()
        self._http = httpx.Client(timeout=20, trust_env=False)
        self._changes = 0
        self._ill_until = 0.0
        self._killing = threading.Lock()
        names = ("database_url", "graph_uri", "graph_user", "graph_password", "graph_database", "api_url", "api_key")
        return variables(self.settings, *names, "questions_per_minute")

    def begin(self) -> None:
        """Start the service that answers questions."""
        port = free_port()
        self._base = f"http://{HOST}:{port}"
        own = [sys.executable, "-m", "douban_pipeline", "serve", "--host", HOST, "--port", str(port)]
        self._service = self.ground.service("service-tmdb", *own)
        self.ground.keep(self._service)
        self._service.wait_until(self._answers, seconds=_START_SECONDS)

    def _answers(self) -> bool:
        try:
            return self._http.get(f"{self._base}/healthz").status_code in (200, 503)
        except httpx.TransportError:
            return False

    def step(self) -> str:
        """Ask a question, or have TMDB rename a role, or fail for a while."""
        self._look_after()
        if self.server.faults and time.monotonic() >= self._ill_until:
            self.server.faults.clear()
        kind = self.rng.random()
        number = self.rng.choice([*_FILMS])
        if kind < 0.2:
            self._rename(number)
            return "a role renamed at TMDB"
        if kind < 0.25 and not self.server.faults:
            fault = self.rng.choice(_FAULTS)
            self._ill_until = time.monotonic() + self.rng.uniform(*_ILL_SECONDS)
            self.server.faults.append(TmdbFault(fault, retry_after=3.0 if fault == "throttled" else None))
            return f"TMDB was ill: {fault}"
        return f"a question {self._question(number)}"

    def _look_after(self) -> None:
        """Start the service again if it ended by itself; what is being killed is its killer's."""
        with self._killing:
            if self.ground.watch_over((self._service,)):
                self.acts["services that ended by themselves, started again"] += 1

    def _rename(self, number: int) -> None:
        self._changes += 1
        role = f"第 {self._changes} 个译名"
        changed = json.loads(json.dumps(self._films[number]))
        _first(changed)["character"] = role
        self.server.learn(changed)
        self.roles[number] = role
        self.seen[number].add(role)
        self._age(number)

    def _age(self, number: int) -> None:
        """Let as many days pass for what is stored of a film as it is answered from the store."""
        query = "UPDATE tmdb.movies SET fetched_at = now() - make_interval(days => %s) WHERE tmdb_id = %s"
        with self.services.store.transaction() as connection:
            connection.execute(query, (REFRESH_DAYS + 1, number))

    def _question(self, number: int) -> str:
        body = {
            "message": f"《{_FILMS[number]}》的导演是谁？",
            "user_id": f"user{self.rng.randint(1, 9)}",
            "session_id": "soak",
            "choice": {"media_type": "movie", "tmdb_id": number},
        }
        try:
            answer = self._http.post(f"{self._base}/tmdb/enrich", json=body)
        except httpx.TransportError:
            return DOWN
        return str(answer.json().get("state")) if answer.is_success else f"refused with {answer.status_code}"

    def harms(self) -> Mapping[str, Harm]:
        """Return what can be done to it."""
        return {
            **super().harms(),
            "the service of TMDB killed": self._kill_service,
            "the graph server killed": self._kill_graph,
        }

    def _kill_run(self) -> bool:
        if not self.ground.under_way(self.name):
            self.ground.launch(self.name, "sync_tmdb_graph")
        return super()._kill_run()

    def _kill_service(self) -> bool:
        with self._killing:
            self._service.kill()
            self._service.start()
        return True

    def _kill_graph(self) -> bool:
        """Kill the graph with -9, and start it again on its data after a while, at the same port."""
        if self._graph is None:
            pid = int((self._folder / "pid").read_text(encoding="ascii"))
            command = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
            os.kill(pid, signal.SIGKILL)
            self._graph = self.ground.program("graph", *command)
            self._closing.callback(self._graph.stop)
        else:
            self._graph.kill()
        time.sleep(self.rng.uniform(*_GRAPH_DOWN))
        self._graph.start()
        if not wait_for(partial(_listens, self._graph_port), seconds=_START_SECONDS):
            raise RigError(f"the graph does not start again: {shlex.join(self._graph.command)}")
        return True

    def heal(self) -> None:
        """TMDB is well."""
        self.server.faults.clear()

    def settled(self) -> bool:
        """Ask about every film until the newest role is stored, then have the outbox written to the graph."""
        self._look_after()
        with self.services.store.transaction() as connection:
            query = "SELECT tmdb_id, raw->'credits'->'cast'->0->>'character' FROM tmdb.movies WHERE data_state = 'full'"
            found = dict(connection.execute(query).fetchall())
        old = [number for number, role in self.roles.items() if found.get(number) != role]
        for number in old:
            self._age(number)  # an answer of before may have been stored since
            self._question(number)
        if old or self.ground.under_way(self.name):
            return False
        counts = self.services.store.run(outbox.counts)
        if counts.waiting:
            with self.services.store.transaction() as connection:  # no run is under way: who holds a lease was killed
                connection.execute("UPDATE tmdb.neo4j_etl_outbox SET available_at = now() WHERE locked_at IS NOT NULL")
            self.ground.launch(self.name, "sync_tmdb_graph")
        return not counts.waiting

    def audit(self) -> list[Finding]:
        """Return what became of each invariant."""
        return audit_tmdb(self.services, self.roles, self.seen)

    def summary(self) -> dict[str, Any]:
        """Return how often TMDB was asked."""
        return {"requests": self.server.count()}

    def close(self) -> None:
        """Stop what is outside of the system."""
        if hasattr(self, "services"):
            self.services.close()
            self._http.close()
        if hasattr(self, "_closing"):
            self._closing.close()


def _first(film: Mapping[str, Any]) -> dict[str, Any]:
    credit: dict[str, Any] = film["body"]["credits"]["cast"][0]
    return credit


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
