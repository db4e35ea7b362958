"""How long it takes to take a whole batch of writes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.harness.benchmarks.measuring import (
    SMALL,
    Figure,
    Measure,
    Target,
    World,
    bare_cursor,
    stopwatch,
)
from douban_pipeline_tests.harness.benchmarks.planting import planted_changes, spread

BATCH = 10_000
"""Writes that are taken back."""


def reverting(world: World) -> list[Figure]:
    """Take back a batch that linked videos and wrote their people, then do as much by the driver alone."""
    vod_ids = spread(world.size, BATCH)
    with planted_changes(world, vod_ids) as batch_id:
        rows = _logged(world, batch_id)
        change_log = world.services.change_log("benchmark")
        world.say("taking the batch back")
        with stopwatch() as ours:
            selection = ChangeSelection(batch_id=batch_id)
            # Some generated rows are locked in the CMS: what was planted in them is reverted, too.
            results = revert(
                change_log, selection, operator="benchmark", reason="压测", dry_run=False, override_cms_lock=True
            )
        back = sum(bool(result.restored) for result in results)
        assert back == len(vod_ids), f"{back} of {len(vod_ids)} changes were taken back"
        world.say("the same writes by the driver alone")
        with stopwatch() as bare:
            _bare(world, rows)
    return [
        Figure(
            f"a batch of {BATCH:,}",
            ours.wall,
            "s",
            Target(most=60),
            bare.wall,
            "bare executemany: UPDATE of the same rows, INSERT of as many log rows",
            f"{len(vod_ids):,} changes of {len(rows[0]['new_values'])} columns each; {ours.cpu:.0f} s of CPU here",
        ),
        Figure("changes", len(vod_ids) / ours.wall, "/s", None, len(vod_ids) / bare.wall, "bare executemany"),
    ]


def _logged(world: World, batch_id: str) -> Sequence[Any]:
    log = world.services.tables.log
    with reading(world.services.engine) as connection:
        return connection.execute(select(log).where(log.c.batch_id == batch_id)).mappings().all()


def _bare(world: World, rows: Sequence[Any]) -> None:
    """Write the same CMS rows and as many rows of the log, each by one `executemany`."""
    names = sorted(rows[0]["old_values"])
    sets = ", ".join(f"{name} = %s" for name in names)
    updates = [(*(row["new_values"][name] for name in names), row["vod_id"]) for row in rows]
    logged = ["vod_id", "shard", "action", "operator", "batch_id", "run_id", "state", "prepared_at", "applied_at"]
    texts = ["old_values", "new_values", "state_old", "state_new"]
    inserts = []
    for row in rows:
        # The driver's own conversions: moments without a zone, JSON as text.
        plain = [row[name].replace(tzinfo=None) if name.endswith("_at") else row[name] for name in logged]
        plain[logged.index("batch_id")] = "bare"
        inserts.append((*plain, *(json.dumps(row[name], ensure_ascii=False) for name in texts)))
    vod, log = world.services.cms.vod.name, world.services.tables.log.name
    places = ", ".join(["%s"] * (len(logged) + len(texts)))
    with bare_cursor(world.services.engine) as cursor:
        cursor.executemany(f"UPDATE {vod} SET {sets} WHERE vod_id = %s", updates)
        cursor.executemany(f"INSERT INTO {log} ({', '.join(logged + texts)}) VALUES ({places})", inserts)


MEASURES: tuple[Measure, ...] = (Measure("reverting", "a batch of writes taken back", reverting, (SMALL,)),)
