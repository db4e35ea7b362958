"""The services of a run of the digest system, created once from the settings. Does not depend on Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import cached_property
from pathlib import Path

from sqlalchemy import Table

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import SourceWall
from douban_pipeline.core.gate_memory import MemoryGate
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.llm import LanguageModel, ObjectForm
from douban_pipeline.core.messages.channels import read_channels
from douban_pipeline.core.messages.robots import alert_channel
from douban_pipeline.core.messages.types import Channel
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import SourceLimits, SourcePlatform
from douban_pipeline.core.werss import RULES as WERSS_RULES
from douban_pipeline.core.werss import SOURCE as WERSS
from douban_pipeline.core.werss import WeRss
from douban_pipeline.core.werss_login import FileSessions, WeRssLogin
from douban_pipeline.digest.rubrics import Rubric, read_rubric
from douban_pipeline.digest.settings import ALERT_CHANNEL, DigestSettings
from douban_pipeline.digest.store.migrations import TREE
from douban_pipeline.digest.store.tables import gate, snapshot

PUSH_TIMEOUT_SECONDS = 10.0
"""Wall-clock limit of sending one message, in seconds."""

REQUESTS_PER_MINUTE = 600
"""Calls of the model per minute: WORKER_CONCURRENCY limits them long before."""

MAX_TOKENS = 8000
"""Maximum tokens of an answer, including reasoning: one that goes on for longer has lost its way."""

WIRE_MODELS = {"deepseek-reasoner": "deepseek-flash"}
"""DeepSeek's current name by model, where the model thinks and is asked to; others are sent under their own name."""
TEMPERATURE = 0.2
"""Ignored by thinking models; others shall judge alike twice."""

WERSS_REQUESTS_PER_MINUTE = 6000
"""Requests per minute to WeRSS, which is the site's own: the gate is there for its breaker, not for its rate."""

LOCATION = "__repository__@digest"
"""Repository and code location as named in `workspace.yaml`; a run's own location takes precedence."""
MODEL = "digest_model"
"""Name of the language model at the gate and in the archive."""


