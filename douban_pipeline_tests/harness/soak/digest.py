"""The life of the digest: a day whose slots are minutes apart, and a model and robots that fail now and then."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr
from sqlalchemy import func, select

from douban_pipeline.core.database import reading
from douban_pipeline.demo.stand_ins.werss import ACCOUNT, PASSWORD, Article, WeRssStandIn
from douban_pipeline.digest.push.rules import PushState
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.store.migrations import TREE
from douban_pipeline.digest.store.tables import notification_log, slot_run
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline_tests.harness.soak.digest_audit import DigestNotes, audit_digest
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.ground import variables
from douban_pipeline_tests.harness.soak.life import SystemLife
from douban_pipeline_tests.stand_ins.completions import DigestServer
from douban_pipeline_tests.stand_ins.push_server import KEY, SECRET, PushServer

_ACCOUNTS = {f"MP_WXS_300000000{number}": f"示例公众号 {number}" for number in (1, 2, 3)}
_CHANNELS = {"first": "webhook", "second": "webhook"}
_ARTICLE_SECONDS = 6.0
_SLOTS = 8
"""Slots of a soak that has the minutes for them."""
_STARTING = timedelta(seconds=150)
"""How long everything takes to start, about; the report's slot comes when life is over."""
_AT_HOUR = 10
"""The hour of the day that it is in a soak, so that midnight is far away."""
_MODEL_FAULTS = ("throttled", "server_error", "overloaded", "broken", "cut_off", "no_score", "empty")
_ROBOT_FAULTS = ("error", "throttled", "silent", "redirect")
_DOWN_SECONDS = (5.0, 25.0)
_WATCH_SECONDS = 60.0
_GOING = (PushState.PENDING, PushState.SENDING, PushState.FAILED)


