"""Every setting of the digest system; where they are read: `core.settings_base`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.messages.channels import KINDS, read_channels
from douban_pipeline.core.settings_base import (
    BASE_PREFIX,
    http_address,
    split_list,
    split_pairs,
)

PREFIX = f"{BASE_PREFIX}DIGEST_"
_SLOT = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


class DigestSettings(LocatedSettings):
    """All settings of the system; those with a variable of another prefix are shared with the other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    file: ClassVar[str] = "digest.sqlite"
    allowed: ClassVar[Mapping[str, str]] = {
        **LocatedSettings.allowed,
        "schedule_slots": "times of the day such as 07:00, ascending; the last one is the report's",
        "werss_url": "an http:// or https:// address",
        "deepseek_url": "the http:// or https:// address of chat completions",
        "deepseek_thinking": "enabled, disabled or unsent",
        "public_url": "an http:// or https:// address",
        "push_channels": "[NAME=]KIND+ADDRESS[#SECRET], several separated by blanks, "
        f"with a kind of {', '.join(KINDS)}; see the manual",
        "quiet_hours": "two times with a dash between them, such as 23:00-07:00",
    }

    feeds_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}FEEDS_DATABASE_URL",
        description="SQLAlchemy URL of the feeds' tables.",
    )
    reports_url: str = Field(
        "", validation_alias=f"{BASE_PREFIX}REPORTS_URL", description="Address of the folder reports in HOME."
    )
    alert_webhook_url: SecretStr = Field(
        SecretStr(""), validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_URL", description="Address that alerts go to."
    )
    alert_webhook_kind: Literal["wecom", "dingtalk", "feishu", "generic"] = Field(
        "generic", validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_KIND", description="Form of the alerts."
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_SECRET",
        description="Signing secret of the webhook.",
    )

    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL of the digest's tables; empty means the CMS's database, or a file in HOME.",
    )
    schedule_slots: Annotated[tuple[str, ...], NoDecode] = Field(
        ("07:00", "12:00", "14:00", "18:00", "22:00"),
        description="Times of the slots in SITE_TIMEZONE; the last one is the report's.",
    )
    window_days: int = Field(3, ge=1, le=14, description="Days back from a slot whose articles it takes in.")
    catch_up_days: int = Field(
        14, ge=1, le=60, description="Most days back where an account was not read for longer than WINDOW_DAYS."
    )
    push_score_threshold: int = Field(60, ge=0, le=100, description="Score from which an analysis is a finding.")
    max_articles_per_slot: int = Field(50, ge=1, le=1000, description="Articles that one slot analyses, newest first.")
    slot_minutes: int = Field(
        20, ge=1, le=25, description="Minutes after which a slot begins no further call of the model."
    )
    lease_seconds: int = Field(300, ge=30, le=3600, description="How long a slot stays a silent run's.")
    max_slot_attempts: int = Field(
        3, ge=1, le=20, description="Slots in which an article whose analysis fails is tried."
    )
    retries_per_slot: int = Field(
        10, ge=0, le=1000, description="Articles that failed before which one slot tries again."
    )
    worker_concurrency: int = Field(2, ge=1, le=32, description="Calls of the model under way at once, all processes.")
    rubric_folder: str = Field(
        "", description="Folder of subject.md and rubric.md; empty means digest in HOME, then those that are built in."
    )
    feed_sources: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Ids of sources of the system feeds whose entries are digested too; * for all of them."
    )
    werss_url: str = Field("", description="Address of WeRSS.")
    werss_prefix: str = Field("/api/v1/wx", description="Path under which WeRSS serves its API.")
    werss_username: str = Field("", description="Account at WeRSS.")
    werss_password: SecretStr = Field(SecretStr(""), description="Its password.")
    werss_access_key: SecretStr = Field(
        SecretStr(""), description="KEY:SECRET of WeRSS 1.4.9 and later, in place of account and password."
    )
    werss_accounts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Ids of the public accounts to digest; empty means all that WeRSS follows."
    )
    werss_requests_per_minute: int = Field(6000, ge=1, le=60_000, description="Requests a minute that WeRSS gets.")
    werss_timeout_seconds: float = Field(20.0, gt=0, le=120, description="Wall-clock limit of a request to WeRSS.")
    stale_hours: int = Field(36, ge=1, le=720, description="Hours without a sync after which an account is stale.")
    deepseek_url: str = Field(
        "https://api.deepseek.com/chat/completions", description="Address of chat completions as OpenAI has them."
    )
    deepseek_api_key: SecretStr = Field(SecretStr(""), description="Key of the model's service.")
    deepseek_model: str = Field("deepseek-reasoner", min_length=1, description="The model, by the name used here.")
    deepseek_wire_models: Annotated[dict[str, str], NoDecode] = Field(
        {"deepseek-reasoner": "deepseek-flash"},
        description="What the service calls a model today; a model without an entry is sent by its name.",
    )
    deepseek_thinking: Literal["enabled", "disabled", "unsent"] = Field(
        "enabled", description="Whether the model is asked to think; unsent leaves it out, for other services."
    )
    deepseek_temperature: float = Field(0.2, ge=0, le=2, description="Temperature; ignored by models that think.")
    deepseek_max_tokens: int = Field(
        8000, ge=200, le=200_000, description="Most tokens of an answer, thoughts counted."
    )
    deepseek_max_retries: int = Field(3, ge=0, le=3, description="Calls after the first one of an article that failed.")
    deepseek_content_truncate_chars: int = Field(
        16_000, ge=500, le=200_000, description="Characters of an article that the model is given."
    )
    deepseek_timeout_seconds: float = Field(
        300.0, gt=0, le=1200, description="Wall-clock limit of a call of the model."
    )
    deepseek_requests_per_minute: int = Field(600, ge=1, le=60_000, description="Calls of the model a minute.")
    deepseek_tokens_per_day: int = Field(0, ge=0, description="Tokens of the model a day; 0 means no limit.")
    public_url: str = Field("", description="Address under which people reach the pages, for links in messages.")
    push_channels: SecretStr = Field(
        SecretStr(""), description="Channels of messages, each [NAME=]KIND+ADDRESS[#SECRET], separated by blanks."
    )
    push_timeout_seconds: float = Field(10.0, gt=0, le=60, description="Wall-clock limit of sending one message.")
    quiet_hours: str = Field("", description="Hours in which findings wait, such as 23:00-07:00; never the report.")

    @field_validator("schedule_slots", "feed_sources", "werss_accounts", mode="before")
    @classmethod
    def _items(cls, value: Any) -> Any:
        return split_list(value)

    @field_validator("deepseek_wire_models", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        return split_pairs(value)

    @field_validator("schedule_slots")
    @classmethod
    def _slots(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or list(value) != sorted(set(value)) or not all(_SLOT.fullmatch(slot) for slot in value):
            raise ValueError("no ascending list of times")
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

    @field_validator("werss_url", "deepseek_url", "public_url")
    @classmethod
    def _address(cls, value: str) -> str:
        return http_address(value) if value else value

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels that messages go to."""
        return tuple(read_channels(self.push_channels.get_secret_value()))

    @property
    def quiet(self) -> tuple[time, ...]:
        """Beginning and end of the quiet hours; nothing where there are none."""
        return read_quiet_hours(self.quiet_hours)

    @property
    def report_slot(self) -> str:
        """The slot that ends the day with its report."""
        return self.schedule_slots[-1]

    @property
    def window(self) -> timedelta:
        """How far back a slot looks."""
        return timedelta(days=self.window_days)

    @property
    def feeds_tables_url(self) -> str:
        """Where the tables of the system feeds are, by its own rule."""
        given = self.feeds_url.get_secret_value() or self.library_url.get_secret_value()
        return given or f"sqlite:///{self.home / 'feeds.sqlite'}"


def read_quiet_hours(text: str) -> tuple[time, ...]:
    """Return beginning and end of hours such as ``23:00-07:00``; nothing for an empty text.

    Raises:
        ValueError: They cannot be read, or begin when they end.
    """
    if not text.strip():
        return ()
    begin, dash, end = (part.strip() for part in text.partition("-"))
    try:
        hours = (time.fromisoformat(begin), time.fromisoformat(end))
    except ValueError:
        raise ValueError("not two times with a dash between them") from None
    if not dash or hours[0] == hours[1]:
        raise ValueError("not two different times with a dash between them")
    return hours


def load_settings(**overrides: Any) -> DigestSettings:
    """Return the settings in force; see `SystemSettings.load`."""
    return DigestSettings.load(**overrides)
