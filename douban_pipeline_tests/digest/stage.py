"""What tests of the digest work with: a clock set by hand, settings, services on a database, and both stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Table, select

from douban_pipeline.core.database import reading
from douban_pipeline.demo.stand_ins.werss import ACCOUNT, PASSWORD, Article, WeRssStandIn
from douban_pipeline.digest.page_data import day_view
from douban_pipeline.digest.pages.html import render_daily
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.slot_run import EndedSlot, SlotWork, run_slot
from douban_pipeline.digest.slots import SlotKey
from douban_pipeline.digest.store.migrations import TREE
from douban_pipeline.digest.store.tables import analysis_result, content_item, notification_log, slot_run
from douban_pipeline.digest.types import SlotRow
from douban_pipeline_tests.stand_ins.completions import DigestServer

DAY = date(2026, 11, 20)
SLOTS = ("07:00", "12:00", "14:00", "18:00", "22:00")
CHANNEL = "work=webhook+http://127.0.0.1:9/robot operator=webhook+http://127.0.0.1:9/alerts"


class HandClock:
    """A clock that stands still until it is set; sleeping moves it on."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=max(seconds, 0.0))


def key(slot: str, day: date = DAY) -> SlotKey:
    return SlotKey(day, slot)


def moment(slot: str, day: date = DAY) -> datetime:
    """The moment of a slot, in Shanghai."""
    return datetime.fromisoformat(f"{day}T{slot}:00+08:00").astimezone(UTC)


def given_settings(home: Path, **values: Any) -> DigestSettings:
    """Settings of nothing but ``values``."""
    return DigestSettings(_env_file=None, **{"home": home, "push_channels": CHANNEL, **values})


def text_of(number: int, score: int) -> str:
    return f"<p>第 {number} 篇的正文，讲了一件具体的事。（样值 {score}）</p>"


class Stage:
    """Services, their clock, and the stand-ins."""

    def __init__(self, services: DigestServices, clock: HandClock, server: DigestServer) -> None:
        self.services = services
        self.clock = clock
        self.server = server

    @property
    def werss(self) -> WeRssStandIn:
        return self.server.werss

    def publish(self, number: int, score: int, *, hours_ago: float = 1.0, **fields: Any) -> Article:
        """Publish an article that the stand-in of the model gives ``score``."""
        at = self.clock.at.timestamp() - hours_ago * 3600
        article = Article(
            **{
                "article_id": f"3000000001-{number}",
                "mp_id": "MP_WXS_1",
                "title": f"第 {number} 篇",
                "published_at": at,
                "html": text_of(number, score),
                **fields,
            }
        )
        self.werss.articles.append(article)
        return article

    def run(self, slot: str, *, day: date = DAY, run_id: str = "run", backfill: bool = False, at: str = "") -> Any:
        """Run a slot at its moment; return how it ended."""
        self.clock.at = moment(at or slot, day)
        return run_slot(self.fresh(), key(slot, day), run_id, backfill=backfill)

    def work(self, slot: str, run_id: str = "run", *, backfill: bool = False) -> SlotWork:
        return SlotWork(self.services, key(slot), run_id, backfill)

    def fresh(self) -> DigestServices:
        """Services as another process has them, on the same database."""
        return self.services

    def rows(self, table: Table) -> list[dict[str, Any]]:
        with self.services.engine.connect() as connection:
            return [dict(row) for row in connection.execute(select(table)).mappings()]

    def items(self) -> dict[str, dict[str, Any]]:
        return {row["title"]: row for row in self.rows(content_item)}

    def analyses(self) -> list[dict[str, Any]]:
        return self.rows(analysis_result)

    def messages(self, push_type: str = "") -> list[dict[str, Any]]:
        return [row for row in self.rows(notification_log) if not push_type or row["push_type"] == push_type]

    def page(self, day: date = DAY) -> str:
        """Return the page of a day."""
        with reading(self.services.engine) as connection:
            view = day_view(self.services, connection, day)
        assert view is not None
        return render_daily(view, self.services.settings.zone)

    def slot(self, slot: str) -> dict[str, Any]:
        return next(row for row in self.rows(slot_run) if row["slot"] == slot)


@contextmanager
def stage(home: Path, url: str = "", at: str = "07:00", generation: str = "1.4.8", **values: Any) -> Iterator[Stage]:
    """Yield a stage with one account; without ``url`` on a file in ``home``."""
    clock = HandClock(moment(at))
    werss = WeRssStandIn(lambda: clock.at.timestamp(), generation, accounts={"MP_WXS_1": "示例公众号"})
    with DigestServer(werss) as server:
        given = {
            "werss_url": server.base,
            "werss_username": ACCOUNT,
            "werss_password": PASSWORD,
            "deepseek_url": server.model_url,
            "deepseek_api_key": "sk-test",
            "deepseek_timeout_seconds": 5.0,
            "public_url": "https://digest.example",
            **({"database_url": url} if url else {}),
        }
        services = open_services(given_settings(home, **{**given, **values}), clock)
        TREE.upgrade(services.engine)
        try:
            yield Stage(services, clock, server)
        finally:
            services.close()


__all__ = ["DAY", "SLOTS", "EndedSlot", "HandClock", "SlotRow", "Stage", "given_settings", "key", "moment", "stage"]
