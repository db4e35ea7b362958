"""The environment of the demo: the bundled library, the replay upstream, and settings for a small library."""

from __future__ import annotations

from pathlib import Path

from douban_pipeline.settings import PREFIX

EXCLUDED_TYPE = 20
"""伦理片: left alone in the demo, to show that a category can be."""


def demo_home() -> Path:
    """Return the folder that holds everything the demo makes; deleting it starts the demo afresh."""
    return Path(".douban_pipeline").absolute() / "demo"


def demo_environment(home: Path, *, douban_url: str, search_url: str) -> dict[str, str]:
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
        "EXCLUDED_TYPE_IDS": str(EXCLUDED_TYPE),
        "MIN_DUE_PER_RUN": "1",
        "MAX_DUE_WAIT_MINUTES": "0",
        "DRY_RUN": "false",
    }
    return {"DAGSTER_HOME": str(home / "dagster"), **{PREFIX + name: value for name, value in settings.items()}}
