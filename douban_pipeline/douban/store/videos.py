"""Our state rows: reading them, marking deleted videos, and describing broken rules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, column, exists, or_, select, table, update

from douban_pipeline.cms.maccms import MATCH_COLUMNS
from douban_pipeline.douban.store.states import VerdictState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import shard_of

GONE = "影片已从 CMS 中删除"
"""What is noted of a video that was deleted."""


def state_rows(
    connection: Connection, tables: OwnTables, vod_ids: Iterable[int], *, lock: bool = False
) -> dict[int, RowMapping]:
    """Return our state rows of ``vod_ids`` that exist, by id.

    With ``lock`` nobody else changes them until the transaction ends.
    """
    query = select(tables.video).where(tables.video.c.vod_id.in_(list(vod_ids)))
    rows = connection.execute(query.with_for_update() if lock else query).mappings()
    return {row["vod_id"]: row for row in rows}


def fingerprint(row: Mapping[Any, Any]) -> str:
    """Return a hash of what a verdict about this video depends on: the `MATCH_COLUMNS` of its CMS row."""
    text = "\x1f".join(str(row[column]) for column in MATCH_COLUMNS)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def changed_since(judged: str, row: Mapping[Any, Any]) -> bool:
    """Return whether what a verdict depends on is not as ``judged``, its fingerprint or the beginning of that; False
    where none was kept."""
    return bool(judged) and not fingerprint(row).startswith(judged)


def note_gone(connection: Connection, tables: OwnTables, vod_id: int, *, recycled: bool = False) -> None:
    """Note that a video is no longer in the CMS: it is not due any more, until the sweep sees it again.

    One in the recycle bin (``recycled``) keeps its reason: it goes on where it was when it comes back.
    """
    video = tables.video
    reason = {} if recycled else {"douban_review_reason": GONE}
    connection.execute(update(video).where(video.c.vod_id == vod_id).values(douban_next_sync_at=None, **reason))


def refuse_pending(connection: Connection, tables: OwnTables, vod_id: int, reason: str) -> None:
    """Settle the verdict of a video that waits to be written, where its task is closed without it."""
    verdict = tables.verdict
    connection.execute(
        update(verdict)
        .where(verdict.c.vod_id == vod_id, verdict.c.state == VerdictState.PENDING)
        .values(state=VerdictState.REFUSED, state_reason=reason[:500])
    )


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a video breaks: which video, and what is wrong, in Chinese."""

    vod_id: int
    what: str

    @property
    def shard(self) -> int:
        """The video's shard."""
        return shard_of(self.vod_id)


REMATCH_ASKED = "审核员要求重新匹配"
"""Why a video is matched anew at a person's word, even one that the CMS locks."""

CLEARED_BY_PERSON = "豆瓣 ID 已由审核员清除"
CLEARED_IN_CMS = "豆瓣 ID 在 CMS 中被清空"
CLEARED_WITH_ALL = "CMS 中保存了写入之前打开的表单，写入的内容都被改回：重新匹配"
CLEARED_IN_BULK = "大量豆瓣 ID 在 CMS 中一并被清空：等待回答（settle_cleared_ids）"
NO_LONGER_IGNORED = "忽略期已过"
SEARCH_DOUBTED = "此前搜索的空结果不可信，重新查找"
"""A search that found nothing is known to have found nothing at all."""

OPENED_AGAIN = frozenset(
    {"", GONE, REMATCH_ASKED, CLEARED_BY_PERSON, CLEARED_IN_CMS, CLEARED_WITH_ALL, NO_LONGER_IGNORED, SEARCH_DOUBTED}
)
"""Reasons of videos without a subject that are no outcome of a search: it is still to come."""


LOCKED_VISIT = timedelta(days=1)
"""How long a video that the CMS locks is left alone before anybody looks whether it is still locked."""


def left_to_the_site(row: Mapping[Any, Any], state: Mapping[Any, Any]) -> bool:
    """Return whether the site locked a video's row, and nobody asked for a rematch: as `cms_locked`, of rows."""
    return bool(row["vod_lock"]) and state["douban_review_reason"] != REMATCH_ASKED


def cms_locked(tables: OwnTables, prefix: str, *, by_key: bool = False) -> ColumnElement[bool]:
    """Return the condition that the site locked a video's row, and nobody asked for a rematch.

    Args:
        tables: Our tables; the condition is about `OwnTables.video`.
        prefix: That of the CMS's tables.
        by_key: Whether each row is looked up by its key: quicker for a hundred videos. By default MariaDB reads all
            locked rows by the CMS's index of them, which is quicker for thousands.
    """
    video, vod = tables.video, table(f"{prefix}vod", column("vod_id"), column("vod_lock"))
    # A sum is in no index.
    lock = vod.c.vod_lock + 0 if by_key else vod.c.vod_lock
    locked = exists().where(vod.c.vod_id == video.c.vod_id, lock == 1)
    return and_(video.c.douban_review_reason != REMATCH_ASKED, locked)


def intro_of_person(tables: OwnTables) -> ColumnElement[bool]:
    """Return the condition that a locked synopsis was locked by a person: the model wrote none, or wrote it before.

    An intro is locked at the moment when it is written.
    """
    video = tables.video.c
    times = and_(video.intro_lock_time.is_not(None), video.intro_ai_last_at.is_not(None))
    return or_(video.intro_ai_source == "", and_(times, video.intro_lock_time > video.intro_ai_last_at))


def is_intro_of_person(state: RowMapping) -> bool:
    """Return whether `intro_of_person` holds for a row of `OwnTables.video`."""
    locked, written = state["intro_lock_time"], state["intro_ai_last_at"]
    return not state["intro_ai_source"] or (locked is not None and written is not None and locked > written)
