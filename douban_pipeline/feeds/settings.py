"""Settings of the feeds system; `core.settings_base` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.settings_base import BASE_PREFIX, HttpAddress
from douban_pipeline.core.shared_settings import (
    HTTP_ADDRESS,
    AlertSettings,
    PublicSettings,
    RequestSettings,
    WerssSettings,
)

PREFIX = f"{BASE_PREFIX}FEEDS_"
LEAST_PASSWORD = 12


class FeedsSettings(AlertSettings, PublicSettings, RequestSettings, WerssSettings, LocatedSettings):
    """All settings of the system; those with a variable of the base prefix are shared with the other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    file: ClassVar[str] = "feeds.sqlite"
    allowed: ClassVar[Mapping[str, str]] = {
        **LocatedSettings.allowed,
        "profile": terminal_text("plan or budget"),
        "werss_url": HTTP_ADDRESS,
        "reader_password": terminal_text(
            "at least {least_password} characters, such as the output of `openssl rand -hex 12`"
        ).format(least_password=LEAST_PASSWORD),
    }

    ui_url: HttpAddress = Field(
        "http://127.0.0.1:3000",
        validation_alias=f"{BASE_PREFIX}UI_URL",
        description="Address of Dagster's UI, for links on the page of sources.",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL of the feeds' tables; empty means the CMS's database, or a file in HOME.",
    )
    profile: Literal["plan", "budget"] = Field(
        "budget", description="How the next poll is chosen: plan by cadence, budget by expected gain."
    )
    polls_per_source_per_day: int = Field(
        24, ge=1, le=1440, description="Polls per day and source in profile budget, shared among all by expected gain."
    )
    allow_private: bool = Field(False, description="Allow sources on loopback and private addresses.")
    requests_per_minute: int = Field(
        30, ge=1, le=60_000, description="Requests per minute to one host, over all processes."
    )
    reader_password: SecretStr = Field(
        SecretStr(""),
        description="Password of phones' readers (Google Reader's API; user name: reader); empty switches it off.",
    )
    credentials_file: str = Field(
        "", description="File with credentials of sources by name, which only its owner may read (mode 600)."
    )

    @field_validator("reader_password")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        given = value.get_secret_value()
        if given and len(given) < LEAST_PASSWORD:
            raise ValueError(terminal_text("too short"))
        return value


def load_settings(**overrides: Any) -> FeedsSettings:
    """Return the current settings; see `SystemSettings.load`."""
    return FeedsSettings.load(**overrides)
