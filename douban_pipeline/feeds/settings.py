"""Every setting of the feeds system; where they are read: `core.settings_base`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.database import refuse_unusable_url
from douban_pipeline.core.settings_base import BASE_PREFIX, OWNERS, SystemSettings, http_address, owner_name, time_zone

PREFIX = f"{BASE_PREFIX}FEEDS_"


class FeedsSettings(SystemSettings):
    """All settings of the system; those with a variable of the base prefix are shared with the other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    allowed: ClassVar[Mapping[str, str]] = {
        "profile": "plan or budget",
        "site_timezone": "a time zone such as Asia/Shanghai",
        "owner": OWNERS,
        "database_url": "mysql+pymysql://…, postgresql+psycopg2://… or sqlite:///FILE",
        "werss_url": "an http:// or https:// address",
    }

    home: Path = Field(
        Path(".douban_pipeline"), validation_alias=f"{BASE_PREFIX}HOME", description="Folder for local files."
    )
    site_timezone: str = Field(
        "Asia/Shanghai", validation_alias=f"{BASE_PREFIX}SITE_TIMEZONE", description="Time zone of hours and days."
    )
    owner: str = Field(
        "team:site", validation_alias=f"{BASE_PREFIX}OWNER", description="Owner of the assets in Dagster."
    )
    library_url: SecretStr = Field(
        SecretStr(""), validation_alias=f"{BASE_PREFIX}DATABASE_URL", description="SQLAlchemy URL of the CMS database."
    )
    reports_url: str = Field(
        "", validation_alias=f"{BASE_PREFIX}REPORTS_URL", description="Address of the folder reports in HOME."
    )
    alert_webhook_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_URL",
        description="Address that alerts are sent to.",
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
        description="SQLAlchemy URL of the feeds' tables; empty means the CMS's database, or a file in HOME.",
    )
    profile: Literal["plan", "budget"] = Field(
        "plan", description="How the next look is chosen: plan by cadence, budget by what a poll can gain."
    )
    polls_per_day: int = Field(
        0, ge=0, le=100_000_000, description="Polls a day of the whole set in profile budget; 0 means 24 a source."
    )
    host_polls_per_day: int = Field(
        0, ge=0, le=10_000_000, description="Polls a day that one host may cost in profile budget; 0 means no limit."
    )
    max_gap: int = Field(
        86_400, ge=900, le=604_800, description="Seconds after which every source is asked, in profile budget."
    )
    allow_private: bool = Field(False, description="Let sources be on loopback and private addresses.")
    requests_per_minute: int = Field(
        30, ge=1, le=60_000, description="Requests a minute that one host gets, all processes."
    )
    host_concurrency: int = Field(2, ge=1, le=32, description="Requests under way at once at one host, all processes.")
    workers: int = Field(8, ge=1, le=64, description="Sources that one run asks at the same time.")
    request_timeout_seconds: float = Field(20.0, gt=0, le=120, description="Wall-clock limit of one request.")
    max_body_bytes: int = Field(
        8_000_000, ge=10_000, le=50_000_000, description="Largest answer that is read, uncompressed."
    )
    max_entries: int = Field(500, ge=10, le=10_000, description="Entries of one answer that are taken in.")
    batch_size: int = Field(500, ge=1, le=10_000, description="Sources that a run leases at once.")
    run_minutes: int = Field(10, ge=1, le=25, description="After this long a run takes on no more sources.")
    lease_seconds: int = Field(300, ge=30, le=3600, description="How long a source stays a silent run's.")
    poll_days: int = Field(30, ge=2, le=3650, description="Days that single polls and raw answers are kept.")
    werss_url: str = Field("", description="Address of WeRSS, for sources of the kind werss.")
    werss_prefix: str = Field("/api/v1/wx", description="Path under which WeRSS serves its API.")
    werss_username: str = Field("", description="Account at WeRSS.")
    werss_password: SecretStr = Field(SecretStr(""), description="Its password.")
    werss_access_key: SecretStr = Field(
        SecretStr(""), description="KEY:SECRET of WeRSS 1.4.9 and later, in place of account and password."
    )

    @field_validator("owner")
    @classmethod
    def _owner(cls, value: str) -> str:
        return owner_name(value)

    @field_validator("site_timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        return time_zone(value)

    @field_validator("werss_url")
    @classmethod
    def _address(cls, value: str) -> str:
        return http_address(value) if value else value

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: SecretStr) -> SecretStr:
        refuse_unusable_url(value.get_secret_value(), setting=f"{PREFIX}DATABASE_URL")
        return value

    @property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return ZoneInfo(self.site_timezone)

    @property
    def tables_url(self) -> str:
        """Where the feeds' tables are: the URL given, the CMS's database, or a file in HOME."""
        given = self.database_url.get_secret_value() or self.library_url.get_secret_value()
        return given or f"sqlite:///{self.home / 'feeds.sqlite'}"

    @property
    def database_setting(self) -> str:
        """The variable that says where the feeds' tables are."""
        uses_library = not self.database_url.get_secret_value() and self.library_url.get_secret_value()
        return f"{BASE_PREFIX}DATABASE_URL" if uses_library else f"{PREFIX}DATABASE_URL"


def load_settings(**overrides: Any) -> FeedsSettings:
    """Return the settings in force; see `SystemSettings.load`."""
    return FeedsSettings.load(**overrides)
