"""Every setting of the system once: its name, default, unit and bounds. Where they are read: `core.settings_base`."""

from __future__ import annotations

import math
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict
from sqlalchemy import make_url

from douban_pipeline.core.database import DatabaseError, parse_url
from douban_pipeline.core.settings_base import (
    SystemSettings,
    http_address,
    is_loopback,
    refuse_unknown,
    split_list,
    split_pairs,
    time_zone,
)
from douban_pipeline.douban.setting_values import (
    ALLOWED,
    CHAIN,
    DEFAULT_FIELD_POLICIES,
    DEMO_SEARCH_URL,
    SEARCH_PROVIDERS,
    FieldPolicy,
    category_ids,
    daily_quotas,
    score_weights,
    search_chain,
)
from douban_pipeline.matching.scoring import Weights

PREFIX = "DOUBAN_PIPELINE_"
LIBRARY_BACKENDS = ("mysql", "mariadb", "sqlite")
"""Databases that a CMS's library may lie in."""
PUBLIC_REQUESTS_PER_MINUTE = 60
"""The most that any public source is known to allow; more is allowed only for a source on this machine."""


LLM_SECONDS = 90.0
"""Wall-clock limit of one call of the language model, which takes its time."""
RETRY_SECONDS = 60.0
"""How long a request that failed may be tried again, see ``total_time`` of `core.http.Fetcher`."""


