"""Settings of the feeds system; `core.settings_base` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.settings_base import BASE_PREFIX, http_address
from douban_pipeline.core.ui.language import said

PREFIX = f"{BASE_PREFIX}FEEDS_"


class FeedsSettings(LocatedSettings):
    """All settings of the system; those with a variable of the base prefix are shared with the other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    file: ClassVar[str] = "feeds.sqlite"
    allowed: ClassVar[Mapping[str, str]] = {
        **LocatedSettings.allowed,
        "profile": said("plan 或 budget", "plan or budget"),
        "werss_url": said("http:// 或 https:// 地址", "an http:// or https:// address"),
    }

    reports_url: str = Field(
        "", validation_alias=f"{BASE_PREFIX}REPORTS_URL", description="Address of the folder reports in HOME."
    )
    ui_url: str = Field(
        "http://127.0.0.1:3000",
        validation_alias=f"{BASE_PREFIX}UI_URL",
        description="Address of Dagster's UI, for links on the page of sources.",
    )
    alert_webhook_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_URL",
        description="Address to which alerts are sent.",
    )
    alert_webhook_kind: Literal["wecom", "dingtalk", "feishu", "generic"] = Field(
        "generic", validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_KIND", description="Format of the alerts."
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_SECRET",
        description="Signing secret of the webhook.",
    )

    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL of the feeds' tables; empty means the CMS's database, or a file in HOME.",
    )
    profile: Literal["plan", "budget"] = Field(
        "plan", description="How the next poll is chosen: plan by cadence, budget by expected gain."
    )
    polls_per_day: int = Field(
        0, ge=0, le=100_000_000, description="Polls per day of all sources in profile budget; 0 means 24 per source."
    )
    host_polls_per_day: int = Field(
        0, ge=0, le=10_000_000, description="Polls per day that one host may cost in profile budget; 0 means no limit."
    )
    max_gap: int = Field(
        86_400, ge=900, le=604_800, description="Maximum seconds between two polls of a source, in profile budget."
    )
    allow_private: bool = Field(False, description="Allow sources on loopback and private addresses.")
    requests_per_minute: int = Field(
        30, ge=1, le=60_000, description="Requests per minute to one host, over all processes."
    )
    host_concurrency: int = Field(2, ge=1, le=32, description="Concurrent requests to one host, over all processes.")
    workers: int = Field(8, ge=1, le=64, description="Sources that one run polls concurrently.")
    request_timeout_seconds: float = Field(20.0, gt=0, le=120, description="Wall-clock limit of one request.")
    max_body_bytes: int = Field(
        8_000_000, ge=10_000, le=50_000_000, description="Maximum size of an answer in bytes, uncompressed."
    )
    max_entries: int = Field(500, ge=10, le=10_000, description="Maximum number of entries read from one answer.")
    batch_size: int = Field(500, ge=1, le=10_000, description="Sources that a run leases per batch.")
    run_minutes: int = Field(10, ge=1, le=25, description="Minutes after which a run starts no further sources.")
    lease_seconds: int = Field(300, ge=30, le=3600, description="Seconds after which the lease of a source expires.")
    poll_days: int = Field(30, ge=2, le=3650, description="Days for which single polls and raw answers are kept.")
    werss_url: str = Field("", description="Address of WeRSS, for sources of the kind werss.")
    werss_prefix: str = Field("/api/v1/wx", description="Path under which WeRSS serves its API.")
    werss_username: str = Field("", description="Account at WeRSS.")
    werss_password: SecretStr = Field(SecretStr(""), description="Its password.")
    werss_access_key: SecretStr = Field(
        SecretStr(""), description="KEY:SECRET of WeRSS 1.4.9 and later, instead of account and password."
    )

    @field_validator("werss_url", "ui_url")
    @classmethod
    def _address(cls, value: str) -> str:
        return http_address(value) if value else value


def load_settings(**overrides: Any) -> FeedsSettings:
    """Return the current settings; see `SystemSettings.load`."""
    return FeedsSettings.load(**overrides)
