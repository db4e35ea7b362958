"""Settings of the comment system; `core.settings_base` describes where they are read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.comments.heat.score import HeatWeights
from douban_pipeline.core.database_urls import refuse_unusable_url
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.messages.channels import KINDS, read_channels
from douban_pipeline.core.settings_base import BASE_PREFIX
from douban_pipeline.core.shared_settings import ModelSettings, PublicSettings, SiteSettings

PREFIX = f"{BASE_PREFIX}COMMENTS_"

_LEAST_SECRET = 16
_TOKEN = terminal_text("at least {least_secret} characters, such as the output of `openssl rand -hex 24`").format(
    least_secret=_LEAST_SECRET
)
_HTTP = terminal_text("http://… or https://…")


class CommentsSettings(ModelSettings, PublicSettings, SiteSettings, LocatedSettings):
    """All settings of the system; those with a variable of another prefix are shared with the other systems."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    file: ClassVar[str] = "comments.sqlite"
    allowed: ClassVar[Mapping[str, str]] = {
        **LocatedSettings.allowed,
        "token_secret": terminal_text("at least {least_secret} characters").format(least_secret=_LEAST_SECRET),
        "admin_token": _TOKEN,
        "audit_token": _TOKEN,
        "api_keys": terminal_text(
            "NAME=KEY:REQUESTS_A_MINUTE, several separated by blanks, with keys of {least_secret} characters or more"
        ).format(least_secret=_LEAST_SECRET),
        "read_sites": terminal_text("NAME=DATABASE_URL,REDIS_URL, several separated by blanks"),
        "redis_url": terminal_text("redis://…, rediss://… or unix://…"),
        "origins": terminal_text("https://NAME or http://NAME:PORT without a path, several separated by blanks"),
        "friends_url": _HTTP,
        "decorations_url": _HTTP,
        "review_url": _HTTP,
        "moderator_channels": terminal_text(
            "[NAME=]KIND+ADDRESS[#SECRET], several separated by blanks, with a kind of {kinds}; see the manual"
        ).format(kinds=", ".join(KINDS)),
        "heat_weights": terminal_text('JSON such as {"decay": 0.12}; the weights are those of the score'),
    }

    database_url: SecretStr = Field(
        SecretStr(""),
        description="SQLAlchemy URL of the comments' tables; empty means the CMS's database, or a file in HOME.",
    )

    redis_url: SecretStr = Field(
        SecretStr(""), description="redis:// address of the lists; if empty, the database serves all requests."
    )
    redis_prefix: str = Field("cmt:", min_length=1, max_length=32, description="Prefix of every key in Redis.")
    follow: Literal["events", "binlog"] = Field(
        "events", description="Source of list updates: events applied by workers, or the database's binary log (ROW)."
    )
    token_secret: SecretStr = Field(
        SecretStr(""), description="Secret of the tokens (JWT, HS256) that identify visitors; empty accepts none."
    )
    cms_login: bool = Field(True, description="Whether the CMS's own login cookies identify visitors.")
    table_prefix: str = Field(
        "mac_", validation_alias=f"{BASE_PREFIX}TABLE_PREFIX", description="Prefix of the CMS's tables."
    )
    origins: str = Field(
        "", description="Origins of other sites whose pages may call the API, separated by blanks; empty means none."
    )
    guests: bool = Field(False, description="Whether unidentified visitors may write and like.")
    admin_token: SecretStr = Field(
        SecretStr(""), description="Bearer token of operators; empty disables the admin pages."
    )
    audit_token: SecretStr = Field(
        SecretStr(""), description="Bearer token of auditors, whose decisions operators cannot undo; empty disables it."
    )
    api_keys: SecretStr = Field(
        SecretStr(""), description="Keys of other servers, each NAME=KEY:REQUESTS_A_MINUTE, separated by blanks."
    )
    read_sites: SecretStr = Field(
        SecretStr(""), description="Read replicas, each NAME=DATABASE_URL,REDIS_URL, separated by blanks."
    )
    words_folder: str = Field(
        "",
        description=(
            "The CMS's application/extra: filter_words of its maccms.php are masked, words of its blacks.php send "
            "comments to review, addresses there are refused; empty means none."
        ),
    )
    publish_per_minute: int = Field(
        10, ge=0, le=10_000, description="Maximum comments of a user within a minute; more are refused; 0: no limit."
    )
    guest_links_to_review: int = Field(
        1, ge=0, le=100, description="Number of links from which a guest's comment waits for review; 0: never."
    )
    friends_url: str = Field("", description="Service that returns a user's friends (GET ?user=ID); empty means none.")
    decorations_url: str = Field("", description="Service that returns users' badges (POST); empty means none.")
    review_url: str = Field("", description="Service with a model that reviews comments (POST); empty means none.")
    plug_token: SecretStr = Field(SecretStr(""), description="Bearer token for these three services; empty sends none.")
    review_by_llm: bool = Field(
        False, description="Whether the language model of LLM_URL reviews comments; REVIEW_URL takes precedence."
    )
    heat_weights: dict[str, float] = Field(
        default_factory=dict, description="Weights of the score that differ from the defaults, as JSON."
    )
    import_batch: int = Field(
        20_000, ge=0, le=1_000_000, description="Maximum comments of the CMS that one run imports; 0: none."
    )
    retention_days: int = Field(
        200,
        ge=1,
        le=3650,
        description="Days that addresses, the texts of removed comments and what visitors asked for (events) are kept.",
    )
    moderator_channels: SecretStr = Field(
        SecretStr(""),
        description="Channels that notify moderators of waiting comments: robots, webhooks, mail; empty means none.",
    )
    export: bool = Field(
        False, description="Whether the status of comments is written back to the CMS's, within a minute."
    )

    @field_validator("heat_weights")
    @classmethod
    def _weights(cls, value: dict[str, float]) -> dict[str, float]:
        try:
            HeatWeights.of(value)
        except ProblemsError as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("token_secret", "admin_token", "audit_token")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and len(value.get_secret_value()) < _LEAST_SECRET:
            raise ValueError(terminal_text("too short"))
        return value

    @field_validator("api_keys")
    @classmethod
    def _keys(cls, value: SecretStr) -> SecretStr:
        read_api_keys(value.get_secret_value())
        return value

    @field_validator("moderator_channels")
    @classmethod
    def _channels(cls, value: SecretStr) -> SecretStr:
        read_channels(value.get_secret_value())
        return value

    @field_validator("read_sites")
    @classmethod
    def _sites(cls, value: SecretStr) -> SecretStr:
        for database, _ in read_sites(value.get_secret_value()).values():
            refuse_unusable_url(database, setting=f"{PREFIX}READ_SITES")
        return value

    @model_validator(mode="after")
    def _llm(self) -> Self:
        if self.review_by_llm and not self.openrouter_api_key.get_secret_value():
            raise self.mistake(
                "review_by_llm",
                "true",
                terminal_text("false, unless OPENROUTER_API_KEY is set"),
            )
        return self

    @field_validator("origins")
    @classmethod
    def _origins(cls, value: str) -> str:
        for origin in value.split():
            parts = urlsplit(origin)
            if (
                parts.scheme not in ("http", "https")
                or not parts.hostname
                or origin != f"{parts.scheme}://{parts.netloc}"
            ):
                raise ValueError(terminal_text("not an origin"))
            if parts.username is not None or not parts.hostname.isascii():
                raise ValueError(terminal_text("not an origin"))
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: SecretStr) -> SecretStr:
        given = value.get_secret_value()
        if given and not given.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError(terminal_text("not a Redis address"))
        return value

    @field_validator("friends_url", "decorations_url", "review_url")
    @classmethod
    def _address(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError(terminal_text("not an address"))
        return value

    @property
    def without_redis(self) -> str:
        """What holds where no Redis is named, and the remedy."""
        variable = self.variable("redis_url")
        return terminal_text("no Redis: the database answers everything; name one with {variable}=redis://…").format(
            variable=variable
        )

    @property
    def allowed_origins(self) -> frozenset[str]:
        """Origins of other sites whose pages may call the API."""
        return frozenset(self.origins.casefold().split())


def read_api_keys(text: str) -> dict[str, tuple[str, int]]:
    """Return (key, requests per minute) by name, from ``NAME=KEY:REQUESTS_A_MINUTE`` separated by blanks.

    Raises:
        ValueError: An entry is invalid, or its key is too short.
    """
    found: dict[str, tuple[str, int]] = {}
    for item in text.split():
        name, _, rest = item.partition("=")
        key, _, quota = rest.rpartition(":")
        if not name or not quota.isdecimal() or len(key) < _LEAST_SECRET:
            raise ValueError(terminal_text("a key that cannot be read or is too short"))
        found[name] = (key, int(quota))
    return found


def read_sites(text: str) -> dict[str, tuple[str, str]]:
    """Return (database URL, Redis URL) by name, from ``NAME=DATABASE_URL,REDIS_URL`` separated by blanks.

    Raises:
        ValueError: An entry is invalid.
    """
    found: dict[str, tuple[str, str]] = {}
    for item in text.split():
        name, equals, rest = item.partition("=")
        database, _, cache = rest.partition(",")
        if not name or not equals or not database:
            raise ValueError(terminal_text("a site that cannot be read"))
        found[name] = (database, cache)
    return found


def load_settings(**overrides: Any) -> CommentsSettings:
    """Return the current settings; see `SystemSettings.load`."""
    return CommentsSettings.load(**overrides)
