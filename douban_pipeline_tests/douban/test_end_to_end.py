"""The main job on a real MariaDB with the CMS's real schema: take in, run every shard, explain, take back.

``DOUBAN_TEST_ROWS`` sets the size of the library (by default every video of the sample once, and five in each shard;
20000 takes some minutes).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Engine, func, select, text

from douban_pipeline.core.database import reading
from douban_pipeline.demo.cms_schema import VOD_COLUMNS, default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.demo.sample import cms_columns, load_subjects, load_videos
from douban_pipeline.demo.setup import EXCLUDED_TYPE
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, shard_range_tags
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline_tests.stand_ins.replay import ReplayServer

ROWS = int(os.environ.get("DOUBAN_TEST_ROWS", "320"))
SHARDS_A_RUN = 32

pytestmark = pytest.mark.mariadb


@pytest.fixture
def upstream() -> Iterator[ReplayServer]:
    with ReplayServer(load_subjects()) as server:
        yield server


@pytest.fixture
def services(mariadb_url: str, upstream: ReplayServer, tmp_path: Path) -> Iterator[Services]:
    settings = Settings(
        home=tmp_path,
        database_url=mariadb_url,
        douban_url=upstream.douban_url,
        search_url=upstream.search_url,
        douban_requests_per_minute=60_000,
        search_requests_per_minute=60_000,
        douban_concurrency=5,
        search_concurrency=3,
        excluded_type_ids=str(EXCLUDED_TYPE),
        batch_size=2000,
        run_seconds=1500,
        dry_run=False,
    )
    opened = open_services(settings)
    yield opened
    opened.close()


def fill_library(engine: Engine, rows: int) -> None:
    """Repeat the sample under new ids until there are ``rows`` videos, of one to a thousand days ago."""
    now = int(datetime.now(UTC).timestamp())
    videos = []
    for vod_id, sample in zip(range(1, rows + 1), itertools.cycle(load_videos()), strict=False):
        videos.append({**cms_columns(sample), "vod_id": vod_id, "vod_time": now - vod_id % 1000 * 86400})
    create_library(engine, videos, default_types())


def fingerprints(engine: Engine) -> dict[int, str]:
    """Return a hash of every byte of every row of `mac_vod`."""
    columns = ", ".join(f"COALESCE(HEX(`{column.name}`), 'NULL')" for column in VOD_COLUMNS)
    with engine.connect() as connection:
        rows = connection.execute(text(f"SELECT vod_id, SHA2(CONCAT_WS('|', {columns}), 256) FROM mac_vod"))
        return {row[0]: row[1] for row in rows}


def run(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance, job: str, **arguments: object) -> None:
    config = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}, **arguments.pop("run_config", {})}
    result = repository.get_job(job).execute_in_process(instance=instance, run_config=config, **arguments)
    assert result.success


@pytest.mark.long
def test_a_library_is_matched_synced_explained_and_restored(services: Services) -> None:
    fill_library(services.engine, ROWS)
    before = fingerprints(services.engine)
    assert len(before) == ROWS
    repository = build_defs(settings=services.settings).get_repository_def()
    with dg.DagsterInstance.ephemeral() as instance:
        run(
            repository,
            instance,
            "initialise_library",
            run_config={"ops": {"initialise": {"config": {"dry_run": False, "spread": False}}}},
        )
        for first in range(0, 64, SHARDS_A_RUN):
            run(repository, instance, CHAIN, tags=shard_range_tags(first, first + SHARDS_A_RUN - 1))
        assert_partitions_have_figures_of_their_own(services, instance)

        verdicts = assert_verdicts_explain_themselves(services)
        assert set(verdicts) >= {ReviewStatus.CONFIRMED, ReviewStatus.REVIEW, ReviewStatus.NOT_FOUND}
        batches = assert_log_explains_every_change(services, before)

        for batch in batches:
            selection = {"reviewer": "tester", "reason": "试验", "dry_run": False, "batch_id": batch}
            run(
                repository,
                instance,
                "revert_changes",
                run_config={"ops": {"revert_writes": {"config": selection}}},
            )
    assert fingerprints(services.engine) == before


def assert_partitions_have_figures_of_their_own(services: Services, instance: dg.DagsterInstance) -> None:
    """Each partition says what happened in its shard, as counted in the tables."""
    told: dict[str, dict[int, int]] = {}
    for name, figure in (("due_videos", "due"), ("scored_matches", "judged"), ("synced_fields", "handled")):
        filters = dg.AssetRecordsFilter(asset_key=dg.AssetKey(name))
        for record in instance.fetch_materializations(filters, limit=1000).records:
            event = record.asset_materialization
            assert event is not None
            told.setdefault(figure, {})[int(event.partition or 0)] = int(event.metadata[figure].value)  # type: ignore[arg-type]
    with reading(services.engine) as connection:
        task, verdict = services.tables.task, services.tables.verdict
        judged = connection.execute(select(verdict.c.shard, func.count()).group_by(verdict.c.shard)).tuples().all()
        due = connection.execute(select(task.c.shard, func.count()).group_by(task.c.shard)).tuples().all()
    assert {shard: count for shard, count in told["judged"].items() if count} == dict(judged)
    assert {shard: count for shard, count in told["due"].items() if count} == dict(due)
    assert all(told["handled"][shard] <= told["due"][shard] for shard in range(64))


def assert_verdicts_explain_themselves(services: Services) -> dict[str, int]:
    """Every verdict with candidates has their points an item, and every other says why there are none."""
    verdict, candidate = services.tables.verdict, services.tables.candidate
    counts: dict[str, int] = {}
    with reading(services.engine) as connection:
        points: dict[int, int] = {}
        for row in connection.execute(select(candidate)):
            assert {item["name"] for item in row.points} >= {"title", "year", "region", "director", "actors"}
            assert bool(row.snapshot_id) is row.fetched, "who was asked about has an archived answer"
            points[row.verdict_id] = points.get(row.verdict_id, 0) + 1
        for row in connection.execute(select(verdict)).mappings():
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
            assert row["rule_version"]
            assert row["explanation"]
            assert row["verdict_id"] in points or row["reasons"] == ["NO_CANDIDATES"]
    return counts


def assert_log_explains_every_change(services: Services, before: dict[int, str]) -> list[str]:
    """What changed in `mac_vod` is exactly what the log says, column by column; return the batches."""
    log, vod = services.tables.log, services.cms.vod
    changed = {vod_id for vod_id, digest in fingerprints(services.engine).items() if digest != before[vod_id]}
    with reading(services.engine) as connection:
        rows = connection.execute(select(log)).mappings().all()
        assert {row["state"] for row in rows} == {ChangeState.APPLIED}
        assert {row["vod_id"] for row in rows} == changed
        current = {row["vod_id"]: row for row in connection.execute(select(vod)).mappings()}
        for row in rows:
            assert row["reason"]
            for column, value in decode(row["new_values"]).items():
                assert current[row["vod_id"]][column] == value
        batches = connection.execute(select(log.c.batch_id, func.count()).group_by(log.c.batch_id))
        return [batch for batch, _ in batches]
