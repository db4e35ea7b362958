"""The served sheet under test: the service on loopback, with jobs that run in its own process as soon as launched."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
import uvicorn
from playwright.sync_api import Page, expect

from douban_pipeline.core.database import reading
from douban_pipeline.core.mounts import Mount
from douban_pipeline.douban.review.records.record import DecisionError, record
from douban_pipeline.douban.review.served.api import review_router
from douban_pipeline.douban.review.served.dagster_api import (
    DagsterApi,
    DagsterUnavailable,
    RunFailure,
    RunState,
)
from douban_pipeline.douban.review.served.desk import RECORD, ReviewDesk
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.undo.revert_request import RevertRequest, selection_of, waiting_decisions, withdraw
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.douban.review.shelves import Case
from douban_pipeline_tests.harness.fixtures.library import Library

IN_SIGHT = """() => {
  const box = document.querySelector("article.current")?.getBoundingClientRect();
  return box && box.bottom > 80 && box.top < innerHeight - 80;
}"""
"""Whether the current card is where a key changes it."""


class InProcess(DagsterApi):
    """Dagster's part in this process: what a run would do is done when it is launched, once for each request.

    Attributes:
        runs: Runs by request.
        refusals: Runs that failed, and what they said.
        down: Whether Dagster does not answer.
        lose: Whether the answer to the next launch is lost although it was launched.
    """

    def __init__(self, library: Library) -> None:
        super().__init__("http://127.0.0.1:9/graphql")
        self.library = library
        self.runs: dict[str, str] = {}
        self.refusals: dict[str, str] = {}
        self.down = False
        self.lose = False

    def launch(self, job: str, config: Mapping[str, Any], request: str, tags: Mapping[str, str] | None = None) -> str:
        """Do what the job does."""
        if self.down:
            raise DagsterUnavailable("Dagster 没有应答")
        if request not in self.runs:
            self.runs[request] = run_id = str(uuid.uuid4())
            [op] = config["ops"].values()
            try:
                (self._record if job == RECORD else self._revert)(run_id, op["config"])
            except DecisionError as error:
                self.refusals[run_id] = "\n".join(error.problems)
        if self.lose:
            self.lose = False
            raise DagsterUnavailable("应答丢失")
        return self.runs[request]

    def state(self, run_id: str) -> RunState:
        """It is over at once."""
        return RunState(ended=True, failed=run_id in self.refusals)

    def failure(self, run_id: str) -> RunFailure:
        """Return what a run said."""
        return RunFailure(self.refusals.get(run_id, ""), "")

    def _record(self, run_id: str, config: Mapping[str, Any]) -> None:
        rows = [Decision(**{**row, "action": DecisionAction(row["action"])}) for row in config["decisions"]]
        who = {"reviewer": config["reviewer"], "note": config["note"]}
        record(self.library.services, rows, **who, run_id=run_id, dry_run=config["dry_run"])

    def _revert(self, run_id: str, config: Mapping[str, Any]) -> None:
        services = self.library.services
        request = RevertRequest(config["operator"], config["reason"], decision_ids=config["decision_ids"])
        selection = selection_of(services, request)
        with reading(services.engine) as connection:
            waiting = waiting_decisions(services.tables, connection, selection)
        withdraw(services, waiting, operator=request.operator, reason=request.reason, run_id=run_id)


class Service:
    """The service, which can be killed and started again at the same address."""

    def __init__(self, library: Library, dagster: DagsterApi, **settings: Any) -> None:
        self._library = library
        self._dagster = dagster
        self._settings = ServeSettings(_env_file=None, **settings)
        self._port = 0
        self.start()
        self.url = f"http://127.0.0.1:{self._port}/review/"

    def start(self) -> None:
        """Begin to answer."""
        services = self._library.services
        router = review_router(ReviewDesk(services, self._dagster), Pictures(services))
        app = create_app(self._settings, [Mount("review", router, prefix="/review")])
        config = uvicorn.Config(app, log_level="error", lifespan="off", access_log=False, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Answer no more; connections are cut."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._listener.close()


@contextmanager
def served(library: Library, dagster: DagsterApi | None = None, **settings: Any) -> Iterator[tuple[Service, Any]]:
    """Yield the service of a library, and its Dagster."""
    dagster = dagster or InProcess(library)
    service = Service(library, dagster, **settings)
    try:
        yield service, dagster
    finally:
        service.kill()


def films(count: int) -> list[Case]:
    """Return videos that wait, one like the other."""
    return [
        Case(vod_id, {"vod_name": f"{vod_id}号片子", "vod_hits": 10_000 - vod_id}) for vod_id in range(1, count + 1)
    ]


def open_page(page: Page, service: Service, reviewer: str = "小王") -> Page:
    """Open the sheet and sign it."""
    page.goto(service.url)
    expect(page.locator("article.current")).to_be_visible()
    page.get_by_label("审核员").first.fill(reviewer)
    page.locator("h1").click()
    return page


def decisions(library: Library) -> list[dict[str, Any]]:
    """Return what was recorded, the oldest first."""
    table = library.tables.decision
    return library.query(sa.select(table).order_by(table.c.decision_id))


def shown(page: Page) -> set[int]:
    """Return the videos whose cards are in the page."""
    return {int(str(each.get_attribute("data-vod"))) for each in page.locator("article").all()}
