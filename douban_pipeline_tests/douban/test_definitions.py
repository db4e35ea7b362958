"""The code location as Dagster loads it: what is in it, and the traps it must not fall into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import dagster as dg
import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config

from douban_pipeline.dagster_kit.runs import set_pool_limits
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.resources import POOL_LIMITS
from douban_pipeline.douban.settings import PREFIX
from douban_pipeline_tests.conftest import server_url
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.locations import fits_schema

PROJECT = Path(__file__).resolve().parents[2]
REPORTS = (
    *("automatic_precision", "source_gates", "pipeline_health", "cms_drift"),
    *("applied_decisions", "due_rechecks", "review_queue"),
)
CHAIN_ASSETS = ["due_videos", "search_candidates", "scored_matches", "synced_fields", "ai_intros"]


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_defs(settings=GivenSettings()).get_repository_def()


@pytest.fixture(scope="module")
def assets(repository: dg.RepositoryDefinition) -> dict[str, dg.AssetsDefinition]:
    return {key.to_user_string(): asset for key, asset in repository.assets_defs_by_key.items()}


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", PREFIX))}


def test_a_fresh_clone_loads_without_any_setting() -> None:
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    result = subprocess.run(command, cwd=PROJECT, env=clean_environment(), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Validation successful" in result.stdout + result.stderr


def test_dagsters_own_command_lists_the_whole_location(
    repository: dg.RepositoryDefinition, assets: dict[str, dg.AssetsDefinition], tmp_path: Path
) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = clean_environment() | {"DAGSTER_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "dagster_dg_cli.cli", "list", "defs", "--json"]
    result = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert not result.stderr, "nothing is wrong with the project's own environment"
    listed = json.loads(result.stdout)
    assert {each["asset_key"] for each in listed["assets"]} == set(assets)
    assert {each["name"] for each in listed["jobs"]} == {*repository.job_names} - {"__ASSET_JOB"}


def test_no_run_loads_what_only_heavy_rooms_need() -> None:
    heavy = (
        "numpy",
        "douban_pipeline.demo",
        "douban_pipeline_tests.harness.rig",
    )
    code = f"import sys, douban_pipeline.definitions; print([name for name in {heavy} if name in sys.modules])"
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, cwd=PROJECT, env=clean_environment(), capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


def test_a_wrong_setting_stops_the_load_and_is_named() -> None:
    environment = clean_environment() | {f"{PREFIX}TOP_N": "many"}
    command = [sys.executable, "-W", "ignore", "-c", "import douban_pipeline.definitions"]
    result = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert result.returncode != 0
    assert f"{PREFIX}TOP_N = 'many' is not allowed" in result.stderr
    assert "a whole number from 1 to 20" in result.stderr


def test_the_assets_and_how_they_hang_together(assets: dict[str, dg.AssetsDefinition]) -> None:
    upstream = {
        name: {key.to_user_string() for key in asset.keys_by_input_name.values()} for name, asset in assets.items()
    }
    assert upstream == {
        "applied_decisions": {"scored_matches", "synced_fields"},
        "ordered_intros": {"applied_decisions", "synced_fields"},
        "due_videos": set(),
        "search_candidates": {"due_videos"},
        "scored_matches": {"search_candidates"},
        "due_rechecks": {"scored_matches", "synced_fields"},
        "synced_fields": {"scored_matches"},
        "ai_intros": {"synced_fields"},
        "source_gates": set(),
        "pipeline_health": {"due_videos", "scored_matches", "synced_fields", "ai_intros"},
        "duplicate_reports": {"synced_fields"},
        "review_queue": {"synced_fields"},
        "automatic_precision": {"synced_fields"},
        "missing_douban_ids": {"synced_fields"},
        "locked_douban_ids": {"synced_fields"},
        "intro_reports": {"synced_fields"},
        "tasks_and_log": {"synced_fields"},
        "review_list": {"synced_fields"},
        "overview": set(),
        "cms_drift": {"synced_fields"},
    }


@pytest.mark.parametrize("name", CHAIN_ASSETS)
def test_the_chain_has_64_shards_and_one_backfill_policy(name: str, assets: dict[str, dg.AssetsDefinition]) -> None:
    asset = assets[name]
    assert asset.partitions_def is not None
    assert asset.partitions_def.get_partition_keys() == [f"{shard:02d}" for shard in range(64)]
    assert asset.backfill_policy == dg.BackfillPolicy.multi_run(8)


@pytest.mark.parametrize(
    "name", ["duplicate_reports", "review_queue", "automatic_precision", "source_gates", "pipeline_health"]
)
def test_reports_compare_across_shards(name: str, assets: dict[str, dg.AssetsDefinition]) -> None:
    assert assets[name].partitions_def is None


def test_every_asset_says_what_it_is(assets: dict[str, dg.AssetsDefinition]) -> None:
    for name, asset in assets.items():
        [spec] = asset.specs
        assert len(spec.description or "") > 50, name
        assert spec.group_name in ("chain", "reports", "health"), name
        assert spec.kinds, name


def test_no_asset_hands_values_to_an_io_manager(assets: dict[str, dg.AssetsDefinition]) -> None:
    # An asset without this annotation goes through the pickling IO manager, which fails for several shards at once.
    for name, asset in assets.items():
        assert get_type_hints(asset.op.compute_fn.decorated_fn)["return"] is dg.MaterializeResult, name


def test_every_guard_blocks_and_is_unpartitioned(
    repository: dg.RepositoryDefinition, assets: dict[str, dg.AssetsDefinition]
) -> None:
    checks = {
        (spec.asset_key.to_user_string(), spec.name): (spec.blocking, spec.partitions_def)
        for check in [*repository.asset_checks_defs_by_key.values(), *assets.values()]
        for spec in check.check_specs
    }
    names: dict[str, set[str]] = {}
    for (asset, name), (blocking, partitions) in checks.items():
        # Nothing comes after a report: its check tells, and what it tells of (brakes, gates) does the holding back.
        assert blocking is (asset not in REPORTS), name
        assert partitions is None, name
        names.setdefault(asset, set()).add(name)
    assert names == {
        "due_rechecks": {"rechecked_links_hold"},
        "due_videos": {"no_excluded_type", "no_duplicate_open_task", "no_ids_cleared_in_bulk"},
        "scored_matches": {
            "no_confirmed_with_hard_reject",
            "confirmed_reach_thresholds",
            "confirmed_from_healthy_sources",
            "locked_and_ignored_left_alone",
            "braked_strata_left_to_people",
            "choices_of_people_stand",
        },
        "synced_fields": {
            "nothing_blanked",
            "locked_untouched",
            "log_agrees_with_cms",
            "no_change_interrupted",
            "next_sync_in_future",
            "writes_take_hold",
        },
        "ai_intros": {"intros_pass_guard", "intros_logged", "locked_intros_untouched"},
        "automatic_precision": {"precision_holds"},
        "source_gates": {"gates_closed"},
        "review_queue": {"no_tmdb_facts_beyond_terms"},
        "cms_drift": {"cms_keeps_what_was_written"},
        "pipeline_health": {
            *("backlog_steady", "failures_rare", "work_succeeds", "review_share_usual", "tasks_taken_up")
        },
        "applied_decisions": {"decisions_accepted"},
    }


def test_the_executor_is_in_process_for_jobs_and_backfills_alike(repository: dg.RepositoryDefinition) -> None:
    for name in ("__ASSET_JOB", "douban_chain", "record_decisions"):
        assert repository.get_job(name).executor_def is dg.in_process_executor


def test_every_job_and_pool_names_its_system(repository: dg.RepositoryDefinition) -> None:
    # Ad-hoc runs of assets go by their code location.
    unnamed = [job.name for job in repository.get_all_jobs() if job.tags.get("system") != "douban"]
    assert unnamed == ["__ASSET_JOB"]
    assert all(pool.startswith("douban_") for pool in POOL_LIMITS)


def test_every_pool_has_an_explicit_limit(assets: dict[str, dg.AssetsDefinition]) -> None:
    pools = {asset.op.pool for asset in assets.values() if asset.op.pool}
    assert pools == set(POOL_LIMITS)
    with dg.DagsterInstance.ephemeral() as instance:
        set_pool_limits(instance, POOL_LIMITS)
        set_pool_limits(instance, POOL_LIMITS)
        found = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits()}
    assert found == POOL_LIMITS


def test_sensors_and_schedules_run_by_default(repository: dg.RepositoryDefinition) -> None:
    sensors = {sensor.name: sensor for sensor in repository.sensor_defs}
    assert set(sensors) == {*("due_videos_sensor", "decisions_sensor", "intake_sensor", "alert_on_run_failure")}
    assert sensors["due_videos_sensor"].minimum_interval_seconds == 30
    assert sensors["decisions_sensor"].minimum_interval_seconds == 10
    assert all(sensor.default_status is dg.DefaultSensorStatus.RUNNING for sensor in sensors.values())
    schedules = {schedule.name: schedule for schedule in repository.schedule_defs}
    assert set(schedules) == {
        *("weekly_backfill", "hourly_sweep", "hourly_rechecks", "nightly_reports_schedule", "nightly_prune"),
        *("frequent_health", "weekly_archive", "nightly_index"),
    }
    for schedule in schedules.values():
        assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
        assert schedule.execution_timezone == "Asia/Shanghai"


@pytest.mark.parametrize(
    "job",
    [
        *("record_decisions", "revert_changes", "lift_brakes", "rescore_library", "initialise_library"),
        *("sweep_library", "redo_intros", "set_gate", "prune_archive", "reparse_archive"),
        *("record_batch_decisions", "import_decisions", "video_history", "queue_matches", "settle_duplicates"),
    ],
)
def test_the_launchpad_opens_with_a_complete_config(job: str, repository: dg.RepositoryDefinition) -> None:
    definition = repository.get_job(job)
    prefilled = dict(definition.run_config or {})
    [op] = prefilled["ops"]
    fields = definition.get_node_named(op).definition.config_schema.config_type.fields
    assert set(prefilled["ops"][op]["config"]) == set(fields)
    assert fits_schema(definition, prefilled)


@pytest.mark.parametrize("path", ["dagster.yaml", "deploy/dagster.yaml"])
def test_the_instance_file_is_valid_and_avoids_the_traps(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (PROJECT / path).read_text(encoding="utf-8")
    if path == "dagster.yaml":
        assert "env:" not in content, "the root file must load without any variable"
    for name in ("USERNAME", "PASSWORD", "HOST", "DB", "PORT"):
        monkeypatch.setenv(f"DAGSTER_PG_{name}", "5432" if name == "PORT" else "x")
    (tmp_path / "dagster.yaml").write_text(content, encoding="utf-8")
    config, _ = dagster_instance_config(str(tmp_path))
    assert config == yaml.safe_load(content)
    assert config["run_retries"] == {"enabled": False}
    assert config["concurrency"]["pools"] == {"default_limit": 1, "granularity": "run"}
    assert config["run_coordinator"]["config"]["dequeue_interval_seconds"] == 1
    assert config["run_monitoring"]["enabled"]
    assert config["run_monitoring"]["free_slots_after_run_end_seconds"]
    assert config["freshness"] == {"enabled": False}
    assert config["python_logs"] == {"python_log_level": "INFO"}, "a run's hundred events would drown what it tells"
    assert set(config["retention"]) == {"sensor", "schedule"}
    assert config["telemetry"] == {"enabled": False}


@pytest.mark.postgres
def test_runs_are_stored_in_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import create_engine, make_url

    server = make_url(server_url("postgres"))
    database = f"douban_test_{os.getpid()}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {database}")
    try:
        for name, value in {
            "USERNAME": server.username or "postgres",
            "PASSWORD": server.password or "",
            "HOST": server.host or "127.0.0.1",
            "PORT": str(server.port or 5432),
            "DB": database,
        }.items():
            monkeypatch.setenv(f"DAGSTER_PG_{name}", value)
        deployed = (PROJECT / "deploy" / "dagster.yaml").read_text(encoding="utf-8")
        (tmp_path / "dagster.yaml").write_text(deployed, encoding="utf-8")

        @dg.job
        def nothing() -> None:
            """Do nothing, in a run that is stored."""

        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            set_pool_limits(instance, POOL_LIMITS)
            run_id = nothing.execute_in_process(instance=instance).run_id
            stored = instance.get_run_by_id(run_id)
            assert stored is not None
            assert stored.status is dg.DagsterRunStatus.SUCCESS
            assert {pool.name for pool in instance.event_log_storage.get_pool_limits()} == set(POOL_LIMITS)
    finally:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {database} WITH (FORCE)")
        admin.dispose()
