"""Deletes finished runs with everything Dagster stores about them, except what the asset pages still show.

`DagsterInstance.delete_run` alone leaves a run's asset check results, its SQLite file and its captured output for ever,
and deletes a partition's only materialization even if no later run replaced it. This module uses Dagster's own tables
where Dagster has no API; the columns are those of the releases allowed in `pyproject.toml`.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from uuid import UUID

import dagster as dg
from sqlalchemy import ColumnElement, and_, delete, func, select

from douban_pipeline.dagster_kit.internals import (
    BULK_ACTION_TERMINAL_STATUSES,
    AssetCheckExecutionsTable,
    BackfillTagsTable,
    BulkActionsFilter,
    BulkActionsTable,
    CheckError,
    EventLogStorage,
    PartitionBackfill,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
    SqliteEventLogStorage,
    SqlRunStorage,
)
from douban_pipeline.dagster_kit.runs import BACKFILL_ID_TAG, Owner

_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_BATCH = 500

checks, events = AssetCheckExecutionsTable, SqlEventLogStorageTable
backfills, backfill_tags = BulkActionsTable, BackfillTagsTable


def delete_runs(
    instance: dg.DagsterInstance,
    owner: Owner,
    *,
    before: datetime,
    keep: Iterable[str] = (),
    tags: dict[str, str] | None = None,
    dry_run: bool = False,
) -> int:
    """Delete finished runs of ``owner`` last updated before ``before``, with all their data; return how many.

    A run that holds the newest materialization of an asset, or of a partition of one, is kept whatever its age:
    otherwise the asset page would show it as never materialized.

    Args:
        instance: The instance; runs of other owners are kept.
        owner: Owner of the runs to delete.
        before: Time of the last update, in UTC.
        keep: Ids of runs to keep.
        tags: Only runs with all of these tags.
        dry_run: Delete nothing, and return how many would be deleted.
    """
    wanted = dg.RunsFilter(statuses=_FINISHED, updated_before=before, tags=tags or {})
    run_ids = instance.run_storage.get_run_ids(filters=wanted)
    spared = {*keep, *_newest_of_assets(instance)} if run_ids else set()
    old = _owned(instance, owner, [run_id for run_id in run_ids if run_id not in spared])
    if dry_run:
        return len(old)
    for run_id in old:
        _delete_run(instance, run_id)
    for some in _batches(old):
        _delete_check_results(instance, checks.c.run_id.in_(some))
    return len(old)


def delete_remains(
    instance: dg.DagsterInstance, owner: Owner, *, before: datetime, assets: Collection[dg.AssetKey]
) -> int:
    """Delete leftovers: ended backfills without runs, superseded check results, and files of deleted runs.

    Args:
        instance: The instance.
        owner: Owner of the check results and backfills; those of deleted runs are removed whoever owns them.
        before: Maximum time, in UTC.
        assets: The assets of ``owner``, because a backfill of assets names no code location.

    Returns:
        The number of deleted backfills.
    """
    _delete_superseded_check_results(instance, owner, before)
    _delete_orphaned_files(instance, before)
    return _delete_backfills(instance, owner, before, assets)


def assets_of_location(context: dg.OpExecutionContext) -> Collection[dg.AssetKey]:
    """Return the assets of the code location through which a run was launched; none for a run in process."""
    try:
        return context.repository_def.asset_graph.get_all_asset_keys()
    except CheckError:
        return ()


def _owned(instance: dg.DagsterInstance, owner: Owner, run_ids: Sequence[str]) -> list[str]:
    """Return those of ``run_ids`` whose runs belong to ``owner``."""
    return [
        run.run_id
        for some in _batches(run_ids)
        for run in instance.get_runs(filters=dg.RunsFilter(run_ids=list(some)))
        if owner.owns(run)
    ]


def _delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    # The run itself is deleted last, so that an interrupted deletion is found and repeated the next time.
    storage = instance.event_log_storage
    storage.delete_events(run_id)
    if isinstance(storage, SqliteEventLogStorage):
        _unlink(storage, run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    instance.run_storage.delete_run(run_id)


def _newest_of_assets(instance: dg.DagsterInstance) -> set[str]:
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return set()
    newest = (
        select(func.max(events.c.id))
        .where(events.c.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value)
        .group_by(events.c.asset_key, events.c.partition)
    )
    with storage.index_connection() as connection:
        return set(connection.execute(select(events.c.run_id).where(events.c.id.in_(newest))).scalars())


def _delete_check_results(instance: dg.DagsterInstance, which: ColumnElement[bool]) -> None:
    """Delete results of asset checks, but not the newest of any check, which the asset page shows."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return
    newest = select(func.max(checks.c.id)).group_by(checks.c.asset_key, checks.c.check_name, checks.c.partition)
    with storage.index_connection() as connection:
        kept = list(connection.execute(newest).scalars())
        connection.execute(delete(checks).where(which, checks.c.id.not_in(kept)))


