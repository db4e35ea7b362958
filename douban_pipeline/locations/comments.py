"""What Dagster loads of the comment system, in every process anew."""

from douban_pipeline.core.garbage_collection import without_garbage_collection

with without_garbage_collection():
    from douban_pipeline.comments.definitions import build_defs

    defs = build_defs()
    """The code location."""
