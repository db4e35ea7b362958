"""What is due is found by indexes whose use does not grow with the library; one that another serves as well goes."""

from __future__ import annotations

from alembic import context

from douban_pipeline.core.migration_steps import add_index, drop_index

revision = "0005"
down_revision = "0004"
release = "0.2.0"


def upgrade() -> None:
    """Add what is missing."""
    own = f"{context.config.attributes['prefix']}douban_"
    video = f"{own}video"
    coming = ("douban_next_sync_at", "type_id", "shard")
    add_index(video, f"ix_{video}_coming", *coming, instead_of=f"ix_{video}_due")
    add_index(video, f"ix_{video}_first", "shard", "type_id", "douban_next_sync_at")
    add_index(video, f"ix_{video}_round", "shard", "douban_last_sync_at")
    # Answers to one question are few, and the unique key leads to them.
    drop_index(f"{own}snapshot", f"ix_{own}snapshot_latest")
