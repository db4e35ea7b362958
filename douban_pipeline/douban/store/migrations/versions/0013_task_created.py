"""The tasks of a type that were queued since a time are found without reading all tasks."""

from __future__ import annotations

from alembic import context

from douban_pipeline.core.migration_steps import add_index

revision = "0013"
down_revision = "0012"
release = "0.3.0"


def upgrade() -> None:
    """Add what is missing."""
    task = f"{context.config.attributes['prefix']}douban_task"
    add_index(task, f"ix_{task}_created", "task_type", "created_at")
