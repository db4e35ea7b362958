"""Settings that two or more systems read: each is set once, under a variable with the base prefix."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import BASE_PREFIX, HttpAddress, SystemSettings, http_address, split_pairs

HTTP_ADDRESS = terminal_text("an http:// or https:// address")
"""Allowed values of an address, as text."""


CategoryKind = Literal["film", "series", "variety", "animation", "documentary", "short"]
"""What the videos of a category are: the names of `matching.Kind`."""
CATEGORY_KINDS = terminal_text(
    "category=kind pairs separated by commas, e.g. 1=film,2=series; kinds: film, series, variety, animation, "
    "documentary, short"
)
"""Allowed values of the kinds of categories, as text."""


class CategorySettings(SystemSettings):
    """What the CMS's categories hold, where their names do not say it."""

    category_kinds: Annotated[dict[int, CategoryKind], NoDecode] = Field(
        default_factory=dict,
        validation_alias=f"{BASE_PREFIX}CATEGORY_KINDS",
        description="What categories (mac_type.type_id) hold whose names do not say it; children follow their parents.",
    )

    @field_validator("category_kinds", mode="before")
    @classmethod
    def _kinds(cls, value: Any) -> Any:
        return split_pairs(value)


class AlertSettings(SystemSettings):
    """The webhook to which all systems post their alerts."""

    alert_webhook_url: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_URL",
        description="Address to which alerts are posted; if empty, only the UI shows them.",
    )
    alert_webhook_kind: Literal["wecom", "dingtalk", "feishu", "generic"] = Field(
        "generic",
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_KIND",
        description="Format of the alerts: wecom, dingtalk, feishu or generic (JSON).",
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}ALERT_WEBHOOK_SECRET",
        description="Signing secret of the webhook, if dingtalk, feishu or generic uses one.",
    )

    @field_validator("alert_webhook_url")
    @classmethod
    def _webhook(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            http_address(value.get_secret_value())
        return value


class PublicSettings(SystemSettings):
    """Addresses under which people reach the pages."""

    public_url: HttpAddress = Field(
        "",
        validation_alias=f"{BASE_PREFIX}PUBLIC_URL",
        description="Public address of `douban-pipeline serve`, such as https://douban.example.org; empty: none.",
    )
    reports_url: HttpAddress = Field(
        "",
        validation_alias=f"{BASE_PREFIX}REPORTS_URL",
        description="Address under which the folder reports in HOME is served; empty: PUBLIC_URL, which shows them.",
    )

    @property
    def reports_address(self) -> str:
        """Address of the reports; empty if they are not served."""
        return self.reports_url or self.public_url


class SiteSettings(SystemSettings):
    """The video site, for links and local posters."""

    site_url: HttpAddress = Field(
        "",
        validation_alias=f"{BASE_PREFIX}SITE_URL",
        description="Address of the video site, for links and local posters in review sheets and of comments.",
    )
    site_page: str = Field(
        "/index.php/vod/detail/id/{id}.html",
        validation_alias=f"{BASE_PREFIX}SITE_PAGE",
        description="Path of a video's page on the site; {id} is its vod_id.",
    )

    @field_validator("site_page")
    @classmethod
    def _page_of_a_video(cls, value: str) -> str:
        return path_of_video(value)


def path_of_video(value: str) -> str:
    """Return a path with the id of a video; raises `ValueError` for anything else but an empty text."""
    if value and not (value.startswith("/") and "{id}" in value):
        raise ValueError(terminal_text("not a path with {id}"))
    return value


class RequestSettings(SystemSettings):
    """How long a request to a source may take."""

    request_timeout_seconds: float = Field(
        20.0,
        validation_alias=f"{BASE_PREFIX}REQUEST_TIMEOUT_SECONDS",
        gt=0,
        le=120,
        description="Wall-clock limit of one request to a source.",
    )


class WerssSettings(SystemSettings):
    """WeRSS, through which public accounts are read."""

    werss_url: HttpAddress = Field("", validation_alias=f"{BASE_PREFIX}WERSS_URL", description="Address of WeRSS.")
    werss_username: str = Field("", validation_alias=f"{BASE_PREFIX}WERSS_USERNAME", description="Account at WeRSS.")
    werss_password: SecretStr = Field(
        SecretStr(""), validation_alias=f"{BASE_PREFIX}WERSS_PASSWORD", description="Its password."
    )
    werss_access_key: SecretStr = Field(
        SecretStr(""),
        validation_alias=f"{BASE_PREFIX}WERSS_ACCESS_KEY",
        description="KEY:SECRET of WeRSS 1.4.9 and later, instead of account and password.",
    )


class ModelSettings(SystemSettings):
    """The language model's provider."""

    openrouter_api_key: SecretStr = Field(
        SecretStr(""), validation_alias="OPENROUTER_API_KEY", description="Key of the language model's provider."
    )
    llm_url: HttpAddress = Field(
        "https://openrouter.ai/api/v1/chat/completions",
        validation_alias=f"{BASE_PREFIX}LLM_URL",
        description="Address of the language model's provider.",
    )
    llm_model: str = Field(
        "deepseek/deepseek-v3.2",
        min_length=1,
        validation_alias=f"{BASE_PREFIX}LLM_MODEL",
        description="Language model that writes intros and reviews comments.",
    )
