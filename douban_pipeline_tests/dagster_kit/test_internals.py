"""What we use of Dagster beyond its public API is in one module, and is what that module says."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage import tags as dagsters

import douban_pipeline
from douban_pipeline.dagster_kit import internals, runs

PACKAGE = Path(douban_pipeline.__file__).parent
MODULE = "dagster_kit/internals.py"
PRIVATE = re.compile(r"\bdagster\w*\._\w|\bdagster_shared\b")


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    files = PACKAGE.rglob("*.py")
    return {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_one_module_imports_from_dagsters_private_packages(sources: dict[str, str]):
    assert {name for name, text in sources.items() if PRIVATE.search(text)} == {MODULE}


def test_it_hands_on_nothing_that_is_public_or_unused(sources: dict[str, str]):
    used = {word for name, text in sources.items() if name != MODULE for word in re.findall(r"\w+", text)}
    assert [name for name in internals.__all__ if hasattr(dg, name) or name not in used] == []


@pytest.mark.parametrize("name", [name for name in vars(runs) if name.endswith("_TAG") and hasattr(dagsters, name)])
def test_tags_are_dagsters_own(name: str):
    assert getattr(runs, name) == getattr(dagsters, name)


def test_the_job_of_chosen_assets_has_the_name_that_is_looked_for():
    @dg.asset
    def one() -> None: ...

    assert dg.Definitions([one]).resolve_implicit_global_asset_job_def().name == runs.AD_HOC_JOB


def test_tables_have_the_columns_that_are_read_and_deleted_by():
    wanted = {
        internals.AssetCheckExecutionsTable: "id run_id asset_key check_name partition create_timestamp",
        internals.SqlEventLogStorageTable: "id run_id asset_key partition dagster_event_type",
        internals.BulkActionsTable: "key",
        internals.BackfillTagsTable: "backfill_id",
    }
    assert {table.name: set(names.split()) - set(table.c.keys()) for table, names in wanted.items()} == {
        table.name: set() for table in wanted
    }


def test_the_storages_of_an_instance_are_those_that_are_asked_for(tmp_path: Path):
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        assert isinstance(instance.run_storage, internals.SqliteRunStorage)
        assert isinstance(instance.run_storage, internals.SqlRunStorage)
        assert isinstance(instance.event_log_storage, internals.SqliteEventLogStorage)
        assert isinstance(instance.event_log_storage, internals.SqlEventLogStorage)
        assert isinstance(instance.event_log_storage, internals.EventLogStorage)


def test_a_check_that_has_not_ended_has_not_passed_though_its_record_holds_something(tmp_path: Path):
    @dg.asset
    def one() -> None: ...

    @dg.asset_check(asset=one, blocking=True)
    def holds() -> dg.AssetCheckResult:
        [record] = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).values()
        planned.append((record.evaluation is None, runs.passed(record.evaluation)))
        return dg.AssetCheckResult(passed=True)

    planned: list[tuple[bool, bool]] = []
    key = dg.AssetCheckKey(one.key, "holds")
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        assert (
            dg.Definitions([one], asset_checks=[holds])
            .resolve_implicit_global_asset_job_def()
            .execute_in_process(instance=instance)
            .success
        )
        ended = instance.get_latest_asset_check_evaluation_record(key)
    assert planned == [(False, False)]
    assert ended is not None
    assert runs.passed(ended.evaluation) is True
