"""Each system has settings of its own, and hears of its own mistakes alone."""

from __future__ import annotations

from typing import ClassVar

import pytest
from pydantic import Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.settings_base import SettingsError, SystemSettings


class FeedSettings(SystemSettings):
    """Settings of another system."""

    model_config = SettingsConfigDict(env_prefix="FEEDS_")
    allowed: ClassVar = {"kind": "rss or atom"}

    most: int = Field(10, ge=1, le=20)
    least: int = 1
    kind: str = Field("rss", pattern="rss|atom")
    key: SecretStr = Field(SecretStr(""), max_length=3)

    @model_validator(mode="after")
    def _limits(self) -> FeedSettings:
        if self.least > self.most:
            raise self.mistake("least", self.least, "at most FEEDS_MOST")
        return self


def test_values_come_from_the_systems_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDS_MOST", "12")
    monkeypatch.setenv("DIGEST_MOST", "13")
    monkeypatch.setenv("DIGEST_UNKNOWN", "13")
    assert FeedSettings.load().most == 12
    assert FeedSettings.load(most=5).most == 5
    assert FeedSettings.variable("most") == "FEEDS_MOST"


def test_every_mistake_is_explained_and_no_secret_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"FEEDS_MOST": "99", "FEEDS_KIND": "json", "FEEDS_KEY": "geheim", "FEEDS_MOTS": "1"}
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        FeedSettings.load()
    message = str(caught.value)
    assert len(message.splitlines()) == 1 + len(wrong)
    assert "FEEDS_MOST = '99' is not allowed" in message
    assert "expected a whole number from 1 to 20" in message
    assert "expected rss or atom" in message
    assert "FEEDS_KEY is not usable" in message
    assert "geheim" not in message
    assert "FEEDS_MOTS is not a setting; did you mean FEEDS_MOST?" in message


def test_a_value_that_another_makes_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDS_LEAST", "11")
    with pytest.raises(SettingsError, match="FEEDS_LEAST = '11' is not allowed: at most FEEDS_MOST"):
        FeedSettings.load()
