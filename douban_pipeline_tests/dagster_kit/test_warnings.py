"""Dagster's warnings of beta features, which are used on purpose, reach nobody who loads a location."""

import os
import subprocess
import sys

from douban_pipeline_tests.dagster_kit.test_descriptions import LOCATIONS

LOAD = """
import sys
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name).defs.get_repository_def().load_all_definitions()
"""


def test_a_process_that_loads_the_locations_prints_nothing():
    given = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    command = [sys.executable, "-c", LOAD, *LOCATIONS]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_warnings_of_other_kinds_are_not_silenced():
    warn = "import warnings; import douban_pipeline.dagster_kit; warnings.warn('the disk is full')"
    done = subprocess.run([sys.executable, "-W", "default", "-c", warn], capture_output=True, text=True, check=True)
    assert "the disk is full" in done.stderr
