"""The environment of the demo: the bundled library, the replay upstream, and settings for a small library."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.douban.settings import PREFIX

EXCLUDED_TYPE = 20
"""伦理片: left alone in the demo, to show that a category can be."""


def demo_home() -> Path:
    """Return the folder that holds everything the demo makes; deleting it starts the demo afresh."""
    return Path(".douban_pipeline").absolute() / "demo"


def demo_environment(
    home: Path, *, douban_url: str, search_url: str, llm_url: str, ui_url: str = "http://127.0.0.1:3000"
) -> dict[str, str]:
    """Return the environment variables under which every process of the demo runs.

    The demo's sources are on this machine, so they may be asked as fast as they answer.
    """
    settings = {
        "HOME": str(home),
        "DATABASE_URL": f"sqlite:///{home / 'library.sqlite'}",
        "DOUBAN_URL": douban_url,
        "SEARCH_URL": search_url,
        "SEARCH_PROVIDER": "searxng",
        "DOUBAN_REQUESTS_PER_MINUTE": "60000",
        "SEARCH_REQUESTS_PER_MINUTE": "60000",
        "DOUBAN_CONCURRENCY": "5",
        "SEARCH_CONCURRENCY": "3",
        "AI_INTROS": "true",
        "LLM_URL": llm_url,
        "UI_URL": ui_url,
        "LLM_REQUESTS_PER_MINUTE": "60000",
        "LLM_TOKENS_PER_MINUTE": "100000000",
        "LLM_TOKENS_PER_DAY": "100000000",
        "LLM_CONCURRENCY": "4",
        "EXCLUDED_TYPE_IDS": str(EXCLUDED_TYPE),
        "MIN_DUE_PER_RUN": "1",
        "MAX_DUE_WAIT_MINUTES": "0",
        "DRY_RUN": "false",
    }
    # The replayed model takes any key; a real one in the environment must not reach it.
    outside = {"DAGSTER_HOME": str(home / "dagster"), "OPENROUTER_API_KEY": "demo"}
    return {**outside, **{PREFIX + name: value for name, value in settings.items()}}
