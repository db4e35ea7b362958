"""Tables are the work of reports: a process that loads the definitions, or runs the chain, does not load pandas."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from douban_pipeline_tests.harness.fixtures.library import build_library, video

HEAVY = ("pandas", "openpyxl")

RUN = """
import dagster as dg
import douban_pipeline.definitions
from douban_pipeline.douban.definitions import build_defs
definitions = build_defs()
job = definitions.resolve_job_def("douban_chain")
quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
with dg.DagsterInstance.ephemeral() as instance:
    result = job.execute_in_process(instance=instance, partition_key="04", run_config=quiet)
assert result.success
assert len(result.get_step_success_events()) >= 5
"""


def loaded_by(code: str, tmp_path: Path, database_url: str) -> set[str]:
    """Run ``code`` in a process of its own; return which of the heavy packages it loaded."""
    told = f"{code}\nimport sys\nprint('loaded', *(name for name in {HEAVY!r} if name in sys.modules))"
    given = {name: value for name, value in os.environ.items() if not name.startswith(("DOUBAN_", "DAGSTER_"))}
    given |= {"DOUBAN_PIPELINE_DATABASE_URL": database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", told], env=given, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    return set(line.split()[1:])


def test_neither_the_definitions_nor_a_run_of_the_chain_load_tables(tmp_path: Path, sqlite_url: str) -> None:
    with build_library(sqlite_url, [video(4)]):
        pass
    assert loaded_by(RUN, tmp_path, sqlite_url) == set()
