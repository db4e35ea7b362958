"""What we use of Dagster that its public API does not offer. No other module imports from its private packages.

Dagster may change these names in any release that `pyproject.toml` allows: each says what it is needed for, and
`dagster_kit/test_internals.py` what is relied on.
"""

# Ended backfills: no filter of them is public, nor what the storage returns.
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionsFilter, PartitionBackfill

# Opens dagster.yaml: its launcher without any storage, or an instance with one part of the file replaced.
from dagster._core.instance.ref import InstanceRef

# With these a launcher answers whether a run's worker lives.
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus

# Which storage an instance has: a run's files are SQLite's alone, and these have connections for the tables below.
from dagster._core.storage.event_log.base import EventLogStorage

# The tables: `DagsterInstance.delete_run` leaves results of checks and backfills for ever.
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.runs.schema import BackfillTagsTable, BulkActionsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage

# How a launcher gets its entry of dagster.yaml.
from dagster._serdes import ConfigurableClassData

# The error of a failed step, as the event log holds it; named in signatures.
from dagster._utils.error import SerializableErrorInfo

# Raised by `context.repository_def` of a run that no code location launched; nothing says so beforehand.
from dagster_shared.check import CheckError

__all__ = [
    "BULK_ACTION_TERMINAL_STATUSES",
    "AssetCheckExecutionsTable",
    "BackfillTagsTable",
    "BulkActionsFilter",
    "BulkActionsTable",
    "CheckError",
    "CheckRunHealthResult",
    "ConfigurableClassData",
    "EventLogStorage",
    "InstanceRef",
    "PartitionBackfill",
    "SerializableErrorInfo",
    "SqlEventLogStorage",
    "SqlEventLogStorageTable",
    "SqlRunStorage",
    "SqliteEventLogStorage",
    "SqliteRunStorage",
    "WorkerStatus",
]
