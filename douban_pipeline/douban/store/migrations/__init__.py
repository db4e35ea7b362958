"""Alembic migrations of our own tables. They never touch a table of the CMS."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, partial
from pathlib import Path

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.douban.store.tables import own_tables


def version_table(prefix: str) -> str:
    """Return the name of the table in which Alembic notes the version."""
    return f"{prefix}douban_version"


def _left_behind(prefix: str, names: Collection[str]) -> str:
    """Return what to do about our tables under a prefix that no CMS has any more: its tables were renamed."""
    for name in sorted(names) if f"{prefix}vod" in names else ():
        other = name.removesuffix(version_table(""))
        if other not in (name, prefix) and f"{other}vod" not in names and f"{other}douban_video" in names:
            ours = sorted(each for each in names if each.startswith(f"{other}douban_"))
            renamed = ", ".join(f"{each} TO {prefix}{each.removeprefix(other)}" for each in ours)
            return terminal_text(
                "our tables stand under the prefix {other!r}, where there is no CMS any more. If the CMS's tables were "
                "renamed, rename ours too: RENAME TABLE {renamed}"
            ).format(other=other, renamed=renamed)
    return ""


@cache
def tree_of(prefix: str) -> MigrationTree:
    """Return the migrations of tables under ``prefix``."""
    return MigrationTree(
        folder=Path(__file__).parent,
        version_table=version_table(prefix),
        metadata=own_tables(prefix).metadata,
        misplaced="restore that table, or set DOUBAN_PIPELINE_TABLE_PREFIX to the prefix of the CMS's tables",
        system="douban",
        next_job="initialise_library",
        makes_file=False,
        left_behind=partial(_left_behind, prefix),
    )
