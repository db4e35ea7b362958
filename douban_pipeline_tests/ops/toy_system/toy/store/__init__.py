"""The toy's table and its migrations."""

from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, String, Table

from douban_pipeline.core.migrations import MigrationTree

metadata = MetaData()
note = Table(
    "toy_note", metadata, Column("note_id", Integer, primary_key=True), Column("text", String(50), nullable=False)
)
TREE = MigrationTree(
    folder=Path(__file__).parent,
    version_table="toy_version",
    metadata=metadata,
    misplaced="restore that table",
    system="toy",
    option=" --system toy",
)
