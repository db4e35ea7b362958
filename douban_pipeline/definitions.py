"""What Dagster loads."""

from douban_pipeline.build import build_defs

defs = build_defs()
"""The code location."""
