"""The list of videos whose id no automatic run may change: who locked it and why, and what the CMS has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select, true

from douban_pipeline.core.database import chunks
from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, ListColumn, ListCounts, Row
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.named_list import SECOND, NamedList, batch_link, decide, page_of, view
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

_SAME, _CHANGED, _EMPTIED, _DELETED = "一致", "不一致", "被清空", "影片已删除"
_NO_LINK = "空（不关联）"
_DONE = (DecisionState.APPLIED, DecisionState.QUEUED)


@dataclass(frozen=True, slots=True)
class LockOrigin:
    """Who locked something, and why."""

    operator: str
    reason: str


def locked_list(services: Services) -> NamedList:
    """Return the list of videos whose id no automatic run may change, with those that were deleted since."""
    video, categories, location = services.tables.video, category_names(services), services.location
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
        ListColumn("differs", "", ColumnKind.RANK),
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
                "differs": int(state in (_CHANGED, _EMPTIED)),
                "links": (*acts, ("history", vod_id)),
            }
        return found

    relock = decide("改锁 CMS 的 ID", location, DecisionAction.replace_and_lock, douban_id=SECOND)
    page = page_of(
        "locked",
        "锁定的 ID 不会被任何自动运行改动。",
        columns,
        key="vod_id",
        video="vod_id",
        time="since",
        links={**common_links(location), "relock": relock},
        batch=(batch_link("批量解锁", lambda ids: links.batch(DecisionAction.unlock_id, ids), location),),
        order="锁定时间，新的在前",
        top="differs",
    )
    rows = video_rows(
        services,
        [video.c.douban_id_locked == true()],
        {"since": video.c.douban_id_lock_time},
        video.c.douban_id_lock_time,
        video.c.douban_id_source,
    )
    return NamedList("locked", page, rows, read, _locked_figures)


def _locked_figures(counts: ListCounts) -> Figures:
    sources = [(source, word, count) for source, word in ID_SOURCES.items() if (count := counts.of("source", word))]
    changed, emptied = counts.of("in_cms", _CHANGED), counts.of("in_cms", _EMPTIED)
    return Figures(
        {
            "locked": counts.rows,
            "differing": changed + emptied,
            "gone": counts.of("in_cms", _DELETED),
            **{f"source_{source or 'none'}": count for source, _, count in sources},
        },
        [
            Card("已锁定", f"{counts.rows:,}", "部影片"),
            *(
                Card(
                    f"CMS 中{word}",
                    f"{count:,}",
                    "锁定后 CMS 中的值被改动",
                    problem_tone(count),
                    view(in_cms=word) if count else "",
                )
                for word, count in ((_CHANGED, changed), (_EMPTIED, emptied))
            ),
            *(Card(f"来源：{word}", f"{count:,}", "部影片", address=view(source=word)) for _, word, count in sources),
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
