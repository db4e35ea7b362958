"""What the operators' commands ask of the feeds system."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select

from douban_pipeline.core.check_results import CheckResult, reached
from douban_pipeline.core.database import reading
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import Operations
from douban_pipeline.feeds.budget_plan import crowded_hosts
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store.tables import source
from douban_pipeline.feeds.types import SourceKind


class FeedsOperations(Operations):
    """The feeds system in the operators' commands."""

    def checks(self, services: FeedsServices) -> Iterator[CheckResult]:
        """Check the sources, and that WeRSS can be reached if accounts are followed or its address is set."""
        settings, engine = services.settings, services.engine
        with reading(engine) as connection:
            query = select(source.c.kind, func.count().label("sources")).group_by(source.c.kind)
            kinds = connection.execute(query).all()
        counts = {row.kind: row.sources for row in kinds}
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or terminal_text("none yet")
        yield CheckResult("sources", "ok", terminal_text("followed: {shown}").format(shown=shown))
        variable = settings.variable("requests_per_minute")
        for crowded in crowded_hosts(engine, settings):
            remedy = terminal_text("raise {variable}, or follow fewer sources there").format(variable=variable)
            yield CheckResult("hosts", "warn", crowded, remedy)
        if settings.werss_url:
            yield reached("werss", settings.variable("werss_url"), settings.werss_url)
        elif counts.get(SourceKind.WERSS):
            variable = settings.variable("werss_url")
            message = terminal_text("public accounts are followed, but {variable} is not set").format(variable=variable)
            remedy = terminal_text("set it to the address of WeRSS")
            yield CheckResult("werss", "fail", message, remedy)


OPERATIONS = FeedsOperations()
"""The feeds system's."""
