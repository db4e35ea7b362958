"""The core system's part of the HTTP service: the review sheet, the front page, the lists and the reports."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.core.database import outage
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.gate_status import closed_gates
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.douban.api import files_router, pages_router
from douban_pipeline.douban.review.served.api import review_router
from douban_pipeline.douban.review.served.batches import Batches
from douban_pipeline.douban.review.served.dagster_api import DagsterApi
from douban_pipeline.douban.review.served.desk import ReviewDesk
from douban_pipeline.douban.review.served.lookup import Lookup
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings


def mounts(_guard: GuessGuard) -> Iterator[Mount]:
    """Yield the review sheet below ``/review/``, and the front page with lists and reports beside it."""
    settings = load_settings()
    services = open_services(settings)  # the library is not accessed before the page is opened
    batches = Batches(services, DagsterApi(settings.graphql_url))
    router = review_router(ReviewDesk(services, batches), Pictures(services), Lookup(services))

    def problem() -> str | None:
        try:
            return outage(services.engine)
        except DatabaseError as error:  # no database is named
            return error.problem

    def worry() -> str | None:
        closed = closed_gates(services.engine, services.gate_table, services.clock.now())
        return f"gates closed: {', '.join(closed)}" if closed else None

    yield Mount("review", router, prefix="/review", problem=problem, worry=worry, close=batches.close)
    pages = pages_router(services)
    pages.include_router(files_router(services.reports.path))
    yield Mount("reports", pages, last=True)
