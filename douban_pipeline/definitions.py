"""What Dagster loads, in every process anew: the code server, and each run."""

from douban_pipeline.core.garbage_collection import without_garbage_collection

with without_garbage_collection():  # a fifth of the time
    from douban_pipeline.douban.definitions import build_defs

    defs = build_defs()
    """The code location."""
