"""Deleted runs leave nothing behind, and nobody is told that an asset was never made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import RemotePartitionSetOrigin, RemoteRepositoryOrigin
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, AssetEventTagsTable
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as _Events
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from sqlalchemy import Table, func, select

from douban_pipeline.dagster_kit.run_history import delete_remains, delete_runs
from douban_pipeline.dagster_kit.runs import Owner
from douban_pipeline_tests.harness.benchmarks.cloned_runs import clone_runs
from douban_pipeline_tests.harness.fixtures.locations import add_run, daily_digest, foreign, location_origin

halves = dg.StaticPartitionsDefinition(["a", "b"])


@dg.asset(partitions_def=halves)
def half() -> dg.MaterializeResult:
    """Made by halves."""
    return dg.MaterializeResult(metadata={"rows": 1}, tags={"kind": "test"})


@dg.asset
def whole() -> dg.MaterializeResult:
    """Made at once."""
    return dg.MaterializeResult()


@dg.asset_check(asset=whole)
def sound() -> dg.AssetCheckResult:
    """Always passes."""
    print("looked")  # noqa: T201 (captured output is what is to be deleted)
    return dg.AssetCheckResult(passed=True)


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance of files, as on one machine."""
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        yield instance


OWNER = Owner(location="ours", system="test")


def remains(instance: dg.DagsterInstance, before: datetime) -> int:
    return delete_remains(instance, OWNER, before=before, assets=[half.key, whole.key])


def make(instance: dg.DagsterInstance, asset: dg.AssetsDefinition, partition: str | None = None) -> str:
    checks = [sound] if asset is whole else []
    return dg.materialize([asset, *checks], instance=instance, partition_key=partition).run_id


def rows(instance: dg.DagsterInstance, table: Table) -> int:
    storage = instance.event_log_storage
    assert isinstance(storage, SqlEventLogStorage)
    with storage.index_connection() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def in_a_day() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


def files(tmp_path: Path, run_id: str) -> list[Path]:
    return [path for path in tmp_path.rglob("*") if run_id in path.name]


def test_a_deleted_run_leaves_no_rows_and_no_files(on_disk: dg.DagsterInstance, tmp_path: Path) -> None:
    old, new = make(on_disk, whole), make(on_disk, whole)
    before = {table: rows(on_disk, table) for table in (_Events, AssetCheckExecutionsTable)}
    assert files(tmp_path, old)
    assert delete_runs(on_disk, OWNER, before=in_a_day()) == 1
    assert on_disk.get_run_by_id(old) is None
    assert files(tmp_path, old) == []
    assert {table: rows(on_disk, table) * 2 for table in before} == before
    assert on_disk.get_run_by_id(new) is not None
    assert files(tmp_path, new)


def test_the_run_that_made_a_partition_for_the_last_time_stays(instance: dg.DagsterInstance) -> None:
    replaced, last_b = make(instance, half, "a"), make(instance, half, "b")
    last_a, last_whole = make(instance, half, "a"), make(instance, whole)
    assert rows(instance, AssetEventTagsTable) > 0
    assert delete_runs(instance, OWNER, before=in_a_day()) == 1
    assert instance.get_run_by_id(replaced) is None
    assert all(instance.get_run_by_id(run_id) for run_id in (last_a, last_b, last_whole))
    assert instance.get_materialized_partitions(half.key) == {"a", "b"}
    # Nobody was told of the deletion: the page's own memory agrees with the events.
    assert instance.get_latest_materialization_event(half.key) is not None
    assert instance.get_latest_materialization_event(whole.key) is not None


def test_runs_that_are_to_stay_or_are_of_another_kind_stay(instance: dg.DagsterInstance) -> None:
    kept, other, gone = make(instance, whole), make(instance, whole), make(instance, whole)
    make(instance, whole)
    instance.add_run_tags(other, {"kind": "plain"})
    for run_id in (kept, gone):
        instance.add_run_tags(run_id, {"kind": "brief"})
    assert delete_runs(instance, OWNER, before=in_a_day(), keep=[kept], tags={"kind": "brief"}) == 1
    assert [instance.get_run_by_id(run_id) is None for run_id in (kept, other, gone)] == [False, False, True]


def test_a_check_shows_its_newest_result_for_ever_and_older_ones_go(instance: dg.DagsterInstance) -> None:
    first = make(instance, whole)
    make(instance, whole)
    remains(instance, datetime.now(UTC) - timedelta(days=1))
    assert rows(instance, AssetCheckExecutionsTable) == 2
    remains(instance, in_a_day())
    assert rows(instance, AssetCheckExecutionsTable) == 1
    [check] = sound.check_keys
    record = instance.event_log_storage.get_latest_asset_check_execution_by_key([check])[check]
    assert record.run_id != first


