"""Jobs launched over a scenario's library, by their own definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline_tests.harness.fixtures.runs import Run, run_of
from douban_pipeline_tests.harness.fixtures.scenario import Scenario

_QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}


def launched(scenario: Scenario, job: dg.JobDefinition, ops: Mapping[str, Any] | None = None) -> Run:
    """Run ``job``; without ``ops`` as its launchpad opens."""
    config = {"loggers": _QUIET, "ops": dict(ops)} if ops else None
    return run_of(
        lambda: job.execute_in_process(
            run_config=config,
            instance=scenario.instance,
            resources={"services": scenario.services},
            raise_on_error=False,
        )
    )
