"""Settings of the library's databases and of the sources: addresses, keys, rates, caches, intros."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from douban_pipeline.core.database_urls import parse_url, refuse_unusable_url
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import (
    DEFAULT_OWNER,
    HttpAddress,
    is_loopback,
    owner_name,
    split_list,
    time_zone,
)
from douban_pipeline.core.shared_settings import (
    AlertSettings,
    CategorySettings,
    ModelSettings,
    PublicSettings,
    RequestSettings,
)
from douban_pipeline.douban.pace import BACK_OFF_JITTER, BackOff, requests_at_once, videos_at_once
from douban_pipeline.douban.setting_values import (
    ALLOWED,
    CHAIN,
    DEMO_SEARCH_URL,
    SEARCH_PROVIDERS,
    daily_quotas,
    minutes,
    search_chain,
    systems,
)

PREFIX = "DOUBAN_PIPELINE_"
LIBRARY_BACKENDS = ("mysql", "mariadb", "sqlite")
"""Supported databases of a CMS's library."""
PUBLIC_REQUESTS_PER_MINUTE = 60
"""The highest rate that any public source is known to allow; higher ones are accepted only for a source on this
machine."""


class SourceSettings(AlertSettings, CategorySettings, ModelSettings, PublicSettings, RequestSettings):
    """The base class of the settings, see `settings.Settings`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    allowed = ALLOWED

    home: Path = Field(Path(".douban_pipeline"), description="Folder for the demo library and other local files.")
    language: Literal["zh", "en"] = Field(
        "zh",
        description="Language, zh or en: of Dagster's pages, and, where it is set, of the command line instead of "
        "its locale's.",
    )
    owner: str = Field(DEFAULT_OWNER, description="Owner shown in Dagster: an e-mail address, or team:NAME.")
    systems: Annotated[tuple[str, ...], NoDecode] = Field(
        ("douban",), description="Installed systems, to which setup, check, upgrade, grants and backup apply."
    )
    database_url: SecretStr = Field(
        SecretStr(""), description="SQLAlchemy URL of the CMS database; empty means the embedded SQLite demo."
    )
    feeds_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{PREFIX}FEEDS_DATABASE_URL",
        description="SQLAlchemy URL of the feeds' tables; empty means the CMS's database, or a file in HOME.",
    )
    comments_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{PREFIX}COMMENTS_DATABASE_URL",
        description="SQLAlchemy URL of the comments' tables; empty means the CMS's database, or a file in HOME.",
    )
    evidence_from_tmdb: bool = Field(
        False, description="Use TMDB's data of linked videos as evidence for matching; needs TMDB_DATABASE_URL."
    )
    evidence_from_posters: bool = Field(
        False, description="Use a poster equal to the candidate's as evidence for matching; needs the extra posters."
    )
    tmdb_database_url: SecretStr = Field(
        SecretStr(""), description="URL of the PostgreSQL with the schema tmdb; empty means one in HOME, for trials."
    )
    table_prefix: str = Field("mac_", pattern=r"^[A-Za-z0-9_]{0,20}$", description="Prefix of the CMS's tables.")

    site_timezone: str = Field("Asia/Shanghai", description="The site's time zone, in which times are shown.")

    douban_url: HttpAddress = Field(
        "http://127.0.0.1:8790/douban.php", description="Address of douban.php, called as URL?id=SUBJECT."
    )
    # Douban blocks an address for hours at about 30 a minute, 2 s apart; tools that people keep use 4 to 10.
    douban_requests_per_minute: int = Field(10, ge=1, le=60_000, description="Requests per minute, over all processes.")
    douban_concurrency: int = Field(
        0, ge=0, le=64, description="Concurrent requests, over all processes; 0: as many as the rate needs."
    )
    search_provider: Literal["searxng", "douban_suggest", "bocha", "chain"] = Field(
        "searxng", description="Search for candidates: searxng, douban_suggest, bocha, or chain, which queries several."
    )
    search_url: HttpAddress = Field(
        DEMO_SEARCH_URL, description="Address of the search provider, unless that is chain."
    )
    search_chain: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=lambda: {name: SEARCH_PROVIDERS[name] for name in ("searxng", "douban_suggest")},
        description="Providers that chain queries, in this order, each optionally with =address.",
    )
    bocha_api_key: SecretStr = Field(
        SecretStr(""), validation_alias="BOCHA_API_KEY", description="Key of the search provider bocha."
    )
    search_requests_per_minute: int = Field(10, ge=1, le=60_000, description="Requests per minute, over all processes.")
    search_concurrency: int = Field(
        0, ge=0, le=64, description="Concurrent requests, over all processes; 0: as many as the rate needs."
    )
    back_off_minutes: Annotated[tuple[float, ...], NoDecode] = Field(
        (10.0, 30.0, 120.0, 360.0, 1440.0),
        description="Minutes a video waits after its first, second … consecutive failure; the last one repeats.",
    )
    daily_quotas: Annotated[dict[str, int], NoDecode] = Field(
        default_factory=lambda: {"bocha": 1000},
        description="Maximum calls per day by source; days are in SITE_TIMEZONE.",
    )
    search_cache_days: int = Field(14, ge=7, le=30, description="Days after which a search is requested again.")

    ai_intros: bool = Field(False, description="Rewrite synopses with a language model.")
    llm_fallback_models: Annotated[tuple[str, ...], NoDecode] = Field(
        ("deepseek/deepseek-chat-v3.1",), description="Models that are called when the first cannot answer."
    )
    llm_requests_per_minute: int = Field(20, ge=1, le=60_000, description="Requests per minute, over all processes.")
    llm_concurrency: int = Field(2, ge=1, le=8, description="Concurrent requests, over all processes.")
    llm_tokens_per_minute: int = Field(60_000, ge=2_000, description="Tokens per minute, of prompts and answers.")
    llm_tokens_per_day: int = Field(2_000_000, ge=2_000, description="Tokens per day, of prompts and answers.")
    llm_budget_usd_per_day: float = Field(1.0, ge=0, le=10_000, description="US dollars per day; 0: no calls.")
    intro_min_source_han: int = Field(
        40,
        ge=1,
        le=2000,
        description="Minimum Chinese characters in Douban's synopsis for an intro to be written from it.",
    )
    intro_min_han: int = Field(120, ge=20, le=2000, description="Minimum Chinese characters in an intro.")
    intro_max_han: int = Field(300, ge=40, le=4000, description="Maximum Chinese characters in an intro.")

    @field_validator("systems", mode="before")
    @classmethod
    def _systems(cls, value: Any) -> Any:
        return systems(value)

    @field_validator("back_off_minutes", mode="before")
    @classmethod
    def _steps(cls, value: Any) -> Any:
        return minutes(value)

    @field_validator("daily_quotas", mode="before")
    @classmethod
    def _quotas(cls, value: Any) -> Any:
        return daily_quotas(value)

    @field_validator("search_chain", mode="before")
    @classmethod
    def _chain(cls, value: Any) -> Any:
        return search_chain(value)

    @field_validator("llm_fallback_models", mode="before")
    @classmethod
    def _models(cls, value: Any) -> Any:
        return tuple(split_list(value))

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: SecretStr) -> SecretStr:
        refuse_unusable_url(value.get_secret_value(), setting=terminal_text("it"), backends=LIBRARY_BACKENDS)
        return value

    @field_validator("owner")
    @classmethod
    def _owner(cls, value: str) -> str:
        return owner_name(value)

    @field_validator("site_timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        return time_zone(value)

    @model_validator(mode="after")
    def _limits_of_sources(self) -> SourceSettings:
        most = PUBLIC_REQUESTS_PER_MINUTE
        for name, urls in (
            ("douban_requests_per_minute", [self.douban_url]),
            ("search_requests_per_minute", [*self.search_urls.values()]),
            ("llm_requests_per_minute", [self.llm_url]),
        ):
            rate = getattr(self, name)
            if rate > most and not all(map(is_loopback, urls)):
                raise self.mistake(
                    name, rate, terminal_text("1 to {most} for a source outside this machine").format(most=most)
                )
        if self.intro_min_han > self.intro_max_han:
            bound = f"{PREFIX}INTRO_MAX_HAN"
            allowed = terminal_text("at most {bound}, which is {intro_max_han}").format(
                bound=bound, intro_max_han=self.intro_max_han
            )
            raise self.mistake("intro_min_han", self.intro_min_han, allowed)
        if self.evidence_from_posters and find_spec("PIL") is None:
            raise ValueError(
                terminal_text("{evidence_from_posters} = true needs a library: {missing}").format(
                    evidence_from_posters=self.variable("evidence_from_posters"),
                    missing=missing_library("Pillow", "posters"),
                )
            )
        if self.evidence_from_tmdb:
            url, setting = self.tmdb_database_url.get_secret_value(), self.variable("tmdb_database_url")
            if not url:
                needed_by = f"{self.variable('evidence_from_tmdb')} = true"
                raise ValueError(
                    terminal_text("{setting} is not set, but {needed_by} needs it").format(
                        setting=setting, needed_by=needed_by
                    )
                )
            refuse_unusable_url(url, setting=setting, backends=("postgresql",))
        for name, needed_by, needed in (
            ("bocha_api_key", terminal_text("the search provider bocha"), "bocha" in self.search_urls),
            ("openrouter_api_key", f"{PREFIX}AI_INTROS = true", self.ai_intros),
        ):
            if needed and not getattr(self, name).get_secret_value():
                raise ValueError(
                    terminal_text(
                        "{variable} is not set, but {needed_by} needs it: put the key into the environment"
                    ).format(variable=self.variable(name), needed_by=needed_by)
                )
        return self

    @cached_property
    def library_url(self) -> str:
        """The database's URL with its password, for connecting only; never show it."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.home.absolute() / 'demo' / 'library.sqlite'}"

    @property
    def feeds_tables_url(self) -> str:
        """URL of the database with the feeds' tables, by the rule of the feeds system; with its password."""
        given = self.feeds_url.get_secret_value() or self.database_url.get_secret_value()
        return given or f"sqlite:///{self.home / 'feeds.sqlite'}"

    @property
    def comments_tables_url(self) -> str:
        """URL of the database with the comments' tables, by the rule of the comments system; with its password."""
        given = self.comments_url.get_secret_value() or self.database_url.get_secret_value()
        return given or f"sqlite:///{self.home / 'comments.sqlite'}"

    @property
    def shown_library_url(self) -> str:
        """The database's URL without its password."""
        return parse_url(self.library_url, setting=self.variable("database_url")).render_as_string(hide_password=True)

    @property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return ZoneInfo(self.site_timezone)

    @property
    def search_urls(self) -> dict[str, str]:
        """The search providers in use with their addresses, in the order in which they are queried."""
        if self.search_provider == CHAIN:
            return self.search_chain
        own = self.search_url if self.search_url != DEMO_SEARCH_URL else SEARCH_PROVIDERS[self.search_provider]
        return {self.search_provider: own}

    @property
    def douban_at_once(self) -> int:
        """Most concurrent requests to Douban, over all processes."""
        return self.douban_concurrency or requests_at_once(self.douban_requests_per_minute, least=2)

    @property
    def search_at_once(self) -> int:
        """Most concurrent requests to a search, over all processes."""
        return self.search_concurrency or requests_at_once(self.search_requests_per_minute)

    @property
    def videos_in_work(self) -> int:
        """Number of videos that a run processes at once."""
        return videos_at_once(self.search_at_once, self.douban_at_once)

    @property
    def search_cache_age(self) -> timedelta:
        """Age from which a search answer is requested again."""
        return timedelta(days=self.search_cache_days)

    @cached_property
    def back_off(self) -> BackOff:
        """How long a video waits after failures in a row."""
        return BackOff(tuple(timedelta(minutes=step) for step in self.back_off_minutes), BACK_OFF_JITTER)
