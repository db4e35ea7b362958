"""What a launch of `revert_changes` reports: what was reverted or would be, what was left alone and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, or_, select

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import local_time, panel
from douban_pipeline.douban import links
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.undo.history import described_changes
from douban_pipeline.douban.wording import ACTIONS, CHANGES, OPERATORS, word_for
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline.douban.writes.revert import RevertedChange

MOST_ROWS = 200
MOST_STEPPED, MOST_STEPS = 50, 20
"""Videos of which all steps are listed, and steps of each."""


def change_table(services: Services, results: Sequence[RevertedChange]) -> str:
    """Return the changes as a table: those of which something was left alone first, then the newest first.

    The texts of those that are shown are read again, so that of all the others none need be held.
    """
    first = sorted(results, key=lambda result: (not result.skipped, -result.change_id))
    named = first[:MOST_ROWS]
    log, zone = services.tables.log, services.settings.zone
    with reading(services.engine) as connection:
        query = select(log).where(log.c.change_id.in_([result.change_id for result in named]))
        changes = {row["change_id"]: row for row in connection.execute(query).mappings()}
        rows = services.cms.rows(connection, sorted({result.vod_id for result in named}))
    shown = []
    for result in named:
        change, row = changes[result.change_id], rows.get(result.vod_id)
        new, state_new = decode(change["new_values"]), decode(change["state_new"])
        restored = described_changes(new, decode(change["old_values"]), result.restored, zone)
        restored += [
            f"状态 {text}" for text in described_changes(state_new, decode(change["state_old"]), result.state, zone)
        ]
        restored += ["转入待审核"] if result.to_review else []
        shown.append(
            {
                "变更": result.change_id,
                "影片": result.vod_id,
                "片名": readable(row["vod_name"]) if row is not None else "（已删除）",
                "写入": word_for(CHANGES, change["action"]),
                "写入者": word_for(OPERATORS, change["operator"]),
                "写入时间": local_time(change["applied_at"], zone),
                "恢复": "；".join(restored),
                "跳过": "、".join(result.skipped),
                "说明": result.reason,
                "": launch_link("历史", links.history(result.vod_id), services.location),
            }
        )
    left_out = f"\n\n仅列出前 {MOST_ROWS} 条，共 {len(first)} 条。" if len(first) > MOST_ROWS else ""
    return panel(shown, most=MOST_ROWS, in_dialog=True) + left_out


def decision_table(settings: Settings, decisions: Sequence[RowMapping]) -> str:
    """Return decisions that were withdrawn before they were applied, as a table."""
    zone = settings.zone
    rows: list[Mapping[str, Any]] = [
        {
            "决定": row["decision_id"],
            "影片": row["vod_id"],
            "内容": ACTIONS[DecisionAction(row["action"])],
            "审核员": row["reviewer"],
            "记录于": local_time(row["created_at"], zone),
        }
        for row in decisions
    ]
    return panel(rows, most=MOST_ROWS, in_dialog=True)


def steps_table(
    services: Services, connection: Connection, vod_ids: Sequence[int], results: Sequence[RevertedChange]
) -> str:
    """Return for videos that go a step back which of their steps is taken and which stay, the newest first.

    Empty where no videos were named.
    """
    taken = {result.change_id for result in results if result.restored or result.state}
    log, video = services.tables.log, services.cms.vod
    rows: list[Mapping[str, Any]] = []
    for vod_id in list(dict.fromkeys(vod_ids))[:MOST_STEPPED]:
        name = connection.execute(select(video.c.vod_name).where(video.c.vod_id == vod_id)).scalar_one_or_none()
        applied = (log.c.vod_id == vod_id, log.c.state == ChangeState.APPLIED, log.c.reverts_change_id.is_(None))
        # Once it was reverted for good it is not applied any more, and still a step that was taken.
        ours = or_(and_(*applied), log.c.change_id.in_(taken) & (log.c.vod_id == vod_id))
        query = select(log).where(ours).order_by(log.c.change_id.desc()).limit(MOST_STEPS)
        for change in connection.execute(query).mappings():
            rows.append(
                {
                    "影片": vod_id,
                    "片名": readable(name or ""),
                    "变更": change["change_id"],
                    "写入": word_for(CHANGES, change["action"]),
                    "写入者": word_for(OPERATORS, change["operator"]),
                    "写入时间": local_time(change["applied_at"], services.settings.zone),
                    "": "撤销" if change["change_id"] in taken else "保留",
                }
            )
    return panel(rows, most=MOST_STEPPED * MOST_STEPS, in_dialog=True) if rows else ""
