"""Creates the demo: the embedded library with the bundled sample, with some rows locked and ignored."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import update

from douban_pipeline.core.system import every_system
from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.demo.posters import put_posters
from douban_pipeline.demo.sample import SampleVideo, cms_columns, load_subjects, load_videos
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import PREFIX
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import ReviewStatus

_NOBODY = "http://127.0.0.1:9"
"""An address that does not answer."""
EXCLUDED_TYPE = 20
"""伦理片: excluded in the demo, to show that a category can be excluded."""


def demo_home() -> Path:
    """Return the folder with all files of the demo; deleting it resets the demo."""
    return Path(".douban_pipeline").absolute() / "demo"


def demo_environment(
    home: Path,
    *,
    douban_url: str = _NOBODY,
    search_url: str = _NOBODY,
    llm_url: str = _NOBODY,
    ui_url: str = "http://127.0.0.1:3000",
    public_url: str = "",
) -> dict[str, str]:
    """Return the environment variables for every process of the demo.

    The demo's sources are on this machine, so requests are not limited. A source without an address is not
    configured.
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
        "GRAPHQL_URL": f"{ui_url}/graphql",
        "PUBLIC_URL": public_url,
        "LLM_REQUESTS_PER_MINUTE": "60000",
        "LLM_TOKENS_PER_MINUTE": "100000000",
        "LLM_TOKENS_PER_DAY": "100000000",
        "LLM_CONCURRENCY": "4",
        # The sample's synopses are one short line each.
        "INTRO_MIN_SOURCE_HAN": "8",
        "EXCLUDED_TYPE_IDS": str(EXCLUDED_TYPE),
        "MAX_DUE_WAIT_MINUTES": "0",
        "DRY_RUN": "false",
        "FEEDS_DATABASE_URL": f"sqlite:///{home / 'feeds.sqlite'}",
        "FEEDS_ALLOW_PRIVATE": "true",
        "DIGEST_DATABASE_URL": f"sqlite:///{home / 'digest.sqlite'}",
        "COMMENTS_DATABASE_URL": f"sqlite:///{home / 'comments.sqlite'}",
    }
    # The replayed model accepts any key; a real one in the environment must not be sent to it.
    outside = {"DAGSTER_HOME": str(home / "dagster"), "OPENROUTER_API_KEY": "demo"}
    return {**outside, **{PREFIX + name: value for name, value in settings.items()}}


def prepare_home(home: Path, project: Path) -> None:
    """Create the demo's folder with its own Dagster instance, configured like the project's."""
    dagster_home = home / "dagster"
    dagster_home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(project / "dagster.yaml", dagster_home / "dagster.yaml")


def pool_limits() -> dict[str, int]:
    """Return the limits of the pools of all installed systems."""
    limits: dict[str, int] = {}
    for system in every_system():
        with suppress(ModuleNotFoundError):
            limits |= system.pool_limits()
    return limits


def make_library(services: Services) -> int:
    """Create the CMS's tables with the bundled sample, our tables, and posters; return the number of new videos."""
    now = services.clock.now()
    rows = [_row(video, now) for video in load_videos()]
    new = create_library(services.engine, rows, default_types(), prefix=services.settings.table_prefix)
    migrations.tree_of(services.settings.table_prefix).upgrade(services.engine)
    put_posters(services.settings.home, load_subjects())
    return new


def apply_states(services: Services) -> None:
    """Lock and ignore the sample's videos as specified, unless work on them has started; safe to repeat."""
    now = services.clock.now()
    video = services.tables.video
    untouched = (video.c.douban_last_sync_at.is_(None), video.c.douban_review_status != ReviewStatus.IGNORED)
    with services.engine.begin() as connection:
        for sample in load_videos():
            values = _state(sample, now)
            if values:
                connection.execute(update(video).where(*untouched, video.c.vod_id == sample["vod_id"]).values(**values))


def spread_visits(services: Services, over: timedelta) -> None:
    """Make every video of the demo due within ``over``, shard after shard, so that progress is visible."""
    now = services.clock.now()
    video = services.tables.video
    restless = (video.c.douban_next_sync_at.is_not(None), video.c.douban_sync_fail_count == 0)
    with services.engine.begin() as connection:
        for shard in range(64):
            connection.execute(
                update(video)
                .where(video.c.shard == shard, *restless)
                .values(douban_next_sync_at=now + over * shard / 64)
            )


def _row(video: SampleVideo, now: datetime) -> dict[str, Any]:
    updated = int((now - timedelta(days=video["age_days"])).timestamp())
    return {**cms_columns(video), "vod_time": updated, "vod_time_add": updated, "vod_status": 1}


def _state(video: SampleVideo, now: datetime) -> dict[str, Any]:
    wanted = video.get("state", {})
    state: dict[str, Any] = {}
    if wanted.get("douban_id_locked"):
        state |= {"douban_id_locked": True, "douban_id_lock_time": now}
    if wanted.get("intro_locked"):
        state |= {"intro_locked": True, "intro_lock_time": now}
    if wanted.get("ignored"):
        state |= {
            "douban_review_status": ReviewStatus.IGNORED,
            "douban_review_reason": "示例：站长选择忽略",
            "douban_next_sync_at": None,
        }
    return state
