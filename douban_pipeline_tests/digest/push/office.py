"""What tests of pushing work with: services on a database, a clock that is set by hand, and a message to send."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import run_transaction
from douban_pipeline.digest.push import outbox
from douban_pipeline.digest.push.outbox import Notification
from douban_pipeline.digest.push.sender import PushReport, Sender
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.store.migrations import TREE
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

TEN_PM = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
"""22:00 of the day in Shanghai."""
DAY = date(2026, 11, 20)


def given_settings(home: Path, **values: Any) -> DigestSettings:
    """Settings of nothing but ``values``."""
    return DigestSettings(_env_file=None, home=home, **values)


class Office:
    """Services with what tests ask of the outbox."""

    def __init__(self, services: DigestServices, clock: FakeClock) -> None:
        self.services = services
        self.clock = clock

    def enqueue(self, push_type: str = "report", channels: Sequence[str] = (), **fields: Any) -> int:
        given = {
            "report_date": DAY,
            "slot": "22:00",
            "push_type": push_type,
            "target_url": "https://example.com/daily/2026-11-20",
            "title": "【日报】2026-11-20：今日没有新文章",
            "body": "",
            "channels": channels or self.services.settings.channels,
            "now": self.clock.now(),
            **fields,
        }
        return run_transaction(self.services.engine, lambda connection: outbox.enqueue(connection, **given))

    def push(self) -> PushReport:
        return Sender(self.services).run()

    def rows(self, **fields: Any) -> list[Notification]:
        with self.services.engine.connect() as connection:
            return outbox.select_notifications(connection, **fields)[::-1]

    def states(self) -> dict[str, str]:
        return {row.channel: row.state.value for row in self.rows()}


@contextmanager
def office(home: Path, channels: str, url: str = "", clock: Clock | None = None, **values: Any) -> Iterator[Office]:
    """Yield an office; without ``url`` on a file in ``home``."""
    settings = given_settings(home, push_channels=channels, **({"database_url": url} if url else {}), **values)
    fake = FakeClock(TEN_PM)
    services = open_services(settings, clock or fake)
    TREE.upgrade(services.engine)
    try:
        yield Office(services, fake)
    finally:
        services.close()
