"""The list of videos whose id no automatic run may change: who locked it and why, and what the CMS has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, case, select, true

from douban_pipeline.core.database import chunks
from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, ListColumn, Row
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import Choice, ListRows
from douban_pipeline.douban.reports.lists.spec import SECOND, ListSpec, batch_link, counted, decide, view
from douban_pipeline.douban.reports.lists.videos import (
    ACTIONS,
    LABEL,
    NUMBER,
    TIME,
    VIDEO_COLUMNS,
    category_names,
    common_links,
    known_of,
    named,
    video_rows,
)
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import locks_id
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, DecisionState
from douban_pipeline.douban.wording import ID_SOURCES, OPERATORS, word_for

_IN_CMS = {"same": "一致", "changed": "不一致", "emptied": "被清空", "gone": "影片已删除"}
_SAME, _CHANGED, _EMPTIED, _DELETED = _IN_CMS.values()
_NO_LINK = "空（不关联）"
_DONE = (DecisionState.APPLIED, DecisionState.QUEUED)


@dataclass(frozen=True, slots=True)
class LockOrigin:
    """Who locked something, and why."""

    operator: str
    reason: str


def locked_list(services: Services) -> ListSpec:
    """Return the list of videos whose id no automatic run may change, with those that were deleted since."""
    video, vod = services.tables.video, services.cms.vod
    categories, location = category_names(services), services.location
    site = VideoSite.of(services.settings)
    columns = (
        *VIDEO_COLUMNS,
        ListColumn("douban_id", "锁定的 ID", ColumnKind.SUBJECT),
        ListColumn("no_link", "锁定为空", LABEL),
        ListColumn("source", "来源", LABEL),
        ListColumn("since", "锁定时间", TIME),
        ListColumn("who", "谁", LABEL),
        ListColumn("why", "为什么"),
        ListColumn("in_cms", "CMS 现值", LABEL),
        ListColumn("cms_id", "CMS 的 ID", ColumnKind.SUBJECT),
        ListColumn("hits", "播放", NUMBER),
        ACTIONS,
    )

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        origins = lock_origins(services, connection, vod_ids)
        present = known_of(services, connection, vod_ids)
        found = {}
        query = select(video).where(video.c.vod_id.in_(vod_ids))
        for row in connection.execute(query).mappings():
            vod_id, known = row["vod_id"], present.get(row["vod_id"])
            locked, in_cms = row["vod_douban_id"], known["in_cms"] if known else None
            state = _DELETED if known is None else _SAME if in_cms == locked else _CHANGED if in_cms else _EMPTIED
            origin = origins.get(vod_id)
            acts: list[tuple[Any, ...]] = [] if known is None else [("unlock", vod_id)]
            if state == _CHANGED:
                acts.append(("relock", vod_id, in_cms))
            found[vod_id] = {
                **(named(known, categories, site) if known else {"vod_id": vod_id, "video": f"{vod_id}（已删除）"}),
                "douban_id": locked,
                "no_link": None if locked else _NO_LINK,
                "source": word_for(ID_SOURCES, row["douban_id_source"]),
                "since": row["douban_id_lock_time"],
                "who": word_for(OPERATORS, origin.operator) if origin else "没有记录",
                "why": origin.reason if origin else None,
                "in_cms": state,
                "cms_id": in_cms if state == _CHANGED else 0,
                "links": (*acts, ("history", vod_id)),
            }
        return found

    relock = decide("改锁 CMS 的 ID", location, DecisionAction.replace_and_lock, douban_id=SECOND)
    in_cms = case(
        (vod.c.vod_id.is_(None), "gone"),
        (vod.c.vod_douban_id == video.c.vod_douban_id, "same"),
        (vod.c.vod_douban_id > 0, "changed"),
        else_="emptied",
    )
    rows = video_rows(
        services,
        [video.c.douban_id_locked == true()],
        {"since": video.c.douban_id_lock_time},
        video.c.douban_id_lock_time,
        {"in_cms": Choice(in_cms, _IN_CMS), "source": Choice(video.c.douban_id_source, ID_SOURCES)},
    )
    # With those that were deleted since.
    rows = replace(rows, joined=video.outerjoin(vod, vod.c.vod_id == video.c.vod_id))
    relock = decide("改锁 CMS 的 ID", location, DecisionAction.replace_and_lock, douban_id=SECOND)
    return ListSpec(
        "locked",
        "锁定的 ID 不会被任何自动运行改动。",
        columns,
        rows,
        read,
        links={**common_links(location), "relock": relock},
        batch=(batch_link("批量解锁", lambda ids: links.batch(DecisionAction.unlock_id, ids), location),),
        figures=lambda: _locked_figures(services, rows),
    )


def _locked_figures(services: Services, rows: ListRows) -> Figures:
    in_cms, of_source = (counted(services, rows, rows.choices[name].by) for name in ("in_cms", "source"))
    sources = [(source, word, of_source[source]) for source, word in ID_SOURCES.items() if of_source.get(source)]
    differing = {code: in_cms.get(code, 0) for code in ("changed", "emptied")}
    total = sum(in_cms.values())
    return Figures(
        {
            "locked": total,
            "differing": sum(differing.values()),
            "gone": in_cms.get("gone", 0),
            **{f"source_{source or 'none'}": count for source, _, count in sources},
        },
        [
            Card("已锁定", f"{total:,}", "部影片"),
            *(
                Card(
                    f"CMS 中{_IN_CMS[code]}",
                    f"{count:,}",
                    "锁定后 CMS 中的值被改动",
                    problem_tone(count),
                    view(in_cms=code) if count else "",
                )
                for code, count in differing.items()
            ),
            *(
                Card(f"来源：{word}", f"{count:,}", "部影片", address=view(source=source) if source else "")
                for source, word, count in sources
            ),
        ],
    )


def lock_origins(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, LockOrigin]:
    """Return who locked each id, by video: from the newest applied or queued decision, else from the newest change."""
    acts: dict[int, LockOrigin] = {}
    for chunk in chunks(vod_ids):
        acts.update(_decided(services, connection, chunk))
        acts.update(_logged(services, connection, [vod_id for vod_id in chunk if vod_id not in acts]))
    return acts


def _decided(services: Services, connection: Connection, vod_ids: Collection[int]) -> Iterator[tuple[int, LockOrigin]]:
    decision = services.tables.decision
    query = (
        select(decision)
        .where(decision.c.vod_id.in_(vod_ids), decision.c.state.in_(_DONE))
        .order_by(decision.c.decision_id)
    )
    for row in connection.execute(query).mappings():
        if locks_id(DecisionAction(row["action"]), row["lock"]):
            yield row["vod_id"], LockOrigin(row["reviewer"], row["note"])


def _logged(services: Services, connection: Connection, vod_ids: Collection[int]) -> Iterator[tuple[int, LockOrigin]]:
    log = services.tables.log
    wanted = (log.c.vod_id, log.c.state_new, log.c.operator, log.c.reason)
    query = (
        select(*wanted).where(log.c.vod_id.in_(vod_ids), log.c.state == ChangeState.APPLIED).order_by(log.c.change_id)
    )
    for row in connection.execute(query).mappings():
        if _locks(row):
            yield row["vod_id"], LockOrigin(row["operator"], row["reason"])


def _locks(change: RowMapping) -> bool:
    return bool(change["state_new"].get("douban_id_locked"))
