"""What Dagster loads of the feeds system, in every process anew."""

from douban_pipeline.locations import location_of

defs = location_of(__name__)
"""The code location."""
