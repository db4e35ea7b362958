"""What Dagster loads of the toy."""

from douban_pipeline.locations import location_of

defs = location_of(__name__)
