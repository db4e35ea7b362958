"""A subject that another video has, or is to have: seldom meant, so that a reviewer has to say that it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from douban_pipeline.douban.review.recording.pending import Pending
from douban_pipeline.douban.review.recording.rows import Row
from douban_pipeline.douban.review.recording.standing import Standing, holders_of, titles_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus

CONFIRM_ANYWAY = "请核对；确认无误请加 accept_conflicts: true"
"""The remedy wherever something speaks against a subject."""

_NAMED = 3


def note_others(services: Services, rows: Sequence[Row], standing: Standing, pending: Pending) -> None:
    """Note with every row on its way which other videos have its subject, by the site, by a decision or by a row."""
    linking = [row for row in rows if row.linking and row.open]
    holders = holders_of(services, {row.douban_id for row in linking})
    rivals: dict[int, list[Row]] = {}
    for row in linking:
        rivals.setdefault(row.douban_id, []).append(row)
    carried: dict[int, tuple[int, tuple[int, ...]]] = {}
    for row in linking:
        if row.douban_id in holders:
            state = standing.states[row.vod_id]
            carries = (state["vod_douban_id"], state["douban_review_status"]) == (row.douban_id, ReviewStatus.CONFIRMED)
            carried[id(row)] = holders[row.douban_id].others(row.vod_id, carries=carries)
    given = {id(row): pending.given_to_others(row.douban_id, row.vod_id) for row in linking}
    titles = titles_of(services, {each for _, ends in carried.values() for each in ends} | set().union(*given.values()))
    for row in linking:
        count, ends = carried.get(id(row), (0, ()))
        if count:
            row.conflicts.append(f"条目 {row.douban_id} 已关联到{named(ends, titles, count)}")
        if given[id(row)]:
            row.conflicts.append(given_sentence(row.douban_id, given[id(row)], titles))
        # One other row is enough to say, and to go on looking would take long where all rows name one subject.
        other = next((each for each in rivals[row.douban_id] if each.vod_id != row.vod_id), None)
        if other is not None:
            row.conflicts.append(f"{other.wish.where} 把条目 {row.douban_id} 给了影片 {other.vod_id}《{other.title}》")


def given_sentence(douban_id: int, vod_ids: Collection[int], titles: Mapping[int, str]) -> str:
    """Say that decisions which wait give a subject to other videos."""
    return f"待执行的决定把条目 {douban_id} 给了{named(vod_ids, titles, len(vod_ids))}"


def named(vod_ids: Collection[int], titles: Mapping[int, str], count: int) -> str:
    """Return videos as a sentence names them, and how many there are if these are not all."""
    told = [f"影片 {each}" + (f"《{titles[each]}》" if titles.get(each) else "") for each in sorted(vod_ids)[:_NAMED]]
    return "、".join(told) + (f" 等 {count} 部影片" if count > len(told) else "")
