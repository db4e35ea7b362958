"""What Douban calls the subjects that videos are linked to, for other systems to read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Engine, select

from douban_pipeline.core.database import chunks, reading, run_transaction, upsert
from douban_pipeline.douban.store.tables import TITLE_LENGTH, OwnTables


def note_titles(engine: Engine, tables: OwnTables, titles: Mapping[int, str], now: datetime) -> int:
    """Record titles by subject; return how many differ from what was recorded, which alone are written.

    Call it before a sync is recorded in the state of its video: who then reads what was synced since a moment finds
    the title that goes with it.
    """
    subject = tables.subject
    wanted = {douban_id: title[:TITLE_LENGTH] for douban_id, title in titles.items()}
    recorded: dict[int, str] = {}
    with reading(engine) as connection:
        for some in chunks(sorted(wanted)):
            query = select(subject.c.douban_id, subject.c.title).where(subject.c.douban_id.in_(some))
            recorded |= {row.douban_id: row.title for row in connection.execute(query)}
    rows = [
        {"douban_id": douban_id, "title": title, "changed_at": now}
        for douban_id, title in sorted(wanted.items())
        if recorded.get(douban_id) != title
    ]
    if rows:
        columns = ("title", "changed_at")
        run_transaction(
            engine, lambda connection: upsert(connection, subject, rows, keys=("douban_id",), changes=columns)
        )
    return len(rows)
