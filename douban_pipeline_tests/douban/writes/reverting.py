"""Writes to a library and reverts of them, as the tests of reverting do them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert import ChangeSelection, RevertedChange, revert
from douban_pipeline_tests.harness.fixtures.library import Library

FIELDS = {
    "vod_douban_id": 1292052,
    "vod_douban_score": Decimal("9.7"),
    "vod_name": "Ocean&#039;s Eleven",
    "vod_year": "1994",
    "vod_area": "美国",
    "vod_content": "<p>新简介</p>",
    "vod_total": 12,
}


def changed(library: Library, vod_id: int = 7, new: dict[str, Any] | None = None, **given: Any) -> Change:
    """Return a change of the columns ``new`` from what stands now."""
    new = dict(FIELDS if new is None else new)
    row = library.row(vod_id)
    state = {
        "vod_douban_id": new.get("vod_douban_id", row["vod_douban_id"]),
        "douban_review_status": ReviewStatus.CONFIRMED,
        "douban_id_source": "auto",
        "douban_id_confidence": 97.25,
        "douban_last_sync_at": library.clock.now(),
    }
    return Change(vod_id, "link", **{"old": {name: row[name] for name in new}, "new": new, "state": state, **given})


def write(library: Library, *changes: Change, run_id: str = "run", batch_id: str = "batch", **log: Any) -> list[int]:
    """Write one change after another; return their keys."""
    outcomes = []
    for change in changes:
        outcomes += library.change_log(run_id, batch_id=batch_id, **log).write([change])
    assert {outcome.state for outcome in outcomes} == {ChangeState.APPLIED}
    return [outcome.change_id for outcome in outcomes]


def revert_writes(
    library: Library,
    *change_ids: int,
    dry_run: bool = False,
    log: Any = None,
    override_cms_lock: bool = False,
    **selection: Any,
) -> list[RevertedChange]:
    """Take changes back, in the batch ``undo`` unless ``log`` is another."""
    chosen = ChangeSelection(change_ids=change_ids, **selection)
    log = log or library.change_log("undo", batch_id="undo")
    return revert(log, chosen, operator="王", reason="认错了", dry_run=dry_run, override_cms_lock=override_cms_lock)


def altered(change: Change, **fields: Any) -> Change:
    """Return a change with other fields."""
    return replace(change, **fields)
