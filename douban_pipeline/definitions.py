"""What Dagster loads of the core system, in every process anew: the code server, and each run."""

from douban_pipeline.locations import location_of

defs = location_of(__name__)
"""The code location."""
