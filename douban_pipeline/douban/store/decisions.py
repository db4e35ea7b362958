"""Reviewers' decisions: what each action is about, which contradict each other, and what people chose for good."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping

from sqlalchemy import Connection, select, update

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.store.states import DecisionAction, DecisionState
from douban_pipeline.douban.store.tables import OwnTables

LINKING = frozenset(
    {DecisionAction.confirm_top1, DecisionAction.choose, DecisionAction.set_id, DecisionAction.replace_and_lock}
)
"""Actions that say which subject it is."""

FROM_CANDIDATES = frozenset({DecisionAction.confirm_top1, DecisionAction.choose})
"""Actions that rest on the candidates of a verdict."""

NAMING = frozenset({DecisionAction.set_id, DecisionAction.replace_and_lock})
"""Actions that name a subject whoever found it, so that it is asked for and compared first."""

PERSON = "person"
"""Source of an id that a reviewer chose."""

_RELEASING = frozenset({DecisionAction.clear_id, DecisionAction.rematch, DecisionAction.unlock_id})
"""Actions after which an earlier choice binds nobody any more."""

_ON_WHAT_STANDS = frozenset({DecisionAction.clear_id, DecisionAction.sync_now, DecisionAction.redo_intro})
_UNLOCKING = frozenset({DecisionAction.unlock_id, DecisionAction.unlock_intro})
_UNLINKING = frozenset({DecisionAction.clear_id, DecisionAction.ignore, DecisionAction.rematch})

_CARRIED_BY: Mapping[DecisionAction, str] = {DecisionAction.sync_now: "sync", DecisionAction.redo_intro: "intro"}
"""Actions of the changes that carry a decision out, where they are not the decision's own."""

WORDS: Mapping[DecisionAction, str] = {
    DecisionAction.confirm_top1: "确认首选候选",
    DecisionAction.choose: "选择候选",
    DecisionAction.set_id: "指定豆瓣 ID",
    DecisionAction.replace_and_lock: "替换豆瓣 ID 并锁定",
    DecisionAction.clear_id: "清除豆瓣 ID",
    DecisionAction.ignore: "忽略",
    DecisionAction.lock_id: "锁定豆瓣 ID",
    DecisionAction.unlock_id: "解锁豆瓣 ID",
    DecisionAction.lock_intro: "锁定简介",
    DecisionAction.unlock_intro: "解锁简介",
    DecisionAction.rematch: "重新匹配",
    DecisionAction.redo_intro: "重写简介",
    DecisionAction.sync_now: "立即同步",
}
"""What reviewers read for an action."""


class Aspect(enum.IntEnum):
    """What an action is about. Decisions of one video are carried out in this order, one of each at most."""

    LINK = 1
    ID_LOCK = 2
    INTRO_LOCK = 3
    SYNC = 4
    INTRO = 5


_ASPECTS: Mapping[DecisionAction, Aspect] = {
    DecisionAction.lock_id: Aspect.ID_LOCK,
    DecisionAction.unlock_id: Aspect.ID_LOCK,
    DecisionAction.lock_intro: Aspect.INTRO_LOCK,
    DecisionAction.unlock_intro: Aspect.INTRO_LOCK,
    DecisionAction.sync_now: Aspect.SYNC,
    DecisionAction.redo_intro: Aspect.INTRO,
}


def aspect_of(action: DecisionAction) -> Aspect:
    """Return what an action is about."""
    return _ASPECTS.get(action, Aspect.LINK)


def may_lock(action: DecisionAction) -> bool:
    """Return whether an action may lock besides: one that unlocks, or has the subject looked for anew, may not."""
    return action not in _UNLOCKING and action is not DecisionAction.rematch


def locks_id(action: DecisionAction, lock: bool) -> bool:
    """Return whether a decision locks the id, by its action or besides."""
    if action in (DecisionAction.lock_id, DecisionAction.replace_and_lock):
        return True
    return lock and may_lock(action) and aspect_of(action) in (Aspect.LINK, Aspect.SYNC)


def about_standing_id(action: DecisionAction, lock: bool) -> bool:
    """Return whether a decision is about the id that stood when it was made, and holds for no other."""
    return action in _ON_WHAT_STANDS or (action not in LINKING and locks_id(action, lock))


def contradict(one: tuple[DecisionAction, bool], other: tuple[DecisionAction, bool]) -> bool:
    """Return whether two different decisions about one video cannot both be meant; each is its action and its lock."""
    actions = {one[0], other[0]}
    if aspect_of(one[0]) is aspect_of(other[0]):
        return True
    if DecisionAction.unlock_id in actions and (locks_id(*one) or locks_id(*other)):
        return True
    if actions >= {DecisionAction.unlock_intro, DecisionAction.redo_intro}:
        return True
    return bool(actions & _UNLINKING) and bool(actions & {DecisionAction.sync_now, DecisionAction.redo_intro})


def chosen_subjects(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> dict[int, int]:
    """Return the subject that a person chose for a video, of those for which one did and nobody released it since.

    No automatic run may link such a video to anything else. Clearing the id, unlocking it, having it matched anew
    and taking the decision back release it.
    """
    decision = tables.decision
    chosen: dict[int, int] = {}
    for chunk in chunks(sorted(vod_ids)):
        query = (
            select(decision.c.vod_id, decision.c.action, decision.c.douban_id)
            .where(
                decision.c.vod_id.in_(chunk),
                decision.c.state == DecisionState.APPLIED,
                decision.c.action.in_(LINKING | _RELEASING),
            )
            .order_by(decision.c.decision_id)
        )
        for vod_id, action, douban_id in connection.execute(query):
            if action in LINKING:
                chosen[vod_id] = douban_id
            else:
                chosen.pop(vod_id, None)
    return chosen


def note_taken_back(
    connection: Connection, tables: OwnTables, decision_id: int, change_action: str, *, again: bool
) -> None:
    """Note of a decision that the change which carried it out was taken back, or with ``again`` that it stands again.

    A sync that merely followed the decision is not what carried it out.
    """
    decision = tables.decision
    carried_by = [action for action in DecisionAction if _CARRIED_BY.get(action, action) == change_action]
    before, after = (DecisionState.REVERTED, DecisionState.APPLIED)[:: 1 if again else -1]
    connection.execute(
        update(decision)
        .where(decision.c.decision_id == decision_id, decision.c.action.in_(carried_by), decision.c.state == before)
        .values(state=after)
    )
