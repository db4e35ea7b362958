"""What the tests of this folder share: the stage that scenarios are played on, and an empty library."""

from douban_pipeline_tests.library import shared_library
from douban_pipeline_tests.scenario import blank_library, dagster_instance, stage

__all__ = ["blank_library", "dagster_instance", "shared_library", "stage"]
