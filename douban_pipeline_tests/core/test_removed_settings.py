"""Settings of earlier releases are refused with what became of them, by every way that reads settings."""

from __future__ import annotations

import pytest

from douban_pipeline.core.removed_settings import REMOVED, Removed
from douban_pipeline.core.settings_base import BASE_PREFIX, SHARED_VARIABLES, SettingsError, SystemSettings
from douban_pipeline.core.shared_settings import WerssSettings
from douban_pipeline.core.system import every_system
from douban_pipeline.serve.settings import ServeSettings

CLASSES: list[type[SystemSettings]] = [*(system.settings() for system in every_system()), ServeSettings]
LIVE = {each.variable(name) for each in CLASSES for name in each.model_fields}


def reader_of(variable: str) -> type[SystemSettings]:
    """Return whose settings would have read a variable: those with the longest prefix of it."""
    given = [each for each in CLASSES if variable.startswith(each.model_config.get("env_prefix") or "")]
    return max(given, key=lambda each: len(each.model_config.get("env_prefix") or ""))


def test_no_removed_setting_is_a_live_one() -> None:
    assert not LIVE & set(REMOVED)
    assert {BASE_PREFIX + removed.name for removed in REMOVED.values() if removed.name} <= LIVE
    assert all(bool(removed.name) is not bool(removed.value) for removed in REMOVED.values())


@pytest.mark.parametrize("variable", sorted(REMOVED))
def test_each_is_refused_with_its_sentence(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(SettingsError) as refused:
        reader_of(variable).load()
    assert REMOVED[variable].sentence(variable) in refused.value.problems


def test_a_sentence_says_what_to_do() -> None:
    assert Removed(value="30 s").sentence("OLD") == "OLD is a constant now (30 s): remove it"
    assert Removed(name="NEW").sentence("OLD") == "OLD is DOUBAN_PIPELINE_NEW now"
    assert Removed(name="NEW", change="in hours").sentence("OLD") == "OLD is DOUBAN_PIPELINE_NEW now: in hours"


def test_what_several_systems_read_is_unknown_to_none() -> None:
    assert {WerssSettings.variable(name) for name in WerssSettings.model_fields} == set(SHARED_VARIABLES)