@dataclass(frozen=True)
class DigestServices(SourcePlatform):
    """The platform plus the digest's sources, for one process; see `open_services`."""

    settings: DigestSettings
    location: str = LOCATION
    """Repository and code location of the run, for links into Dagster's UI."""

    @property
    def tree(self) -> MigrationTree:
        """The migrations of the system's tables."""
        return TREE

    @property
    def archive_table(self) -> Table:
        """The table of raw answers."""
        return snapshot

    @property
    def gate_table(self) -> Table:
        """The table of the sources' gates."""
        return gate

    @property
    def longest_call(self) -> timedelta:
        """The maximum duration of a call to any source."""
        return timedelta(seconds=max(self.settings.deepseek_timeout_seconds, self.settings.request_timeout_seconds))

    @property
    def lease(self) -> timedelta:
        """How long a slot and an article belong to a run that does not renew it."""
        return timedelta(seconds=15 * self.settings.request_timeout_seconds)

    @property
    def zone(self) -> tzinfo:
        """The time zone of the days in which quotas and slots are counted."""
        return self.settings.zone

    def source_limits(self) -> Mapping[str, SourceLimits]:
        """Return the limits of WeRSS and the model."""
        settings = self.settings
        return {
            WERSS: SourceLimits(WERSS_REQUESTS_PER_MINUTE, 2),
            MODEL: SourceLimits(
                REQUESTS_PER_MINUTE,
                settings.worker_concurrency,
                tokens_per_day=settings.deepseek_tokens_per_day or None,
            ),
        }

    def daily_address(self, day: date) -> str:
        """Return the address of a day's page, for messages; without a public address of the service its path."""
        return f"{self.settings.public_url.rstrip('/')}/daily/{day.isoformat()}"

    def analysis_address(self, analysis_id: int) -> str:
        """Return the address of an analysis's page, as `daily_address` does."""
        return f"{self.settings.public_url.rstrip('/')}/analysis/{analysis_id}"

    @cached_property
    def push_channels(self) -> Mapping[str, Channel]:
        """The channels for messages and the alerts' webhook, by name."""
        settings, seconds = self.settings, PUSH_TIMEOUT_SECONDS
        found: dict[str, Channel] = dict(read_channels(settings.push_channels.get_secret_value(), seconds=seconds))
        if settings.alert_webhook_url.get_secret_value():
            url, secret = settings.alert_webhook_url, settings.alert_webhook_secret
            form = settings.alert_webhook_kind
            found[ALERT_CHANNEL] = alert_channel(
                form, url.get_secret_value(), secret.get_secret_value(), name=ALERT_CHANNEL, seconds=seconds
            )
        return found

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()

    @cached_property
    def werss(self) -> WeRss:
        """Client of WeRSS, at the address of the settings.

        Raises:
            SourceWall: No address is set.
        """
        settings = self.settings
        if not settings.werss_url:
            raise SourceWall(WERSS, "没有设置 DOUBAN_PIPELINE_WERSS_URL")
        return self._werss(self.fetcher(WERSS, seconds=settings.request_timeout_seconds, attempts=2, rules=WERSS_RULES))

    def log_in_to_werss(self) -> int:
        """Log in at a person's word, without the stored token and refusals, and return how many accounts are followed.

        What earlier attempts came to is no matter now: the gate is not asked, and opened again if WeRSS answers.

        Raises:
            SourceError: WeRSS refuses the login, or does not answer.
        """
        settings = self.settings
        self.werss_sessions.forget()
        own = MemoryGate(self.clock)
        own.configure(WERSS, requests_per_minute=60, concurrency=1)
        seconds = settings.request_timeout_seconds
        fetcher = Fetcher(WERSS, own, self.archive, self.clock, timeout=seconds, deadline=seconds, rules=WERSS_RULES)
        with fetcher:
            found = len(self._werss(fetcher).accounts())
        self.gate.close(WERSS, by="digest login")
        return found

    def _werss(self, fetcher: Fetcher) -> WeRss:
        settings = self.settings
        access = settings.werss_access_key.get_secret_value()
        login = WeRssLogin(settings.werss_username, settings.werss_password.get_secret_value(), access)
        return WeRss(fetcher, settings.werss_url, login, self.clock, self.werss_sessions)

    @property
    def werss_sessions(self) -> FileSessions:
        """Storage of WeRSS's token, shared by all processes."""
        return FileSessions(self.settings.home, self.settings.werss_url, self.settings.werss_username)

    @cached_property
    def model(self) -> LanguageModel:
        """The language model for analyses; every call is one try."""
        settings = self.settings
        key = settings.deepseek_api_key.get_secret_value()
        fetcher = self.fetcher(
            MODEL,
            seconds=settings.deepseek_timeout_seconds,
            attempts=1,
            headers={"Authorization": f"Bearer {key}"} if key else None,
        )
        return LanguageModel(
            fetcher,
            settings.deepseek_url,
            model=self.wire_model,
            max_tokens=MAX_TOKENS,
            form=ObjectForm(TEMPERATURE, "enabled" if settings.deepseek_model in WIRE_MODELS else ""),
        )

    @property
    def wire_model(self) -> str:
        """The service's current name of the model."""
        return WIRE_MODELS.get(self.settings.deepseek_model, self.settings.deepseek_model)

    @property
    def rubric_folder(self) -> Path:
        """The folder of the operator's files."""
        return self.settings.home / "digest"

    @cached_property
    def rubric(self) -> Rubric:
        """What articles are judged for, and how they are scored.

        Raises:
            RubricError: A file of the operator cannot be used.
        """
        return read_rubric(self.rubric_folder)


def open_services(settings: DigestSettings, clock: Clock | None = None, location: str = LOCATION) -> DigestServices:
    """Return the services for ``settings``; connections are opened when first used.

    Args:
        settings: The settings.
        clock: The system's clock by default.
        location: Repository and code location of the run, for links into Dagster's UI.
    """
    engine = open_engine(settings.tables_url, setting=settings.database_setting)
    return DigestServices(engine=engine, clock=clock or SystemClock(), settings=settings, location=location)