class DigestLife(SystemLife):
    """Articles appear all the time; WeRSS goes away for a while, model and robots answer badly now and then."""

    name = "digest"
    rhythm = (2.0, 8.0)

    def prepare(self) -> Mapping[str, str]:
        """Serve articles, model and robots, set slots that are minutes apart, and make the tables."""
        self._closing = ExitStack()
        now = datetime.now(UTC)
        length = timedelta(minutes=self.ground.scale.minutes) + _STARTING
        self.werss = WeRssStandIn(time.time, accounts=dict(_ACCOUNTS), articles=self._articles(now, length))
        self.server = self._closing.enter_context(DigestServer(self.werss))
        self.robots = self._closing.enter_context(PushServer())
        channels = " ".join(self.robots.channel(kind, name) for name, kind in _CHANNELS.items())
        every = timedelta(minutes=max(1, round(self.ground.scale.minutes / _SLOTS)))
        first, self._report_at = _minute(now + timedelta(minutes=1)), _minute(now + length + timedelta(minutes=1))
        # The slot before the report has as long as the others: the drain does not wait for two at once.
        last = self._report_at - every
        moments = [first + every * number for number in range(1, 1000) if first + every * number <= last]
        zone = _zone_where_it_is(_AT_HOUR, now)
        self.settings = DigestSettings.load(
            home=self.ground.home,
            site_timezone=zone,
            database_url=self.ground.database("digest"),
            schedule_slots=tuple(f"{each.astimezone(ZoneInfo(zone)):%H:%M}" for each in (*moments, self._report_at)),
            werss_url=self.server.base,
            werss_username=ACCOUNT,
            werss_password=SecretStr(PASSWORD),
            request_timeout_seconds=5.0,
            deepseek_url=self.server.model_url,
            deepseek_api_key=SecretStr("soak"),
            deepseek_timeout_seconds=10.0,
            push_channels=SecretStr(channels),
            alert_webhook_kind="generic",
            alert_webhook_url=SecretStr(f"{self.robots.base}/hook/{KEY}"),
            alert_webhook_secret=SecretStr(SECRET),
            max_articles_per_slot=200,
        )
        self.day = now.astimezone(self.settings.zone).date()
        self.services: DigestServices = open_services(self.settings)
        TREE.upgrade(self.services.engine)
        self._up_at = self._watched_at = 0.0
        self._well_since = datetime.now(UTC)
        names = ("site_timezone", "database_url", "schedule_slots", "werss_url", "werss_username", "werss_password")
        more = ("request_timeout_seconds", "deepseek_url", "deepseek_api_key", "deepseek_timeout_seconds")
        further = ("push_channels", "max_articles_per_slot")
        alerts = ("alert_webhook_kind", "alert_webhook_url", "alert_webhook_secret")
        return variables(self.settings, *names, *more, *further, *alerts)

    def _articles(self, now: datetime, length: timedelta) -> list[Article]:
        ids = list(_ACCOUNTS)
        count = int(length.total_seconds() / _ARTICLE_SECONDS)
        return [
            Article(
                f"{each % 3 + 1}-{each}",
                ids[each % 3],
                f"第 {each} 篇",
                now.timestamp() + each * _ARTICLE_SECONDS,
                f"<p>第 {each} 篇的正文，写于压力测试。</p><p>（样值 {self.rng.randint(0, 100)}）</p>",
            )
            for each in range(count)
        ]

    def step(self) -> str:
        """Let somebody fail, or WeRSS come back."""
        if self.werss.down and time.monotonic() >= self._up_at:
            self.werss.down = False
            return "WeRSS was back"
        kind = self.rng.random()
        if kind < 0.1 and not self.werss.down:
            self.werss.down, self._up_at = True, time.monotonic() + self.rng.uniform(*_DOWN_SECONDS)
            return "WeRSS went away"
        if kind < 0.4:
            self.server.model.faults.append(fault := self.rng.choice(_MODEL_FAULTS))
            return f"the model failed: {fault}"
        if kind < 0.6:
            self.robots.faults["webhook"].append(fault := self.rng.choice(_ROBOT_FAULTS))
            return f"a robot failed: {fault}"
        return "nothing but articles"

    def heal(self) -> None:
        """All are well, and no more articles appear."""
        self.werss.down = False
        self.server.model.faults.clear()
        self.robots.faults.clear()
        self._well_since = datetime.now(UTC)
        self.werss.articles = [each for each in self.werss.articles if (each.published_at or 0) <= time.time()]

    def settled(self) -> bool:
        """Wait for the slot of the report, see to the report as the watchdog would, and until all is sent."""
        now = datetime.now(UTC)
        early = self._report_at > self._well_since + _STARTING + timedelta(minutes=1)
        if not early:
            if now < self._report_at:
                return False
            if not self._report_is_made() and now > self._report_at + timedelta(seconds=30):
                self._watch()
                return False
        with reading(self.services.engine) as connection:
            going = select(func.count()).where(notification_log.c.state.in_([state.value for state in _GOING]))
            left = connection.execute(going).scalar_one()
        return not left and not self.ground.under_way(self.name) and (early or self._report_is_made())

    def _report_is_made(self) -> bool:
        query = select(func.count()).where(notification_log.c.push_type == "report")
        with reading(self.services.engine) as connection:
            return bool(connection.execute(query).scalar_one())

    def _watch(self) -> None:
        slot = f"{self._report_at.astimezone(self.settings.zone):%H:%M}"
        running = select(func.count()).where(
            slot_run.c.slot == slot,
            slot_run.c.status == SlotStatus.RUNNING.value,
            slot_run.c.lease_until > datetime.now(UTC),
        )
        with reading(self.services.engine) as connection:
            if connection.execute(running).scalar_one():
                return
        if time.monotonic() - self._watched_at > _WATCH_SECONDS and not self.ground.under_way(self.name):
            self._watched_at = time.monotonic()
            given = {"grace_minutes": 0, "reason": "运行被终止"}
            self.ground.launch(self.name, "watch_digest", {"ops": {"watch_reports": {"config": given}}})

    def audit(self) -> list[Finding]:
        """Return what became of each invariant."""
        articles = {
            each.article_id: datetime.fromtimestamp(each.published_at or 0, UTC) for each in self.werss.articles
        }
        taken = [str(each.body.get("key")) for each in list(self.robots.taken)]
        due = datetime.now(UTC) >= self._report_at
        return audit_digest(
            self.services.engine,
            DigestNotes(
                self.day,
                [*_CHANNELS],
                taken,
                articles,
                self._well_since,
                due,
            ),
        )

    def summary(self) -> dict[str, Any]:
        """Return what the stand-ins saw."""
        return {
            "messages taken by robots": len(self.robots.taken),
            "calls of the model": len(self.server.model.seen),
            "requests to WeRSS": len(self.werss.asked),
        }

    def close(self) -> None:
        """Stop serving."""
        if hasattr(self, "services"):
            self.services.close()
        if hasattr(self, "_closing"):
            self._closing.close()


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _zone_where_it_is(hour: int, now: datetime) -> str:
    ahead = (hour - now.hour + 12) % 24 - 12
    # Their names count the other way round.
    return f"Etc/GMT{-ahead:+d}" if ahead else "Etc/GMT"
