"""Settings shared by systems with tables of their own: database, owner of the assets, time zone of the site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr, field_validator

from douban_pipeline.core.database_urls import refuse_unusable_url
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import BASE_PREFIX, DEFAULT_OWNER, OWNERS, SystemSettings, owner_name, time_zone


class LocatedSettings(SystemSettings):
    """Base of the settings of systems whose tables are in the CMS's database or in one of their own.

    Settings shared by all systems use variables with the base prefix. A system names in ``file`` the SQLite file in
    HOME that holds its tables if no database is configured.
    """

    file: ClassVar[str] = ""
    allowed: ClassVar[Mapping[str, str]] = {
        "site_timezone": terminal_text("a time zone such as Asia/Shanghai"),
        "owner": OWNERS,
        "database_url": terminal_text("mysql+pymysql://…, postgresql+psycopg2://… or sqlite:///FILE"),
    }

    home: Path = Field(
        Path(".douban_pipeline"), validation_alias=f"{BASE_PREFIX}HOME", description="Folder for local files."
    )
    site_timezone: str = Field(
        "Asia/Shanghai", validation_alias=f"{BASE_PREFIX}SITE_TIMEZONE", description="Time zone of hours and days."
    )
    owner: str = Field(DEFAULT_OWNER, validation_alias=f"{BASE_PREFIX}OWNER", description="Owner shown in Dagster.")
    library_url: SecretStr = Field(
        SecretStr(""), validation_alias=f"{BASE_PREFIX}DATABASE_URL", description="SQLAlchemy URL of the CMS database."
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL of the system's tables; empty means the CMS's database, or a file in HOME.",
    )

    @field_validator("owner")
    @classmethod
    def _owner(cls, value: str) -> str:
        return owner_name(value)

    @field_validator("site_timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        return time_zone(value)

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: SecretStr) -> SecretStr:
        refuse_unusable_url(value.get_secret_value(), setting=cls.variable("database_url"))
        return value

    @property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return ZoneInfo(self.site_timezone)

    @property
    def tables_url(self) -> str:
        """URL of the system's tables: the configured one, the CMS's database, or a file in HOME."""
        given = self.database_url.get_secret_value() or self.library_url.get_secret_value()
        return given or f"sqlite:///{self.home / self.file}"

    @property
    def database_setting(self) -> str:
        """The variable that sets the URL of the system's tables."""
        uses_library = not self.database_url.get_secret_value() and self.library_url.get_secret_value()
        return self.variable("library_url" if uses_library else "database_url")
