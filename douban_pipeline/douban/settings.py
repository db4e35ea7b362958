"""All settings of the system: name, default, unit and bounds. They are loaded by `core.settings_base`.

Settings of the library and its sources are in `source_settings`, the base class.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from douban_pipeline.core.language import terminal_text, translatable
from douban_pipeline.core.settings_base import HttpAddress, refuse_unknown, split_list, split_pairs
from douban_pipeline.core.shared_settings import SiteSettings, path_of_video
from douban_pipeline.douban.pace import Tiers
from douban_pipeline.douban.setting_values import (
    DEFAULT_FIELD_POLICIES,
    OLDER,
    FieldPolicy,
    category_ids,
    hours_of_day,
    score_weights,
    visit_tiers,
)
from douban_pipeline.douban.source_settings import PREFIX, SourceSettings
from douban_pipeline.matching.weights import DEFAULT_PROFILE, Weights

LLM_SECONDS = 90.0
"""Wall-clock limit of one call of the language model, in seconds."""
RETRY_SECONDS = 60.0
"""How long a failed request may be retried, in seconds; see ``total_time`` of `core.http.Fetcher`."""


class Settings(SiteSettings, SourceSettings):
    """All settings; use `load_settings` to create them, which explains errors."""

    excluded_type_ids: Annotated[frozenset[int], NoDecode] = Field(
        frozenset(), description="Categories that are not processed (child categories are not included)."
    )
    included_type_ids: Annotated[frozenset[int], NoDecode] = Field(
        frozenset(), description="If set, only these categories are processed (child categories are not included)."
    )
    active_hours: Annotated[frozenset[int], NoDecode] = Field(
        frozenset(), description="Hours of the day in SITE_TIMEZONE in which automation runs; empty means all."
    )
    top_n: int = Field(5, ge=1, le=20, description="Candidates per video whose details are fetched to judge it.")
    match_profile: Literal["plan", "calibrated"] = Field(
        DEFAULT_PROFILE,
        description="Scoring of candidates: plan adds all points, calibrated rates only what can be compared.",
    )
    score_weights: Annotated[dict[str, float], NoDecode] = Field(
        default_factory=dict, description="Overrides of the points of score items."
    )
    confirm_score: float = Field(85.0, ge=0, le=100, description="Minimum score of a match that is confirmed.")
    review_score: float = Field(70.0, ge=0, le=100, description="Minimum score of a match that goes to review.")
    lead_score: float = Field(8.0, ge=0, le=100, description="Minimum lead over the best candidate of another work.")

    batch_size: int = Field(50, ge=1, le=2000, description="Videos of a shard that one run processes.")
    run_seconds: int = Field(240, ge=10, le=1500, description="Seconds after which a run starts no further videos.")
    max_due_wait_minutes: int = Field(
        10, ge=0, le=1440, description="Minutes after which a single due video is enough for a run."
    )
    due_interval_seconds: int = Field(
        0,
        ge=0,
        le=3600,
        description="Seconds between selections of due videos; 0: whenever a run may start.",
    )
    visit_tiers: Annotated[dict[str, float], NoDecode] = Field(
        default_factory=lambda: {"30": 3.0, "180": 7.0, "365": 30.0, "730": 60.0, OLDER: 90.0},
        description="Days between visits of a video, by its maximum age in days.",
    )

    ui_url: HttpAddress = Field("http://127.0.0.1:3000", description="Address of Dagster's UI, for links on pages.")
    graphql_url: HttpAddress = Field(
        "http://127.0.0.1:3000/graphql",
        description="Address of Dagster's GraphQL; decisions on the served sheet are reported to its webserver.",
    )
    site_player: str = Field(
        "/index.php/vod/play/id/{id}/sid/1/nid/1.html",
        description="Path of a video's player on the site; {id} is its vod_id.",
    )
    bulk_unlockers: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Reviewers who may unlock many ids or synopses at once; empty means nobody."
    )
    restore_locked: bool = Field(False, description="Restore locked values that were changed in the CMS.")

    dry_run: bool = Field(True, description="Judge and report, but write nothing to the CMS.")
    respect_vod_lock: bool = Field(True, description="Do not change CMS rows with vod_lock = 1.")
    sync_locked_ids: bool = Field(True, description="Refresh the other fields of videos whose id is locked.")
    field_policies: Annotated[dict[str, FieldPolicy], NoDecode] = Field(
        default_factory=dict, description="Overrides of the columns' write policies."
    )

    @field_validator("excluded_type_ids", "included_type_ids", mode="before")
    @classmethod
    def _type_ids(cls, value: Any) -> Any:
        return category_ids(value)

    @field_validator("active_hours", mode="before")
    @classmethod
    def _hours(cls, value: Any) -> Any:
        return hours_of_day(value)

    @field_validator("visit_tiers", mode="before")
    @classmethod
    def _tiers(cls, value: Any) -> Any:
        return visit_tiers(value)

    @field_validator("bulk_unlockers", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return tuple(split_list(value))

    @field_validator("score_weights", mode="before")
    @classmethod
    def _weights(cls, value: Any) -> Any:
        return score_weights(value)

    @field_validator("field_policies", mode="before")
    @classmethod
    def _policies(cls, value: Any) -> Any:
        value = split_pairs(value)
        refuse_unknown(translatable("unknown column {names}"), value, DEFAULT_FIELD_POLICIES)
        return value

    @field_validator("site_player")
    @classmethod
    def _path_of_a_video(cls, value: str) -> str:
        return path_of_video(value)

    @model_validator(mode="after")
    def _limits(self) -> Settings:
        if self.review_score > self.confirm_score:
            most, now = f"{PREFIX}CONFIRM_SCORE", f"{self.confirm_score:g}"
            allowed = terminal_text("at most {most}, which is {now}").format(most=most, now=now)
            raise self.mistake("review_score", self.review_score, allowed)
        if self.match_profile == "plan" and self.weights.total < self.confirm_score:
            raise self.mistake(
                "score_weights",
                ",".join(f"{item}={points:g}" for item, points in self.score_weights.items()),
                terminal_text(
                    "points with a sum of at least {prefix}CONFIRM_SCORE ({confirm_score:g}); the "
                    "sum is {total:g}, so that nothing could be confirmed"
                ).format(prefix=PREFIX, confirm_score=self.confirm_score, total=self.weights.total),
            )
        return self

    def works_on(self, type_id: int) -> bool:
        """Return whether a category is in scope."""
        included = not self.included_type_ids or type_id in self.included_type_ids
        return included and type_id not in self.excluded_type_ids

    def works_at(self, moment: datetime) -> bool:
        """Return whether automation works at ``moment``; requests of people are processed at any time."""
        return not self.active_hours or moment.astimezone(self.zone).hour in self.active_hours

    @property
    def review_url(self) -> str:
        """Address of the served review sheet; empty if there is no service."""
        return f"{self.public_url.rstrip('/')}/review/" if self.public_url else ""

    @cached_property
    def tiers(self) -> Tiers:
        """How often videos are visited, by age."""
        intervals = dict(self.visit_tiers)
        older = intervals.pop(OLDER)
        return Tiers.of_days({float(age): days for age, days in intervals.items()}, older=older)

    @property
    def policies(self) -> dict[str, FieldPolicy]:
        """The write policy of every column that may be synced."""
        return {**DEFAULT_FIELD_POLICIES, **self.field_policies}

    @property
    def weights(self) -> Weights:
        """Most points that each item of the score can earn."""
        return Weights(**self.score_weights)

    @property
    def lease(self) -> timedelta:
        """How long a run keeps a task without renewing its lease: twice as long as a step may go without.

        A machine that stands still for minutes does not lose its work to another one.
        """
        return 2 * self.longest_step

    @property
    def longest_step(self) -> timedelta:
        """The longest time that a step may keep its tasks without renewing their leases.

        A step starts videos for `run_seconds`. After that, at most one request per video still needs its whole time and
        its retries, because an unanswered request ends the work on that video.
        """
        last = max(self.request_timeout_seconds, LLM_SECONDS if self.ai_intros else 0.0)
        return timedelta(seconds=math.ceil(self.run_seconds + RETRY_SECONDS + last))


def load_settings(**overrides: Any) -> Settings:
    """Return the settings from ``overrides``, the environment and ``.env``, in this order of precedence.

    Raises:
        SettingsError: A setting is invalid; see `SystemSettings.load`.
    """
    return Settings.load(**overrides)


def variable(name: str) -> str:
    """Return the environment variable of the setting ``name``."""
    return Settings.variable(name)
