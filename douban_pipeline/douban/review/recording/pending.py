"""Decisions that wait to be carried out, as another decision about the same video or subject meets them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.review.recording.wishes import Wish, identity_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import LINKING, Aspect, aspect_of, contradict
from douban_pipeline.douban.store.states import DecisionAction, DecisionState

_OPEN = (DecisionState.PENDING, DecisionState.QUEUED)


@dataclass(slots=True)
class Pending:
    """What waits: by video, and by the subject that it gives to a video."""

    by_video: dict[int, list[RowMapping]] = field(default_factory=dict)
    by_subject: dict[int, list[RowMapping]] = field(default_factory=dict)

    def same(self, wish: Wish, identity: str, fingerprint: str) -> RowMapping | None:
        """Return the decision that says the same already.

        One about a subject does not when the video's facts changed since: it will be refused for that, and the
        reviewer has seen them now.
        """
        for decision in self.by_video.get(wish.vod_id, ()):
            outdated = wish.action in LINKING and decision["fingerprint"] != fingerprint
            if identity_of(decision) == identity and not outdated:
                return decision
        return None

    def replaced_by(self, wish: Wish) -> list[int]:
        """Return the decisions whose place ``wish`` takes; those of which a run has begun are not among them."""
        mine = (wish.action, wish.lock)
        return [
            decision["decision_id"]
            for decision in self.by_video.get(wish.vod_id, ())
            if decision["state"] == DecisionState.PENDING and contradict(mine, _pair(decision))
        ]

    def link_left(self, wish: Wish) -> RowMapping | None:
        """Return what is decided of the video's link, unless ``wish`` takes its place."""
        mine = (wish.action, wish.lock)
        for decision in self.by_video.get(wish.vod_id, ()):
            action = DecisionAction(decision["action"])
            if aspect_of(action) is Aspect.LINK and not contradict(mine, _pair(decision)):
                return decision
        return None

    def given_to_others(self, douban_id: int, vod_id: int) -> list[int]:
        """Return the other videos that a waiting decision gives the subject to."""
        found = (decision["vod_id"] for decision in self.by_subject.get(douban_id, ()))
        return sorted({other for other in found if other != vod_id})


def read_pending(
    services: Services, connection: Connection, vod_ids: Collection[int], subjects: Collection[int]
) -> Pending:
    """Return the decisions that wait about ``vod_ids``, and those that give ``subjects`` to any video."""
    found = Pending()
    decision = services.tables.decision
    for chunk in chunks(sorted(set(vod_ids))):
        for row in _read(services, connection, decision.c.vod_id.in_(chunk), decision.c.state.in_(_OPEN)):
            found.by_video.setdefault(row["vod_id"], []).append(row)
    for chunk in chunks(sorted(set(subjects))):
        gives = (decision.c.douban_id.in_(chunk), decision.c.action.in_(LINKING))
        for row in _read(services, connection, *gives, decision.c.state == DecisionState.PENDING):
            found.by_subject.setdefault(row["douban_id"], []).append(row)
    return found


def _read(services: Services, connection: Connection, *conditions: ColumnElement[bool]) -> list[RowMapping]:
    decision = services.tables.decision
    query = select(decision).where(*conditions).order_by(decision.c.decision_id)
    return list(connection.execute(query).mappings())


def _pair(decision: RowMapping) -> tuple[DecisionAction, bool]:
    return DecisionAction(decision["action"]), decision["lock"]


def known_sentence(decision: RowMapping) -> str:
    """Say which decision says the same already."""
    batch = f"，批次 {decision['batch_id']}" if decision["batch_id"] else ""
    return f"已有相同的决定（{decision['reviewer']}{batch}）"
