"""Every setting once: its name, default, unit and bounds.

Values come from the environment, each with the prefix ``DOUBAN_PIPELINE_``, and from ``.env`` in the working
directory (the environment wins). Secrets stay there: no setting is ever put into Dagster config, metadata or a log.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import math
import os
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from douban_pipeline.catalog.database import DatabaseError, parse_url
from douban_pipeline.matching.profiles import PROFILES
from douban_pipeline.matching.scoring import Weights

PREFIX = "DOUBAN_PIPELINE_"
PUBLIC_REQUESTS_PER_MINUTE = 60
"""The most that any public source is known to stand; more is allowed only for a source on this machine."""

FieldPolicy = Literal["never", "fill", "overwrite"]

DEFAULT_FIELD_POLICIES: dict[str, FieldPolicy] = {
    # The collector's duplicate keys (name, type, year, area, lang, actor, director, Douban id): a rewritten key
    # makes the next collection insert a second row. Gaps may be filled; what stands is left alone.
    "vod_name": "never",
    "vod_year": "fill",
    "vod_area": "fill",
    "vod_lang": "fill",
    "vod_actor": "fill",
    "vod_director": "fill",
    # Facts no collector compares.
    "vod_sub": "fill",
    "vod_writer": "fill",
    "vod_class": "fill",
    "vod_tag": "fill",
    "vod_pubdate": "fill",
    "vod_duration": "fill",
    "vod_total": "fill",
    "vod_pic": "fill",
    "vod_content": "fill",
    "vod_blurb": "fill",
    "vod_douban_score": "overwrite",
    # Themes show and sort by vod_score, which the CMS fills with random numbers; a site may choose to mirror.
    "vod_score": "never",
}

SCORE_ITEMS = tuple(item.name for item in dataclasses.fields(Weights))
"""Items of the score whose points may be changed."""

ALLOWED = {
    "database_url": "an SQLAlchemy URL: mysql+pymysql://user:password@host:3306/database?charset=utf8mb4, or sqlite:///file",
    "table_prefix": "letters, digits and underscores, at most 20; the CMS's is usually mac_",
    "site_timezone": "an IANA time zone such as Asia/Shanghai",
    "search_provider": "searxng or douban_suggest",
    "douban_url": "an address such as http://127.0.0.1:8790/douban.php",
    "search_url": "an address such as http://127.0.0.1:8080/search",
    "excluded_type_ids": "category ids (mac_type.type_id) separated by commas, e.g. 20,31",
    "included_type_ids": "category ids (mac_type.type_id) separated by commas; empty means all",
    "match_profile": " or ".join(PROFILES),
    "score_weights": "item=points pairs separated by commas, points from 0, e.g. director=14,actors=6; items: "
    + ", ".join(SCORE_ITEMS),
    "field_policies": "column=policy pairs separated by commas; policy is never, fill or overwrite; columns: "
    + ", ".join(DEFAULT_FIELD_POLICIES),
}


class SettingsError(Exception):
    """One or more settings are wrong; the message names each variable, its value and what is allowed."""


class Settings(BaseSettings):
    """All settings; build it with `load_settings`, which explains what is wrong."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True
    )

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
    search_provider: Literal["searxng", "douban_suggest"] = Field(
        "searxng", description="Who finds candidates: searxng or douban_suggest."
    )
    search_url: str = Field("http://127.0.0.1:8790/search", description="Address of the search provider.")
    search_requests_per_minute: int = Field(20, ge=1, le=60_000, description="Requests a minute, all processes.")
    search_concurrency: int = Field(1, ge=1, le=3, description="Requests under way at once, all processes.")
    request_timeout_seconds: float = Field(20.0, gt=0, le=120, description="Wall-clock limit of one request.")
    search_cache_days: int = Field(14, ge=7, le=30, description="Age at which a search answer is asked anew.")
    subject_cache_hours: int = Field(24, ge=0, le=720, description="Age at which a subject's answer is asked anew.")

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

    dry_run: bool = Field(True, description="Judge and report, but write nothing to the CMS.")
    respect_vod_lock: bool = Field(True, description="Leave CMS rows with vod_lock = 1 alone.")
    field_policies: Annotated[dict[str, FieldPolicy], NoDecode] = Field(
        default_factory=dict, description="Overrides of the columns' write policies."
    )

    @field_validator("excluded_type_ids", "included_type_ids", mode="before")
    @classmethod
    def _type_ids(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.replace("，", ",").split(",") if part.strip()]
        if any(not part.isdecimal() for part in parts):
            raise ValueError("not a list of category ids")
        return frozenset(int(part) for part in parts)

    @field_validator("score_weights", mode="before")
    @classmethod
    def _weights(cls, value: Any) -> Any:
        if isinstance(value, str):
            pairs = [pair.partition("=") for pair in value.replace("，", ",").split(",") if pair.strip()]
            value = {item.strip(): points.strip() for item, _, points in pairs}
        unknown = sorted(set(value) - set(SCORE_ITEMS))
        if unknown:
            raise ValueError(f"unknown item {', '.join(unknown)}")
        try:
            weights = {item: float(points) for item, points in value.items()}
        except (TypeError, ValueError):
            raise ValueError("points that are no number") from None
        if not all(math.isfinite(points) and points >= 0 for points in weights.values()):
            raise ValueError("points below 0 or without end")
        return weights

    @field_validator("field_policies", mode="before")
    @classmethod
    def _policies(cls, value: Any) -> Any:
        if isinstance(value, str):
            pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
            value = {column.strip(): policy.strip() for column, _, policy in pairs}
        unknown = sorted(set(value) - set(DEFAULT_FIELD_POLICIES))
        if unknown:
            raise ValueError(f"unknown column {', '.join(unknown)}")
        return value

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            try:
                parse_url(value.get_secret_value())
            except DatabaseError as error:
                raise ValueError(str(error)) from None
        return value

    @field_validator("site_timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            raise ValueError("no such time zone") from None
        return value

    @field_validator("douban_url", "search_url")
    @classmethod
    def _http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an http:// or https:// address")
        return value

    @model_validator(mode="after")
    def _limits(self) -> Settings:
        for name, url, rate in (
            ("douban_requests_per_minute", self.douban_url, self.douban_requests_per_minute),
            ("search_requests_per_minute", self.search_url, self.search_requests_per_minute),
        ):
            if rate > PUBLIC_REQUESTS_PER_MINUTE and not _is_loopback(url):
                raise _FieldError(name, rate, f"1 to {PUBLIC_REQUESTS_PER_MINUTE} for a source outside this machine")
        if self.review_score > self.confirm_score:
            raise _FieldError(
                "review_score", self.review_score, f"at most {PREFIX}CONFIRM_SCORE, which is {self.confirm_score:g}"
            )
        if self.match_profile == "plan" and self.weights.total < self.confirm_score:
            raise _FieldError(
                "score_weights",
                ",".join(f"{item}={points:g}" for item, points in self.score_weights.items()),
                f"points that sum up to {PREFIX}CONFIRM_SCORE, which is {self.confirm_score:g}; "
                f"these sum up to {self.weights.total:g}, so that nothing could ever be confirmed",
            )
        return self

    @cached_property
    def library_url(self) -> str:
        """The database's URL with its password; for opening it, never for showing."""
        return self.database_url.get_secret_value() or f"sqlite:///{self.home.absolute() / 'demo' / 'library.sqlite'}"

    @property
    def shown_library_url(self) -> str:
        """The database's URL as people may see it."""
        return parse_url(self.library_url).render_as_string(hide_password=True)

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


class _FieldError(ValueError):
    """A value that only another value makes wrong."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{PREFIX}{field.upper()} = {str(value)!r} is not allowed: {allowed}")


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from ``overrides``, the environment and ``.env``, in this order.

    Raises:
        SettingsError: A value is wrong, or a variable with our prefix is unknown. The message has one line a
            mistake, naming the variable, the value (never of a secret) and what is allowed.
    """
    problems = _unknown_variables()
    settings = None
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        problems += [_explain(detail) for detail in error.errors()]
    if problems or settings is None:
        raise SettingsError("Wrong settings:\n" + "\n".join(f"  {problem}" for problem in problems))
    return settings


def _unknown_variables() -> list[str]:
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    problems = []
    for variable in sorted({*os.environ, *dotenv_values(".env", encoding="utf-8")}):
        if variable.upper().startswith(PREFIX) and variable.upper() not in known:
            near = difflib.get_close_matches(variable.upper(), known, n=1)
            problems.append(f"{variable} is no setting" + (f"; did you mean {near[0]}?" if near else ""))
    return problems


def _explain(detail: Any) -> str:
    if not detail["loc"]:
        return str(detail["ctx"]["error"])
    name = str(detail["loc"][0]).lower()
    allowed = ALLOWED.get(name) or _bounds(name) or _plain(detail["msg"])
    if name == "database_url":
        # The value may hold a password.
        return f"{PREFIX}{name.upper()} is not usable: {_plain(detail['msg'])}; expected {allowed}"
    value = detail["input"]
    return f"{PREFIX}{name.upper()} = {str(value)!r} is not allowed: {_plain(detail['msg'])}; expected {allowed}"


def _plain(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _bounds(name: str) -> str:
    field = Settings.model_fields.get(name)
    if field is not None and field.annotation is bool:
        return "true or false"
    if field is None or field.annotation not in (int, float):
        return ""
    kind = "a whole number" if field.annotation is int else "a number"
    low = next((f"from {item.ge:g}" for item in field.metadata if hasattr(item, "ge")), None)
    low = low or next((f"above {item.gt:g}" for item in field.metadata if hasattr(item, "gt")), "")
    high = next((f"to {item.le:g}" for item in field.metadata if hasattr(item, "le")), "")
    return " ".join(part for part in (kind, low, high) if part)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
