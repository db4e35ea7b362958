"""The life of Douban's system: a CMS whose site lives, an upstream that can fail, people who decide, an operator.

What is done to it is done between systems and people, too: Dagster's PostgreSQL is restarted under people's launches,
videos are edited by hand between their judging and a sweep, what a whole run wrote is reverted, and a worker dies in
the middle of a write while another one is well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

import psutil
from sqlalchemy import Column, Select, func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import reading
from douban_pipeline.core.llm import SOURCE as LLM
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import PREFIX, load_settings, variable
from douban_pipeline.douban.sources.douban_php import SOURCE
from douban_pipeline.douban.store.states import ChangeState, TaskStatus
from douban_pipeline.douban.writes.changes import PIPELINE
from douban_pipeline_tests.harness.generated.works import subjects_of
from douban_pipeline_tests.harness.rig.dagster_stack import LOCATION
from douban_pipeline_tests.harness.rig.live_cms import LiveCms, cms_refusal
from douban_pipeline_tests.harness.rig.processes import only_these
from douban_pipeline_tests.harness.soak.acts import Life
from douban_pipeline_tests.harness.soak.audit import audit
from douban_pipeline_tests.harness.soak.audit.runs import SPARED_SECONDS
from douban_pipeline_tests.harness.soak.duties import Operator, Waiting
from douban_pipeline_tests.harness.soak.evidence import (
    SOURCES,
    Alert,
    Evidence,
    Finding,
    Kill,
    runs_of,
    snapshot_of,
)
from douban_pipeline_tests.harness.soak.ground import DOUBAN
from douban_pipeline_tests.harness.soak.harms import Harm
from douban_pipeline_tests.harness.soak.journal import Journal
from douban_pipeline_tests.harness.soak.life import SystemLife
from douban_pipeline_tests.harness.soak.outside import Row, now
from douban_pipeline_tests.harness.soak.site import ADMIN
from douban_pipeline_tests.harness.soak.upstream import (
    CALLER_TIMEOUT,
    SETTINGS,
    DistantReplay,
    fill_library,
    most_arrivals_of,
)
from douban_pipeline_tests.harness.soak.watching import Watcher
from douban_pipeline_tests.stand_ins.faults import Fault
from douban_pipeline_tests.stand_ins.push_server import KEY, SECRET, PushServer

DATABASE = "library"
PATIENCE_SECONDS = 300.0
"""How long the drain waits for a change of what waits: a slow machine is waited for, a standstill is not."""
LAUNCHES = 3
"""Launches of people a moment after each restart."""
_EDITED, _BULK, _LOOKED_AT = 4, 5, 400
"""Videos edited at once; changes that a run must have written to be reverted as a whole; rows looked at for it."""
_WATCH_SECONDS, _GLANCE_SECONDS, _OPERATOR_SECONDS = 4.0, 0.004, 5.0
_ILL_SECONDS, _RETRY_AFTER = (20.0, 90.0), (12.0, 25.0)
_THROTTLED = "throttled"
"""It comes first: its pause is as long as the source asks for, so that its breaker is seen to open and close alone."""
_NO_ANSWER = ("server_error", "garbage", "empty_body", "wrong_page", "error_in_200", "wrong_id")
_FAULTS = {
    "douban": (*_NO_ANSWER, "captcha", "timeout", "empty", "login_redirect"),
    # A clean empty list is the worst of them: it looks like an answer.
    "search": (*_NO_ANSWER, "captcha", "timeout", "empty", "forbidden"),
    # A model that does not answer would hold a run for the minute and a half that a model is given.
    "llm": (*_NO_ANSWER, "no_provider", "unpaid", "refused", "cut_off"),
}


class DoubanLife(SystemLife):
    """Collectors, editors, other programs and reviewers at a library, and an operator who looks after the pipeline."""

    name = DOUBAN
    rhythm = (0.3, 1.7)
    drain_seconds = 3600.0
    pauses = True
    every: ClassVar[Mapping[str, float]] = {
        "run of douban killed": 1.0,
        "code server of douban killed": 0.0,
        **{f"{SOURCES[endpoint]} ill": 5.0 for endpoint in _FAULTS},
    }

    def prepare(self) -> Mapping[str, str]:
        """Make the library in the tables of a real CMS where one can be installed, and serve all sources."""
        ground, scale = self.ground, self.ground.scale
        self._closing = ExitStack()
        enter = self._closing.enter_context
        url = ground.database(DATABASE)
        refusal = cms_refusal(ground.server.url)
        ground.say("installing a real CMS, to use its tables" if refusal is None else f"no real CMS: {refusal}")
        if refusal is None:
            enter(LiveCms(ground.scratch / "cms", ground.server.url, DATABASE, keeps_database=True))
        most_arrivals = most_arrivals_of(scale)
        subjects = subjects_of(scale.videos + most_arrivals, scale.seed)
        self.replay = enter(DistantReplay(subjects, caller_timeout=CALLER_TIMEOUT, seed=scale.seed))
        self.robots = enter(PushServer())
        given = {
            **SETTINGS,
            "HOME": str(ground.home),
            "DATABASE_URL": url.get_secret_value(),
            "DOUBAN_URL": self.replay.douban_url,
            "SEARCH_URL": self.replay.search_url,
            "LLM_URL": self.replay.llm_url,
            "ALERT_WEBHOOK_KIND": "generic",
            "ALERT_WEBHOOK_URL": f"{self.robots.base}/hook/{KEY}",
            "ALERT_WEBHOOK_SECRET": SECRET,
        }
        # The replayed model takes any key; a real one in the environment must not reach it.
        environment = {PREFIX + name: value for name, value in given.items()} | {variable("openrouter_api_key"): "soak"}
        with only_these(environment):
            self.services = open_services(load_settings())
        self._closing.callback(self.services.close)
        fill_library(self.services, scale, ground.say)
        self._initial = snapshot_of(self.services)
        self._journal = Journal(ground.out / "journal.jsonl")
        self._life = Life(
            services=self.services,
            journal=self._journal,
            rng=self.rng,
            seed=scale.seed,
            videos=scale.videos,
            most_arrivals=most_arrivals,
            launch=lambda job, **more: ground.stack.launch(job, location=LOCATION, **more),
        )
        self._closing.callback(self._life.close)
        self._ill: dict[str, tuple[float, Fault]] = {}
        self._faults = {name: [_THROTTLED, *self.rng.sample(faults, len(faults))] for name, faults in _FAULTS.items()}
        return environment

    def begin(self) -> None:
        """Begin to watch Dagster's processes."""
        stack = self.ground.stack
        processes = {"daemon": stack.daemon, "code": stack.codes[LOCATION], "webserver": stack.webserver}
        self._watcher = self._closing.enter_context(Watcher(processes, self.services))
        self._operator = Operator(self.services, self.ground)
        self._began, self._looked = datetime.now(UTC), time.monotonic()
        self._started = self._looked
        self._stages: list[Callable[[], None]] = []
        self._seen: tuple[float, Waiting | None] = (0.0, None)

    def step(self) -> str:
        """Let one of the outsiders act, and the operator now and then; what is ill becomes well again."""
        for endpoint in [endpoint for endpoint, (until, _) in self._ill.items() if until <= time.monotonic()]:
            self._set_fault(endpoint, None)
        if time.monotonic() - self._looked >= _OPERATOR_SECONDS:
            self._looked = time.monotonic()
            self._operator.step(self._looked - self._started, {SOURCES[endpoint] for endpoint in self._ill})
        with self.pause:
            return self._life.step()

    # --- what is done to it -------------------------------------------------------------------------------------------

    def harms(self) -> Mapping[str, Harm]:
        """Return what can be done to it."""
        return {
            **super().harms(),
            **{f"{SOURCES[endpoint]} ill": partial(self._sicken, endpoint) for endpoint in _FAULTS},
            "Dagster's PostgreSQL restarted under launches": self._restart_postgres,
            "videos edited between judging and sweeping": self._edit_what_is_judged,
            "a run reverted as a whole": self._revert_a_run,
            "a worker killed in a write, beside a healthy one": self._kill_a_writer,
        }

    def _sicken(self, endpoint: str) -> bool:
        fault = self._faults[endpoint].pop(0)
        self._faults[endpoint].append(fault)
        retry_after = self.rng.uniform(*_RETRY_AFTER) if fault == _THROTTLED else None
        seconds = min(self.rng.uniform(*_ILL_SECONDS), self.ground.scale.minutes * 12)
        self._set_fault(endpoint, (time.monotonic() + seconds, Fault(endpoint, fault, retry_after=retry_after)))
        self.ground.say(f"{SOURCES[endpoint]}: {fault} for {seconds:.0f} s")
        return True

    def _set_fault(self, endpoint: str, fault: tuple[float, Fault] | None) -> None:
        if fault is None:
            self._ill.pop(endpoint, None)
        else:
            self._ill[endpoint] = fault
        self.replay.faults.replace([each for _, each in [*self._ill.values()]])

    def _restart_postgres(self) -> bool:
        """Launch as people do, restart the server that Dagster stores on, and launch at once and a moment later."""
        with self.pause:
            if not self._life.people.decide(by_job=True):
                return False
            at = datetime.now(UTC)
            self.ground.postgres.restart()
            self.ground.kills.append(Kill(at=at, what="postgres", until=datetime.now(UTC)))
            self._life.people.decide(by_job=True)
            time.sleep(SPARED_SECONDS)
            for _ in range(LAUNCHES):
                self._life.people.decide(by_job=True)
        return True

    def _edit_what_is_judged(self) -> bool:
        """Save videos by hand that a run has leased, and have the library swept."""
        task = self.services.tables.task
        leased = select(task.c.vod_id).where(task.c.status == TaskStatus.RUNNING).limit(_LOOKED_AT)
        with reading(self.services.engine) as connection:
            found = sorted(connection.execute(leased).scalars())
        if not found:
            return False

        def edit(_row: Row) -> Mapping[str, Any]:
            return {"vod_remarks": f"手改 {self.rng.randint(1, 10**6)}", "vod_time": now()}

        chosen = self.rng.sample(found, min(_EDITED, len(found)))
        with self.pause:
            changed = self._life.outside.change(ADMIN, "edited by hand what a run had leased", chosen, edit)
        return bool(changed) and self._operator.sweep() is not None

    def _revert_a_run(self) -> bool:
        """Revert what one of the latest runs wrote."""
        log = self.services.tables.log
        newest = (
            select(log.c.run_id)
            .where(log.c.state == ChangeState.APPLIED, log.c.operator == PIPELINE)
            .order_by(log.c.change_id.desc())
            .limit(_LOOKED_AT)
            .subquery()
        )
        many = select(newest.c.run_id).group_by(newest.c.run_id).having(func.count() >= _BULK)
        with reading(self.services.engine) as connection:
            runs = sorted(connection.execute(many).scalars())
        if not runs:
            return False
        with self.pause:
            return bool(self._life.people.revert_run(self.rng.choice(runs)))

    def _kill_a_writer(self) -> bool:
        """Kill a run's process between the log's row and what it tells of, while another run is at work."""
        workers = self.ground.stack.run_workers(LOCATION)
        if len(workers) < 2:
            return False
        log = self.services.tables.log
        prepared = select(log.c.run_id).where(log.c.state == ChangeState.PREPARED, log.c.run_id.in_(workers)).limit(1)
        until = time.monotonic() + _WATCH_SECONDS
        while time.monotonic() < until:
            with reading(self.services.engine) as connection:
                run_id = connection.execute(prepared).scalar()
            if run_id is not None and self._kill_if_writing(run_id, workers[run_id]):
                return True
            time.sleep(_GLANCE_SECONDS)
        return False

    def _kill_if_writing(self, run_id: str, worker: psutil.Process) -> bool:
        """Stop a process, and kill it if what it prepared is still not applied; else let it go on."""
        log = self.services.tables.log
        still = select(func.count()).where(log.c.state == ChangeState.PREPARED, log.c.run_id == run_id)
        with suppress(psutil.NoSuchProcess):
            worker.suspend()
            try:
                with reading(self.services.engine) as connection:
                    writing = bool(connection.execute(still).scalar())
                if writing:
                    worker.kill()
                    self.ground.kills.append(Kill(at=datetime.now(UTC), what="run", run_id=run_id))
                    return True
            finally:
                with suppress(psutil.NoSuchProcess):
                    worker.resume()
        return False

    # --- the end ------------------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """All sources are well; what outsiders began is finished."""
        for endpoint in _FAULTS:
            self._set_fault(endpoint, None)
        self._life.settle()
        operator = self._operator
        # First everything that changed is taken in, then all shards are visited until nothing is due; last all is taken
        # in again and eight shards are visited once more, for a run settles what dead ones left half written.
        self._stages = [operator.take_in, operator.visit_all, operator.look_back]
        self._drain_began = datetime.now(UTC)

    def settled(self) -> bool:
        """Have the pipeline finish what waits; a standstill ends it."""
        passed = time.monotonic() - self._started
        self._operator.close_gates(passed, ())
        try:
            waiting = self._operator.waiting()
        except SQLAlchemyError:
            return False
        moved_at, seen = self._seen
        if waiting != seen:
            self._seen = passed, waiting
            self.ground.say(f"douban, draining: {waiting}")
        elif passed - moved_at > PATIENCE_SECONDS:
            self.drain_seconds = 0.0
            return False
        if waiting.runs:
            return False
        if not self._stages and waiting.nothing:
            return True
        if len(self._stages) < 2 and not waiting.nothing:
            self._operator.visit_all()  # more came due: once more round the shards
        elif self._stages:
            self._stages.pop(0)()
        return False

    def finish(self) -> None:
        """Note what there is once everything rests; Dagster's instance is gone later."""
        self._watcher.look()
        self._life.settle()
        self._runs = runs_of(self.ground.instance, LOCATION)
        self._ended = datetime.now(UTC)

    def audit(self) -> list[Finding]:
        """Return what became of each invariant."""
        settings, ground = self.services.settings, self.ground
        search = settings.search_requests_per_minute, settings.search_at_once
        limits = {
            SOURCE: (settings.douban_requests_per_minute, settings.douban_at_once),
            **dict.fromkeys(settings.search_urls, search),
            LLM: (settings.llm_requests_per_minute, settings.llm_concurrency),
        }
        return audit(
            Evidence(
                services=self.services,
                journal=self._journal,
                initial=self._initial,
                requests=self.replay.requests.describe(),
                limits=limits,
                runs=self._runs,
                began=self._began,
                ended=self._ended,
                drain_began=self._drain_began,
                kills=sorted(ground.kills, key=lambda kill: kill.at),
                alerts=[Alert(each.at, f"{each.title}\n{each.text}", each.url) for each in self.robots.taken],
                usage=self._watcher.usage(),
                drained=not self._stages and self._seen[1] is not None and self._seen[1].nothing,
            )
        )

    def summary(self) -> dict[str, Any]:
        """Return what the pipeline did, and its breakers."""
        tables, breakers = self.services.tables, self._watcher.breakers
        counted = {
            "videos by status": tables.video.c.douban_review_status,
            "changes by state": tables.log.c.state,
            "tasks by status": tables.task.c.status,
        }
        with reading(self.services.engine) as connection:
            found = {
                name: {str(value): count for value, count in connection.execute(_count_by(each))}
                for name, each in counted.items()
            }
        requests = self.replay.requests.describe()
        return {
            **found,
            **{f"requests: {name}": about["count"] for name, about in requests.items() if about["count"]},
            "breakers opened": dict(breakers.opened),
            "breakers closed by themselves": dict(breakers.closed_alone),
            "breakers closed by the operator": dict(breakers.closed_by_hand),
            "launches that failed": dict(self._operator.refused),
        }

    def close(self) -> None:
        """Let go of its connections, and stop serving."""
        if hasattr(self, "_closing"):
            self._closing.close()


def _count_by(column: Column[Any]) -> Select[Any]:
    return select(column, func.count()).group_by(column)
