"""The served sheet under test: the service on loopback, whose decisions are applied when a test says so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
import uvicorn
from playwright.sync_api import Page, expect

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.mounts import Mount
from douban_pipeline.douban.review.served.api import review_router
from douban_pipeline.douban.review.served.batches import Batches
from douban_pipeline.douban.review.served.dagster_api import DagsterApi
from douban_pipeline.douban.review.served.desk import ReviewDesk
from douban_pipeline.douban.review.served.lookup import Lookup
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.douban.review.shelves import Case
from douban_pipeline_tests.harness.fixtures.library import Library

IN_SIGHT = """() => {
  const box = document.querySelector("article.current")?.getBoundingClientRect();
  return box && box.bottom > 80 && box.top < innerHeight - 80;
}"""
"""Whether the current card is where a key changes it."""


class HeldBatches(Batches):
    """Batches that are recorded and reverted as by the service, and applied only when `apply_and_report` is called.

    Attributes:
        lose: Whether the answer to the next batch is lost although it was recorded.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library.services, DagsterApi("http://127.0.0.1:9/graphql"))
        self.lose = False

    def wake(self) -> None:
        """Leave what waits."""

    def record(self, request: str, reviewer: str, note: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Record as the service does."""
        run_id = super().record(request, reviewer, note, rows)
        if self.lose:
            self.lose = False
            raise DatabaseError("应答丢失")
        return run_id


class Service:
    """The service, which can be killed and started again at the same address."""

    def __init__(self, library: Library, batches: Batches, **settings: Any) -> None:
        self._library = library
        self._batches = batches
        self._settings = ServeSettings(_env_file=None, **settings)
        self._port = 0
        self.start()
        self.url = f"http://127.0.0.1:{self._port}/review/"

    def start(self) -> None:
        """Begin to answer."""
        services = self._library.services
        router = review_router(ReviewDesk(services, self._batches), Pictures(services), Lookup(services))
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
def served(library: Library, batches: Batches | None = None, **settings: Any) -> Iterator[tuple[Service, HeldBatches]]:
    """Yield the service of a library, and its batches: those given, or such that are applied when a test says so."""
    held = batches or HeldBatches(library)
    service = Service(library, held, **settings)
    try:
        yield service, held
    finally:
        service.kill()
        held.close()


def films(count: int) -> list[Case]:
    """Return videos that wait, one like the other."""
    return [
        Case(vod_id, {"vod_name": f"{vod_id}号片子", "vod_hits": 10_000 - vod_id}) for vod_id in range(1, count + 1)
    ]


def open_page(page: Page, service: Service, reviewer: str = "小王") -> Page:
    """Open the sheet and sign it."""
    page.goto(service.url)
    expect(page.locator("article.current")).to_be_visible()
    page.locator("#tools").evaluate("tools => tools.open = true")
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
