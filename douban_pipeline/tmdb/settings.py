"""Every setting of the TMDB system; where they are read: `core.settings_base`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.database import refuse_unusable_url
from douban_pipeline.core.settings_base import BASE_PREFIX, SystemSettings

PREFIX = f"{BASE_PREFIX}TMDB_"
_GRAPH_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


class TmdbSettings(SystemSettings):
    """All settings of the system; those with a variable of the base prefix are shared with the other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    allowed: ClassVar[Mapping[str, str]] = {
        "database_url": "postgresql://user:password@host/database",
        "graph_uri": "bolt://host:7687 or neo4j+s://host",
        "language": "a language such as zh-CN or en-US",
    }

    home: Path = Field(
        Path(".douban_pipeline"), validation_alias=f"{BASE_PREFIX}HOME", description="Folder for local files."
    )
    database_url: SecretStr = Field(
        SecretStr(""), description="URL of the PostgreSQL for the schema tmdb; empty means one in HOME, for trying."
    )
    pool_min: int = Field(1, ge=0, le=100, description="Connections to PostgreSQL that a process keeps open.")
    pool_max: int = Field(10, ge=1, le=200, description="Connections to PostgreSQL that a process opens at most.")
    language: str = Field("zh-CN", description="Language of the base rows; answers in others go to the translations.")
    graph_uri: str = Field("", description="Bolt address of Neo4j; empty means an ArcadeDB in HOME, for trying.")
    graph_user: str = Field("neo4j", description="Account at the graph database.")
    graph_password: SecretStr = Field(SecretStr(""), description="Its password.")
    graph_database: str = Field("neo4j", description="Name of the database there.")
    graph_batch: int = Field(50, ge=1, le=1000, description="Entities that one transaction of the graph writes.")
    outbox_lease_seconds: int = Field(
        300, ge=10, le=3600, description="How long claimed changes stay a silent worker's."
    )
    outbox_attempts: int = Field(8, ge=1, le=100, description="Failures after which a change is put aside.")
    outbox_days: int = Field(7, ge=1, le=3650, description="Days that rows of the outbox are kept once done.")
    request_days: int = Field(30, ge=1, le=3650, description="Days that logged questions of users are kept.")
    raw_days: int = Field(
        180, ge=1, le=180, description="Days after which TMDB's answers must be fetched again or dropped."
    )

    @field_validator("language")
    @classmethod
    def _language(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z]{2}(-[A-Z]{2})?", value):
            raise ValueError("no language with a region")
        return value

    @field_validator("graph_uri")
    @classmethod
    def _graph(cls, value: str) -> str:
        scheme, found, host = value.partition("://")
        if value and (not found or not host or scheme not in _GRAPH_SCHEMES):
            raise ValueError("no Bolt address")
        return value

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: SecretStr) -> SecretStr:
        refuse_unusable_url(value.get_secret_value(), setting=f"{PREFIX}DATABASE_URL", backends=("postgresql",))
        return value

    @model_validator(mode="after")
    def _pool(self) -> TmdbSettings:
        if self.pool_min > self.pool_max:
            raise self.mistake("pool_min", self.pool_min, f"at most {PREFIX}POOL_MAX = {self.pool_max}")
        return self


def load_settings(**overrides: Any) -> TmdbSettings:
    """Return the settings in force; see `SystemSettings.load`."""
    return TmdbSettings.load(**overrides)