class Settings(SystemSettings):
    """All settings; build it with `load_settings`, which explains what is wrong."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    allowed = ALLOWED

    home: Path = Field(Path(".douban_pipeline"), description="Folder for the demo library and other local files.")
    database_url: SecretStr = Field(
        SecretStr(""), description="SQLAlchemy URL of the CMS database; empty means the embedded SQLite demo."
    )
    table_prefix: str = Field("mac_", pattern=r"^[A-Za-z0-9_]{0,20}$", description="Prefix of the CMS's tables.")

    site_timezone: str = Field("Asia/Shanghai", description="Time zone in which people read times.")

    douban_url: str = Field(
        "http://127.0.0.1:8790/douban.php", description="Address of douban.php, called as URL?id=SUBJECT."
    )
    douban_requests_per_minute: int = Field(30, ge=1, le=60_000, description="Requests a minute, all processes.")
    douban_concurrency: int = Field(2, ge=1, le=5, description="Requests under way at once, all processes.")
    search_provider: Literal["searxng", "douban_suggest", "bocha", "chain"] = Field(
        "searxng", description="Who finds candidates: searxng, douban_suggest, bocha, or chain, which asks several."
    )
    search_url: str = Field(DEMO_SEARCH_URL, description="Address of the search provider, unless it is chain.")
    search_chain: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=lambda: {name: SEARCH_PROVIDERS[name] for name in ("searxng", "douban_suggest")},
        description="Providers that chain asks, in this order, each perhaps with =address.",
    )
    bocha_api_key: SecretStr = Field(
        SecretStr(""), validation_alias="BOCHA_API_KEY", description="Key of the search provider bocha."
    )
    search_requests_per_minute: int = Field(20, ge=1, le=60_000, description="Requests a minute, all processes.")
    search_concurrency: int = Field(1, ge=1, le=3, description="Requests under way at once, all processes.")
    request_timeout_seconds: float = Field(20.0, gt=0, le=120, description="Wall-clock limit of one request.")
    daily_quotas: Annotated[dict[str, int], NoDecode] = Field(
        default_factory=lambda: {"bocha": 1000},
        description="Calls a day that sources are allowed, in the site's time zone.",
    )
    search_cache_days: int = Field(14, ge=7, le=30, description="Age at which a search answer is asked anew.")
    subject_cache_hours: int = Field(24, ge=0, le=720, description="Age at which a subject's answer is asked anew.")
    miss_cache_hours: int = Field(24, ge=1, le=168, description='Age at which "nothing found" is asked anew.')
    archive_days: int = Field(180, ge=30, le=3650, description="Days that answers are kept on which nothing rests.")

    ai_intros: bool = Field(False, description="Rewrite synopses with a language model.")
    openrouter_api_key: SecretStr = Field(
        SecretStr(""), validation_alias="OPENROUTER_API_KEY", description="Key of the language model's provider."
    )
    llm_url: str = Field(
        "https://openrouter.ai/api/v1/chat/completions", description="Address of the language model's provider."
    )
    llm_model: str = Field("deepseek/deepseek-v3.2", min_length=1, description="Language model that writes intros.")
    llm_fallback_models: Annotated[tuple[str, ...], NoDecode] = Field(
        ("deepseek/deepseek-chat-v3.1",), description="Models that are asked when the first cannot answer."
    )
    llm_requests_per_minute: int = Field(20, ge=1, le=60_000, description="Requests a minute, all processes.")
    llm_concurrency: int = Field(2, ge=1, le=8, description="Requests under way at once, all processes.")
    llm_tokens_per_minute: int = Field(60_000, ge=2_000, description="Tokens a minute, asked and answered.")
    llm_tokens_per_day: int = Field(2_000_000, ge=2_000, description="Tokens a day, asked and answered.")
    llm_budget_usd_per_day: float = Field(1.0, ge=0, le=10_000, description="US dollars a day; at 0 nothing is asked.")
    intro_min_han: int = Field(120, ge=20, le=2000, description="Fewest Chinese characters of an intro.")
    intro_max_han: int = Field(300, ge=40, le=4000, description="Most Chinese characters of an intro.")
    intro_interval_days: int = Field(30, ge=1, le=3650, description="Days until a video's intro is tried again.")
    intros_per_run: int = Field(10, ge=1, le=500, description="Intros a shard asks for in one run.")

    excluded_type_ids: Annotated[frozenset[int], NoDecode] = Field(
        frozenset(), description="Categories that are left alone (their children are not implied)."
    )
    included_type_ids: Annotated[frozenset[int], NoDecode] = Field(
        frozenset(), description="If any are named, only these are worked on (their children are not implied)."
    )
    top_n: int = Field(5, ge=1, le=20, description="Candidates whose details are fetched to judge a video.")
    match_profile: Literal["plan", "calibrated"] = Field(
        "plan",
        description="How a candidate is scored: plan adds up points, calibrated the share of what can be compared.",
    )
    score_weights: Annotated[dict[str, float], NoDecode] = Field(
        default_factory=dict, description="Overrides of the points of score items."
    )
    confirm_score: float = Field(85.0, ge=0, le=102, description="Score from which a match may be confirmed.")
    review_score: float = Field(70.0, ge=0, le=102, description="Score from which a match is worth a person's look.")
    lead_score: float = Field(8.0, ge=0, le=102, description="Least lead over the best other work.")
    title_floor: float = Field(0.55, ge=0, le=1, description="Title similarity under which a candidate is rejected.")
    year_gap: int = Field(3, ge=2, le=50, description="Years apart from which a candidate is rejected.")

    precision_target: float = Field(
        0.95, ge=0.5, le=0.999, description="Share of right automatic links that every stratum must be known to reach."
    )
    precision_least_labels: int = Field(
        30, ge=1, le=100_000, description="Decisions of people in a stratum from which its precision is judged at all."
    )

    batch_size: int = Field(50, ge=1, le=2000, description="Videos a shard takes on in one run.")
    run_seconds: int = Field(240, ge=10, le=1500, description="After this long a run takes on no more videos.")
    lease_seconds: int = Field(900, ge=60, le=7200, description="How long a task stays a silent run's.")
    min_due_per_run: int = Field(10, ge=1, le=2000, description="Due videos in a shard that are worth a run.")
    max_due_wait_minutes: int = Field(10, ge=0, le=1440, description="A due video this old is worth a run alone.")
    max_sync_runs: int = Field(2, ge=1, le=16, description="Chain runs the due sensor keeps under way at once.")
    history_days: int = Field(30, ge=1, le=3650, description="Days that finished runs and tasks are kept.")

    ui_url: str = Field("http://127.0.0.1:3000", description="Address of Dagster's UI, for links in review sheets.")
    reports_url: str = Field("", description="Address under which the folder reports in HOME is served, if it is.")
    restore_locked: bool = Field(False, description="Put locked values back that were changed in the CMS.")

    alert_webhook_url: SecretStr = Field(
        SecretStr(""), description="Address that alerts are posted to; empty means that they only show in the UI."
    )
    alert_webhook_kind: Literal["wecom", "dingtalk", "feishu", "generic"] = Field(
        "generic", description="Form of the alerts: wecom, dingtalk, feishu or generic (JSON)."
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Signing secret of the webhook, where dingtalk, feishu or generic has one."
    )
    warn_no_success_hours: int = Field(6, ge=1, le=168, description="Hours without a success while work waits.")
    warn_failure_rate: float = Field(0.3, gt=0, le=1, description="Share of failures in an hour that is too many.")
    warn_backlog_growth: float = Field(
        0.25, gt=0, le=10, description="Growth of the backlog in a day that is too much."
    )

    dry_run: bool = Field(True, description="Judge and report, but write nothing to the CMS.")
    respect_vod_lock: bool = Field(True, description="Leave CMS rows with vod_lock = 1 alone.")
    field_policies: Annotated[dict[str, FieldPolicy], NoDecode] = Field(
        default_factory=dict, description="Overrides of the columns' write policies."
    )

    @field_validator("excluded_type_ids", "included_type_ids", mode="before")
    @classmethod
    def _type_ids(cls, value: Any) -> Any:
        return category_ids(value)

    @field_validator("score_weights", mode="before")
    @classmethod
    def _weights(cls, value: Any) -> Any:
        return score_weights(value)

    @field_validator("field_policies", mode="before")
    @classmethod
    def _policies(cls, value: Any) -> Any:
        value = split_pairs(value)
        refuse_unknown("column", value, DEFAULT_FIELD_POLICIES)
        return value

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
        if value.get_secret_value():
            try:
                parse_url(value.get_secret_value(), setting="it", backends=LIBRARY_BACKENDS)
            except DatabaseError as error:
                raise ValueError(str(error)) from None
        return value

    @field_validator("site_timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        return time_zone(value)

    @field_validator("douban_url", "search_url", "llm_url", "ui_url", "reports_url")
    @classmethod
    def _http(cls, value: str) -> str:
        return http_address(value) if value else value

    @field_validator("alert_webhook_url")
    @classmethod
    def _webhook(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            http_address(value.get_secret_value())
        return value

    @model_validator(mode="after")
    def _limits(self) -> Settings:
        most = PUBLIC_REQUESTS_PER_MINUTE
        for name, urls in (
            ("douban_requests_per_minute", [self.douban_url]),
            ("search_requests_per_minute", [*self.search_urls.values()]),
            ("llm_requests_per_minute", [self.llm_url]),
        ):
            rate = getattr(self, name)
            if rate > most and not all(map(is_loopback, urls)):
                raise self.mistake(name, rate, f"1 to {most} for a source outside this machine")
        if self.lease < self.longest_step:
            raise self.mistake(
                "lease_seconds",
                self.lease_seconds,
                f"at least {self.longest_step.total_seconds():g}, which is how long a step may take: "
                f"{PREFIX}RUN_SECONDS, which is {self.run_seconds}, and the request begun last with its retries",
            )
        if self.review_score > self.confirm_score:
            raise self.mistake(
                "review_score", self.review_score, f"at most {PREFIX}CONFIRM_SCORE, which is {self.confirm_score:g}"
            )
        if self.intro_min_han > self.intro_max_han:
            raise self.mistake(
                "intro_min_han", self.intro_min_han, f"at most {PREFIX}INTRO_MAX_HAN, which is {self.intro_max_han}"
            )
        for name, needed_by, needed in (
            ("bocha_api_key", "the search provider bocha", "bocha" in self.search_urls),
            ("openrouter_api_key", f"{PREFIX}AI_INTROS = true", self.ai_intros),
        ):
            if needed and not getattr(self, name).get_secret_value():
                raise ValueError(
                    f"{variable(name)} is not set, but {needed_by} needs it: put the key into the environment"
                )
        if self.match_profile == "plan" and self.weights.total < self.confirm_score:
            raise self.mistake(
                "score_weights",
                ",".join(f"{item}={points:g}" for item, points in self.score_weights.items()),
                f"points that sum up to {PREFIX}CONFIRM_SCORE, which is {self.confirm_score:g}; "
                f"these sum up to {self.weights.total:g}, so that nothing could ever be confirmed",
            )
        return self

    def works_on(self, type_id: int) -> bool:
        """Return whether videos of a category are worked on."""
        included = not self.included_type_ids or type_id in self.included_type_ids
        return included and type_id not in self.excluded_type_ids

    @cached_property
    def library_url(self) -> str:
        """The database's URL with its password; for opening it, never for showing."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.home.absolute() / 'demo' / 'library.sqlite'}"

    @property
    def shown_library_url(self) -> str:
        """The database's URL as people may see it."""
        return make_url(self.library_url).render_as_string(hide_password=True)

    @property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return ZoneInfo(self.site_timezone)

    @property
    def policies(self) -> dict[str, FieldPolicy]:
        """The write policy of every column that may be synced."""
        return {**DEFAULT_FIELD_POLICIES, **self.field_policies}

    @property
    def weights(self) -> Weights:
        """Most points that each item of the score can earn."""
        return Weights(**self.score_weights)

    @property
    def search_urls(self) -> dict[str, str]:
        """The search providers in use with their addresses, in the order they are asked."""
        if self.search_provider == CHAIN:
            return self.search_chain
        own = self.search_url if self.search_url != DEMO_SEARCH_URL else SEARCH_PROVIDERS[self.search_provider]
        return {self.search_provider: own}

    @property
    def miss_cache_age(self) -> timedelta:
        """Age at which "nothing found" is asked anew."""
        return timedelta(hours=self.miss_cache_hours)

    @property
    def search_cache_age(self) -> timedelta:
        """Age at which a search answer is asked anew."""
        return timedelta(days=self.search_cache_days)

    @property
    def subject_cache_age(self) -> timedelta:
        """Age at which a subject's answer is asked anew."""
        return timedelta(hours=self.subject_cache_hours)

    @property
    def lease(self) -> timedelta:
        """How long a task stays a silent run's."""
        return timedelta(seconds=self.lease_seconds)

    @property
    def longest_step(self) -> timedelta:
        """How long a step may keep its tasks without renewing their leases.

        It takes videos on for `run_seconds`. Then at most one request of a video still needs its whole time and its
        retries, for one that is not answered ends the work on that video.
        """
        last = max(self.request_timeout_seconds, LLM_SECONDS if self.ai_intros else 0.0)
        return timedelta(seconds=math.ceil(self.run_seconds + RETRY_SECONDS + last))


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from ``overrides``, the environment and ``.env``, in this order.

    Raises:
        SettingsError: Something is wrong; see `SystemSettings.load`.
    """
    return Settings.load(**overrides)


def variable(name: str) -> str:
    """Return the environment variable of the setting ``name``."""
    return Settings.variable(name)
