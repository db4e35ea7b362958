"""Runs of the chain as tests look at them: Dagster's own, and the same steps as the plain functions they are."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import dagster as dg

from douban_pipeline.douban.chain.due.assets import DueConfig
from douban_pipeline.douban.chain.due.due_videos import Scope
from douban_pipeline.douban.definitions import default_assets, default_checks
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.services import Services

STEPS = ("due_videos", "search_candidates", "scored_matches", "synced_fields", "ai_intros")


@dataclass(frozen=True)
class Run:
    """What one run of Dagster's came to."""

    result: dg.ExecuteInProcessResult

    @property
    def success(self) -> bool:
        """Whether the run ended as SUCCESS."""
        return self.result.success

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.result.run_id

    @property
    def materialized(self) -> set[str]:
        """The assets that were materialized."""
        return {
            event.step_materialization_data.materialization.asset_key.to_user_string()
            for event in self.result.all_events
            if event.is_step_materialization
        }

    def metadata(self, asset: str) -> dict[str, Any]:
        """Return the metadata of the first materialization of ``asset``, as plain values."""
        for event in self.result.all_events:
            if event.is_step_materialization:
                found = event.step_materialization_data.materialization
                if found.asset_key.to_user_string() == asset:
                    return {name: value.value for name, value in found.metadata.items()}
        raise AssertionError(f"{asset} was not materialized")

    @property
    def output(self) -> dict[str, Any]:
        """The metadata of the only op's output, as plain values."""
        [event] = [event for event in self.result.all_events if event.is_successful_output]
        return {name: value.value for name, value in event.step_output_data.metadata.items()}

    @property
    def failure(self) -> str:
        """What the failed step says."""
        [event] = [event for event in self.result.all_events if event.is_step_failure]
        error = event.step_failure_data.error
        return error.message.rstrip() if error else ""

    @property
    def guards(self) -> dict[str, dg.AssetCheckEvaluation]:
        """The guards that were evaluated, by name."""
        return {found.check_name: found for found in self.result.get_asset_check_evaluations()}

    @property
    def failed_guards(self) -> set[str]:
        """The names of the guards that failed."""
        return {name for name, found in self.guards.items() if not found.passed}

    def guard(self, name: str) -> dict[str, Any]:
        """Return the metadata of a guard, as plain values."""
        return {key: value.value for key, value in self.guards[name].metadata.items()}


@dataclass(frozen=True)
class Play:
    """What the steps came to when they were called as plain functions."""

    run_id: str
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed_guards: set[str] = field(default_factory=set)

    @property
    def success(self) -> bool:
        """Whether no guard stopped it; a step that raises raises here too."""
        return not self.failed_guards

    @property
    def materialized(self) -> set[str]:
        """The steps that were done."""
        return set(self.results)

    def metadata(self, asset: str) -> dict[str, Any]:
        """Return what a step told, as plain values."""
        return self.results[asset]


def play(services: Services, shards: Sequence[int], steps: Sequence[str]) -> Play:
    """Do ``steps`` over ``shards`` one after another, each followed by its guards; one that fails ends the play.

    For tests that are about what the steps do, not about Dagster: the functions are the assets' and the checks' own.
    """
    played = Play(new_run_id())
    context = SimpleNamespace(
        run=SimpleNamespace(run_id=played.run_id),
        partition_keys=[partition_key(shard) for shard in shards],
        log=logging.getLogger("play"),
    )
    assets = {asset.key.to_user_string(): asset for asset in default_assets}
    for step in steps:
        given = {"config": DueConfig(scope=Scope.due, batch_size=0)} if step == "due_videos" else {}
        told = function_of(assets[step])(context, services=services, **given).metadata
        played.results[step] = {
            name: value.value if isinstance(value, dg.MetadataValue) else value for name, value in told.items()
        }
        played.failed_guards.update(
            result.check_name
            for check in default_checks
            if {key.asset_key.to_user_string() for key in check.check_keys} == {step}
            for result in results_of(check, services)
            if not result.passed
        )
        if played.failed_guards:
            break
    return played


def results_of(guards: dg.AssetChecksDefinition, services: Services) -> Sequence[Any]:
    """Return what an asset's guards find, called as the plain function they are."""
    context = SimpleNamespace(selected_asset_check_keys=guards.check_keys)
    return list(function_of(guards)(context, services))


def function_of(definition: Any) -> Any:
    """Return the plain function behind an asset or a check."""
    return definition.op.compute_fn.decorated_fn


def new_run_id() -> str:
    """Return an id for a run that is still to come, so that a row can be planted in its name."""
    return str(uuid.uuid4())
