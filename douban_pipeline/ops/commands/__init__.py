"""The commands of `douban-pipeline`, joined in `douban_pipeline.ops.cli`."""
