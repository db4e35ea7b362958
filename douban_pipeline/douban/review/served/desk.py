"""What the served sheet does, in the order of calls: the queue, claimed cards, launches, and what came of them.

Decisions are recorded by the job ``record_decisions`` and reverted by ``revert_changes``, both launched through Dagster
as by hand; nothing is written here but claims.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.review.reading.completing import completed
from douban_pipeline.douban.review.reading.page import served_page
from douban_pipeline.douban.review.reading.queue import ReviewQueue, decided_videos, entries_of, places_of
from douban_pipeline.douban.review.reading.queue_index import index_of
from douban_pipeline.douban.review.reading.sheet import cards_of, frame_of
from douban_pipeline.douban.review.served.claims import Claims
from douban_pipeline.douban.review.served.dagster_api import DagsterApi
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState

LEAST_AGE = timedelta(seconds=15)
"""How old the list of what waits may be before it is read again; where reading takes long, so many times as long."""

_REST = 20
RECORD, REVERT = "record_decisions", "revert_changes"

_STATES: Mapping[str, str] = {
    DecisionState.PENDING: "recorded",
    DecisionState.QUEUED: "recorded",
    DecisionState.APPLIED: "applied",
    DecisionState.REFUSED: "refused",
    DecisionState.REVERTED: "reverted",
}


@dataclass(frozen=True, slots=True)
class SentChoice:
    """A choice that a page sent: the run that records it, and what it was about."""

    run_id: str
    vod_id: int
    actions: tuple[str, ...]


class NotYet(Exception):  # noqa: N818 (it says what happened)
    """What is asked for cannot be done yet, or not any more; the message is a sentence in Chinese."""


class ReviewDesk:
    """The served sheet. Safe to share between threads.

    Args:
        services: Database, archive, settings and time.
        dagster: Where jobs are launched.
    """

    def __init__(self, services: Services, dagster: DagsterApi) -> None:
        self._services = services
        self._dagster = dagster
        self._claims = Claims(services)
        self._reading = threading.Lock()
        self._index: tuple[datetime, timedelta, list[dict[str, Any]], int] | None = None

    def page(self, reviewer: str) -> tuple[bytes, str]:
        """Return the page, and the policy that it has to be sent with.

        Args:
            reviewer: Who has logged in, empty where nobody says.
        """
        frame = frame_of(self._services)
        pictures = frame["pictures"] or "service"
        return served_page({**frame, "pictures": pictures, "groups": [], "live": True, "reviewer": reviewer})

    def queue(self, holder: str) -> dict[str, Any]:
        """Return a line for each video that waits for a person and that nobody else looks at or has decided."""
        lines, decided = self._lines()
        hidden = self._hidden(holder)
        return {
            "items": [line for line in lines if line["vod"] not in hidden],
            "waiting": len(lines),
            "decided": decided,
            "version": self._version(),
        }

    def cards(self, holder: str, reviewer: str, wanted: Sequence[int], most: int) -> dict[str, Any]:
        """Claim the first ``most`` of ``wanted`` that are free, and return their cards.

        Those that somebody else looks at, or that wait no more, are named as ``gone``.
        """
        services = self._services
        held = self._claims.take(holder, reviewer, wanted, most)
        with reading(services.engine) as connection:
            places, _ = places_of(services, connection, held)
            found = entries_of(services, connection, places)
        queue = ReviewQueue(len(found), {}, tuple((found[vod],) for vod in held if vod in found))
        entries = completed(services, queue, most=0)[0].first
        shown = {entry.vod_id for entry in entries}
        hidden = self._hidden(holder)
        gone = [vod for vod in wanted if vod in hidden or (vod in held and vod not in shown)]
        return {"cards": cards_of(services, entries), "gone": gone}

    def live(self, holder: str, held: Collection[int], sent: Sequence[SentChoice]) -> dict[str, Any]:
        """Hold what a page shows for longer, and return what changed since it was shown.

        Args:
            holder: The page.
            held: The videos whose cards it has.
            sent: Choices that it sent and that are not settled.
        """
        self._lines()
        kept = self._claims.renew(holder, held)
        with reading(self._services.engine) as connection:
            decided = decided_videos(self._services.tables, connection)
        others = self._claims.of_others(holder)
        own = {choice.vod_id for choice in sent}
        return {
            "lost": sorted(set(held) - kept - own),
            "gone": sorted((decided | set(others)) - own),
            "version": self._version(),
            "states": [state for choice in sent for state in self._states(choice)],
        }

    def decide(self, request: str, reviewer: str, note: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Launch the job that records decisions, once for a ``request``; return the run's id.

        Raises:
            DagsterUnavailable: Dagster did not take it.
        """
        config = {"reviewer": reviewer, "note": note, "dry_run": False, "decisions": [dict(row) for row in rows]}
        return self._dagster.launch(RECORD, {"ops": {"store_decisions": {"config": config}}}, request)

    def undo(self, request: str, reviewer: str, choice: SentChoice) -> str:
        """Launch the job that reverts what a choice came to, once for a ``request``; return the run's id.

        Raises:
            NotYet: The choice is not recorded, or came to nothing.
            DagsterUnavailable: Dagster did not take it.
        """
        live = (DecisionState.PENDING, DecisionState.QUEUED, DecisionState.APPLIED)
        ids = [row["decision_id"] for row in self._decisions(choice) if row["state"] in live]
        if not ids:
            raise NotYet("这个选择还没有记录下来，或已被拒绝、撤销，没有可撤销的内容")
        config = {
            "operator": reviewer,
            "reason": "在审核单上撤销",
            "dry_run": False,
            "decision_ids": ids,
        }
        return self._dagster.launch(REVERT, {"ops": {"take_back": {"config": config}}}, request)

    def release(self, holder: str) -> None:
        """Give up what a page holds."""
        self._claims.release(holder)

    def _states(self, choice: SentChoice) -> list[dict[str, Any]]:
        """Return what became of a choice, an entry for each of its actions that is known of."""
        rows = {row["action"]: row for row in self._decisions(choice)}
        found = [
            {
                "run": choice.run_id,
                "vod": choice.vod_id,
                "action": action,
                "state": _STATES[row["state"]],
                "reason": row["state_reason"],
            }
            for action, row in rows.items()
        ]
        missing = [action for action in choice.actions if action not in rows]
        run = self._dagster.state(choice.run_id) if missing else None
        if run is None or not run.ended:
            return found
        if run.failed:
            why = self._dagster.failure(choice.run_id) or "记录决定的运行没有成功，请重新选择"
            state = "refused"
        else:
            why, state = "已经如此，或已有相同的决定，无需记录", "already"
        return found + [
            {"run": choice.run_id, "vod": choice.vod_id, "action": action, "state": state, "reason": why}
            for action in missing
        ]

    def _decisions(self, choice: SentChoice) -> list[RowMapping]:
        decision = self._services.tables.decision
        query = select(decision).where(decision.c.vod_id == choice.vod_id, decision.c.run_id == choice.run_id)
        with reading(self._services.engine) as connection:
            return list(connection.execute(query.order_by(decision.c.decision_id)).mappings())

    def _hidden(self, holder: str) -> set[int]:
        """Return what others decided or look at."""
        with reading(self._services.engine) as connection:
            decided = decided_videos(self._services.tables, connection)
        return decided | set(self._claims.of_others(holder))

    def _version(self) -> str:
        return self._index[0].isoformat() if self._index else ""

    def _lines(self) -> tuple[list[dict[str, Any]], int]:
        """Return what waits, read anew where that was long ago; one thread reads, the others take what is there."""
        now = self._services.clock.now()
        known = self._index
        if known is not None and (now - known[0] < max(LEAST_AGE, _REST * known[1]) or self._reading.locked()):
            return known[2], known[3]
        with self._reading:
            if self._index is not known and self._index is not None:
                return self._index[2], self._index[3]
            lines, decided = index_of(self._services)
            self._index = (now, self._services.clock.now() - now, lines, decided)
            return lines, decided
