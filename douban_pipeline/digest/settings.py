"""Settings of the digest system; `core.settings_base` reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.messages.channels import KINDS, read_channels
from douban_pipeline.core.settings_base import (
    BASE_PREFIX,
    HttpAddress,
    split_list,
)
from douban_pipeline.core.shared_settings import (
    HTTP_ADDRESS,
    AlertSettings,
    PublicSettings,
    RequestSettings,
    WerssSettings,
)

PREFIX = f"{BASE_PREFIX}DIGEST_"
ALERT_CHANNEL = "告警"
"""Name of the alerts' webhook among the channels; none of `PUSH_CHANNELS` can have it, for names there are Latin."""
OPERATOR = "operator"
"""What the name of a channel begins with that gets the alerts, and nothing else."""
_SLOT = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


class DigestSettings(AlertSettings, PublicSettings, RequestSettings, WerssSettings, LocatedSettings):
    """Settings of the system; those with a variable of another prefix are shared with other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    file: ClassVar[str] = "digest.sqlite"
    allowed: ClassVar[Mapping[str, str]] = {
        **LocatedSettings.allowed,
        "schedule_slots": terminal_text("times of the day such as 07:00, ascending; the last slot makes the report"),
        "werss_url": HTTP_ADDRESS,
        "deepseek_url": terminal_text("the http:// or https:// address of chat completions"),
        "public_url": HTTP_ADDRESS,
        "push_channels": terminal_text(
            "[NAME=]KIND+ADDRESS[#SECRET], several separated by blanks, with a kind of {kinds}; see the manual"
        ).format(kinds=", ".join(KINDS)),
        "quiet_hours": terminal_text("two times with a dash between them, such as 23:00-07:00"),
    }

    feeds_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}FEEDS_DATABASE_URL",
        description="SQLAlchemy URL of the feeds' tables.",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL of the digest's tables; empty means the CMS's database, or a file in HOME.",
    )
    schedule_slots: Annotated[tuple[str, ...], NoDecode] = Field(
        ("07:00", "12:00", "14:00", "18:00", "22:00"),
        description="Times of the slots in SITE_TIMEZONE; the last slot makes the report.",
    )
    window_days: int = Field(3, ge=1, le=14, description="Days before a slot whose articles it ingests.")
    push_score_threshold: int = Field(60, ge=0, le=100, description="Score from which an analysis is a finding.")
    max_articles_per_slot: int = Field(50, ge=1, le=1000, description="Articles that one slot analyses, newest first.")
    worker_concurrency: int = Field(2, ge=1, le=32, description="Concurrent calls of the model, over all processes.")
    feed_sources: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Ids of sources of the feeds system whose entries are digested too; * for all."
    )
    werss_accounts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Ids of the public accounts to digest; empty means all that WeRSS follows."
    )
    deepseek_url: HttpAddress = Field(
        "https://api.deepseek.com/chat/completions", description="Address of OpenAI-compatible chat completions."
    )
    deepseek_api_key: SecretStr = Field(SecretStr(""), description="Key of the model's service.")
    deepseek_model: str = Field("deepseek-reasoner", min_length=1, description="Name of the model in the pipeline.")
    deepseek_max_retries: int = Field(3, ge=0, le=3, description="Retries per article after a failed call.")
    deepseek_content_truncate_chars: int = Field(
        16_000, ge=500, le=200_000, description="Characters of an article that are passed to the model."
    )
    deepseek_timeout_seconds: float = Field(
        300.0, gt=0, le=1200, description="Wall-clock limit of a call of the model."
    )
    deepseek_tokens_per_day: int = Field(0, ge=0, description="Tokens of the model per day; 0 means no limit.")
    push_channels: SecretStr = Field(
        SecretStr(""),
        description="Channels of messages, each [NAME=]KIND+ADDRESS[#SECRET], separated by blanks; "
        "those whose names begin with operator get the alerts, and nothing else.",
    )
    quiet_hours: str = Field("", description="Hours that delay findings, not the report, such as 23:00-07:00.")

    @field_validator("schedule_slots", "feed_sources", "werss_accounts", mode="before")
    @classmethod
    def _items(cls, value: Any) -> Any:
        return split_list(value)

    @field_validator("schedule_slots")
    @classmethod
    def _slots(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or list(value) != sorted(set(value)) or not all(_SLOT.fullmatch(slot) for slot in value):
            raise ValueError(terminal_text("not an ascending list of times"))
        return value

    @field_validator("push_channels")
    @classmethod
    def _channels(cls, value: SecretStr) -> SecretStr:
        read_channels(value.get_secret_value())
        return value

    @field_validator("quiet_hours")
    @classmethod
    def _quiet(cls, value: str) -> str:
        read_quiet_hours(value)
        return value

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels for readers, who get findings and reports."""
        return tuple(each for each in self._named if not each.startswith(OPERATOR))

    @property
    def operator_channels(self) -> tuple[str, ...]:
        """Names of the channels for operators, who get alerts: those named so, and the alerts' webhook."""
        webhook = (ALERT_CHANNEL,) if self.alert_webhook_url.get_secret_value() else ()
        return (*(each for each in self._named if each.startswith(OPERATOR)), *webhook)

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(read_channels(self.push_channels.get_secret_value()))

    @property
    def quiet(self) -> tuple[time, ...]:
        """Start and end of the quiet hours; empty if there are none."""
        return read_quiet_hours(self.quiet_hours)

    @property
    def report_slot(self) -> str:
        """The slot that ends the day with its report."""
        return self.schedule_slots[-1]

    @property
    def window(self) -> timedelta:
        """How far back a slot reads."""
        return timedelta(days=self.window_days)

    @property
    def feeds_tables_url(self) -> str:
        """The URL of the feeds system's tables, by that system's rule."""
        given = self.feeds_url.get_secret_value() or self.library_url.get_secret_value()
        return given or f"sqlite:///{self.home / 'feeds.sqlite'}"


def read_quiet_hours(text: str) -> tuple[time, ...]:
    """Return start and end of hours such as ``23:00-07:00``; empty for an empty text.

    Raises:
        ValueError: They cannot be parsed, or start and end are equal.
    """
    if not text.strip():
        return ()
    begin, dash, end = (part.strip() for part in text.partition("-"))
    try:
        hours = (time.fromisoformat(begin), time.fromisoformat(end))
    except ValueError:
        raise ValueError(terminal_text("not two times with a dash between them")) from None
    if not dash or hours[0] == hours[1]:
        raise ValueError(terminal_text("not two different times with a dash between them"))
    return hours


def load_settings(**overrides: Any) -> DigestSettings:
    """Return the current settings; see `SystemSettings.load`."""
    return DigestSettings.load(**overrides)
