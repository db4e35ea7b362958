"""Settings of the TMDB system; `core.settings_base` reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.database_urls import refuse_unusable_url
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import (
    BASE_PREFIX,
    DEFAULT_OWNER,
    OWNERS,
    http_address,
    owner_name,
)
from douban_pipeline.core.shared_settings import CATEGORY_KINDS, CategorySettings

PREFIX = f"{BASE_PREFIX}TMDB_"
_GRAPH_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


class TmdbSettings(CategorySettings):
    """Settings of the system; those with a variable of the base prefix are shared with other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    allowed: ClassVar[Mapping[str, str]] = {
        "category_kinds": CATEGORY_KINDS,
        "database_url": "postgresql://user:password@host/database",
        "graph_uri": terminal_text("bolt://host:7687 or neo4j+s://host"),
        "owner": OWNERS,
        "language": terminal_text("a language such as zh-CN or en-US"),
        "api_url": terminal_text("an http:// or https:// address"),
    }

    home: Path = Field(
        Path(".douban_pipeline"), validation_alias=f"{BASE_PREFIX}HOME", description="Folder for local files."
    )
    library_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}DATABASE_URL",
        description="URL of the CMS's database, whose videos are linked to TMDB's titles.",
    )
    table_prefix: str = Field(
        "mac_", validation_alias=f"{BASE_PREFIX}TABLE_PREFIX", description="Prefix of the CMS's tables."
    )
    owner: str = Field(DEFAULT_OWNER, validation_alias=f"{BASE_PREFIX}OWNER", description="Owner shown in Dagster.")
    database_url: SecretStr = Field(SecretStr(""), description="URL of the PostgreSQL with the schema tmdb.")
    language: str = Field("zh-CN", description="Language of the base rows; others become translations.")
    api_url: str = Field("https://api.themoviedb.org/3", description="Address of TMDB's API with its version.")
    api_key: SecretStr = Field(
        SecretStr(""), description="Key of TMDB's API (v3), or its read access token, which is sent as bearer token."
    )
    requests_per_second: float = Field(
        20.0, gt=0, le=1000, description="Requests per second of runs and commands, over all processes."
    )
    enrichment_async_write_enable: bool = Field(
        True, description="Log users' questions after answering; otherwise before."
    )
    enrichment_write_queue_size: int = Field(
        100, ge=1, le=100_000, description="Questions queued in memory; further ones are queued on the disk."
    )
    questions_per_minute: int = Field(
        60, ge=1, le=100_000, description="Questions per minute and client address for which TMDB is asked."
    )
    graph_uri: str = Field("", description="Bolt address of Neo4j.")
    graph_user: str = Field("neo4j", description="Account at the graph database.")
    graph_password: SecretStr = Field(SecretStr(""), description="Its password.")
    graph_database: str = Field("neo4j", description="Name of the database there.")

    @property
    def has_key(self) -> bool:
        """Whether TMDB can be asked."""
        return bool(self.api_key.get_secret_value())

    @field_validator("owner")
    @classmethod
    def _owner(cls, value: str) -> str:
        return owner_name(value)

    @field_validator("language")
    @classmethod
    def _language(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z]{2}(-[A-Z]{2})?", value):
            raise ValueError(terminal_text("not a language with a region"))
        return value

    @field_validator("api_url")
    @classmethod
    def _address(cls, value: str) -> str:
        return http_address(value)

    @field_validator("graph_uri")
    @classmethod
    def _graph(cls, value: str) -> str:
        scheme, found, host = value.partition("://")
        if value and (not found or not host or scheme not in _GRAPH_SCHEMES):
            raise ValueError(terminal_text("not a Bolt address"))
        return value

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: SecretStr) -> SecretStr:
        refuse_unusable_url(value.get_secret_value(), setting=f"{PREFIX}DATABASE_URL", backends=("postgresql",))
        return value


def load_settings(**overrides: Any) -> TmdbSettings:
    """Return the current settings; see `SystemSettings.load`."""
    return TmdbSettings.load(**overrides)