def test_ended_backfills_go_once_their_runs_are_gone(instance: dg.DagsterInstance) -> None:
    def backfill(name: str, status: BulkActionStatus) -> None:
        made = PartitionBackfill(
            backfill_id=name,
            status=status,
            from_failure=False,
            tags={"kind": "test"},
            backfill_timestamp=datetime.now(UTC).timestamp(),
        )
        instance.add_backfill(made)

    for name, status in (
        ("ended", BulkActionStatus.COMPLETED_SUCCESS),
        ("shown", BulkActionStatus.COMPLETED_FAILED),
        ("running", BulkActionStatus.REQUESTED),
    ):
        backfill(name, status)
    instance.add_run_tags(make(instance, whole), {"dagster/backfill": "shown"})
    assert remains(instance, datetime.now(UTC) - timedelta(days=1)) == 0
    assert remains(instance, in_a_day()) == 1
    assert {found.backfill_id for found in instance.get_backfills()} == {"shown", "running"}


def test_files_of_runs_that_are_gone_go_too(on_disk: dg.DagsterInstance, tmp_path: Path) -> None:
    gone, there = make(on_disk, whole), make(on_disk, whole)
    on_disk.delete_run(gone)
    assert files(tmp_path, gone), "Dagster leaves them"
    remains(on_disk, datetime.now(UTC) - timedelta(days=1))
    assert files(tmp_path, gone), "perhaps somebody is about to write them"
    remains(on_disk, in_a_day())
    assert files(tmp_path, gone) == []
    assert files(tmp_path, there)


def test_a_copied_run_is_deleted_like_a_real_one(on_disk: dg.DagsterInstance, tmp_path: Path) -> None:
    real = make(on_disk, half, "a")
    long_ago = datetime.now(UTC) - timedelta(days=40)
    copies = clone_runs(on_disk, real, [long_ago, long_ago - timedelta(days=1)])
    assert all(len(on_disk.all_logs(copy)) == len(on_disk.all_logs(real)) for copy in copies)
    assert all(files(tmp_path, copy) for copy in copies)
    make(on_disk, half, "a")
    assert delete_runs(on_disk, OWNER, before=datetime.now(UTC) - timedelta(days=30)) == 2
    assert not any(files(tmp_path, copy) for copy in copies)
    assert on_disk.get_run_by_id(real) is not None


def launched(instance: dg.DagsterInstance, asset: dg.AssetsDefinition, location: str) -> str:
    """Let a run of an asset have been launched through a code location."""
    run_id = make(instance, asset)
    instance.add_run_tags(run_id, {"dagster/code_location": location})
    return run_id


def test_runs_of_other_locations_stay_with_their_events_and_results(instance: dg.DagsterInstance) -> None:
    theirs, ours = launched(instance, whole, "theirs"), launched(instance, whole, "ours")
    job = foreign.get_job("digest_job")
    theirs_by_origin = add_run(instance, job, location="theirs", status=dg.DagsterRunStatus.SUCCESS).run_id
    make(instance, whole)  # the newest, which stays
    assert delete_runs(instance, OWNER, before=in_a_day()) == 1
    remains(instance, in_a_day())
    assert [instance.get_run_by_id(run_id) is None for run_id in (ours, theirs, theirs_by_origin)] == [
        True,
        False,
        False,
    ]
    assert instance.all_logs(theirs)
    assert rows(instance, AssetCheckExecutionsTable) == 2


def test_a_run_that_was_launched_through_no_location_goes_by_its_system(instance: dg.DagsterInstance) -> None:
    theirs, ours, nobodys = (make(instance, whole) for _ in range(3))
    make(instance, whole)
    instance.add_run_tags(theirs, {"system": "another"})
    instance.add_run_tags(ours, {"system": "test"})
    assert delete_runs(instance, OWNER, before=in_a_day()) == 2
    assert [instance.get_run_by_id(run_id) is None for run_id in (theirs, ours, nobodys)] == [False, True, True]


def test_backfills_of_other_locations_stay(instance: dg.DagsterInstance) -> None:
    def backfill(name: str, **of: Any) -> None:
        made = PartitionBackfill(
            backfill_id=name,
            status=BulkActionStatus.COMPLETED_SUCCESS,
            from_failure=False,
            tags={},
            backfill_timestamp=datetime.now(UTC).timestamp(),
            **of,
        )
        instance.add_backfill(made)

    def partitions(location: str) -> RemotePartitionSetOrigin:
        repository = RemoteRepositoryOrigin(location_origin(location), "__repository__")
        return RemotePartitionSetOrigin(repository_origin=repository, partition_set_name="set")

    backfill("our assets", asset_selection=[half.key])
    backfill("their assets", asset_selection=[daily_digest.key])
    backfill("our job", partition_set_origin=partitions("ours"))
    backfill("their job", partition_set_origin=partitions("theirs"))
    assert remains(instance, in_a_day()) == 2
    assert {found.backfill_id for found in instance.get_backfills()} == {"their assets", "their job"}


@pytest.mark.parametrize(
    ("location", "tags", "owned"),
    [
        ("ours", {"dagster/code_location": "ours"}, True),
        ("ours", {"dagster/code_location": "ours", "system": "another"}, True),
        ("ours", {"dagster/code_location": "theirs", "system": "test"}, False),
        (None, {"dagster/code_location": "theirs", "system": "test"}, True),
        (None, {"dagster/code_location": "theirs"}, False),
        (None, {"system": "another"}, False),
        (None, {}, True),
    ],
)
def test_whose_a_run_is(location: str | None, tags: dict[str, str], owned: bool) -> None:
    assert Owner(location, "test").owns(dg.DagsterRun("job", tags=tags)) is owned