def _delete_superseded_check_results(instance: dg.DagsterInstance, owner: Owner, before: datetime) -> None:
    """Delete old results of checks, of the owner's runs and of deleted runs."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return
    old = checks.c.create_timestamp < before.replace(tzinfo=None)
    with storage.index_connection() as connection:
        run_ids = list(connection.execute(select(checks.c.run_id).where(old).distinct()).scalars())
    for some in _batches(run_ids):
        existing = set(instance.run_storage.get_run_ids(filters=dg.RunsFilter(run_ids=list(some))))
        others = existing.difference(_owned(instance, owner, list(existing)))
        _delete_check_results(instance, and_(old, checks.c.run_id.in_(set(some) - others)))


def _delete_backfills(
    instance: dg.DagsterInstance, owner: Owner, before: datetime, assets: Collection[dg.AssetKey]
) -> int:
    storage = instance.run_storage
    if not isinstance(storage, SqlRunStorage):
        return 0
    ended = BulkActionsFilter(statuses=BULK_ACTION_TERMINAL_STATUSES, created_before=before)
    gone = [
        backfill.backfill_id
        for backfill in storage.get_backfills(filters=ended)
        if _owns_backfill(owner, backfill, assets)
        and not storage.get_runs_count(dg.RunsFilter(tags={BACKFILL_ID_TAG: backfill.backfill_id}))
    ]
    with storage.connect() as connection:
        for some in _batches(gone):
            connection.execute(delete(backfill_tags).where(backfill_tags.c.backfill_id.in_(some)))
            connection.execute(delete(backfills).where(backfills.c.key.in_(some)))
    return len(gone)


def _owns_backfill(owner: Owner, backfill: PartitionBackfill, assets: Collection[dg.AssetKey]) -> bool:
    if backfill.asset_selection is not None:
        return not set(backfill.asset_selection).isdisjoint(assets)
    origin = backfill.partition_set_origin
    return origin is None or origin.repository_origin.code_location_origin.location_name == owner.location


def _delete_orphaned_files(instance: dg.DagsterInstance, before: datetime) -> None:
    """Delete old files of deleted runs: Dagster recreates the SQLite file of a run when its events are requested."""
    storage = instance.event_log_storage
    captured = {path.name: path for path in _captured(instance)}
    sharded = dict(_sharded(storage))
    old = [*{run_id for files in (captured, sharded) for run_id, path in files.items() if _is_older(path, before)}]
    known: set[str] = set()
    for some in _batches(old):
        known.update(instance.run_storage.get_run_ids(filters=dg.RunsFilter(run_ids=list(some))))
    for run_id in set(old) - known:
        if isinstance(storage, SqliteEventLogStorage):
            _unlink(storage, run_id)
        if run_id in captured:
            shutil.rmtree(captured[run_id], ignore_errors=True)


def _sharded(storage: EventLogStorage) -> Iterator[tuple[str, Path]]:
    """Yield the SQLite files that hold a run's events, by run."""
    if isinstance(storage, SqliteEventLogStorage):
        for run_id in storage.get_all_run_ids():
            yield run_id, Path(storage.path_for_shard(run_id))


def _captured(instance: dg.DagsterInstance) -> Iterator[Path]:
    """Yield the folders with the captured output of runs on this machine; each is named after its run."""
    if instance.is_ephemeral:
        return
    folder = Path(instance.storage_directory())
    for path in folder.iterdir() if folder.is_dir() else ():
        if _is_run_id(path.name):
            yield path


def _unlink(storage: SqliteEventLogStorage, run_id: str) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        Path(storage.path_for_shard(run_id) + ending).unlink(missing_ok=True)


def _is_run_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _is_older(path: Path, before: datetime) -> bool:
    try:
        return path.stat().st_mtime < before.timestamp()
    except FileNotFoundError:
        return False


def _batches(items: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
