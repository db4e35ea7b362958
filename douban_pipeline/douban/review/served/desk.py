"""The operations of the served sheet: the queue, claims of cards, choices, and their outcomes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, select

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.review.served.batches import Batches
from douban_pipeline.douban.review.served.claims import Claims
from douban_pipeline.douban.review.worklist.completion import completed
from douban_pipeline.douban.review.worklist.page import sheet_page
from douban_pipeline.douban.review.worklist.queue import ReviewQueue, decided_videos, entries_of, places_of
from douban_pipeline.douban.review.worklist.queue_index import QueueOrder, lines_of, order_of
from douban_pipeline.douban.review.worklist.sheet import cards_of, frame_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import SERVED_RUN
from douban_pipeline.douban.store.states import DecisionState

LEAST_AGE = timedelta(seconds=15)
"""How old the list of waiting videos may be before it is read again; longer if reading takes long (`_REST`)."""

STALE_AGE = timedelta(minutes=5)
"""The same when the sheet is opened: videos that were decided since are hidden in any case."""

_WINDOW = 60
"""Number of videos whose lines a page gets at first."""

_REST = 20

_STATES: Mapping[str, str] = {
    DecisionState.PENDING: "recorded",
    DecisionState.QUEUED: "recorded",
    DecisionState.APPLIED: "applied",
    DecisionState.REFUSED: "refused",
    DecisionState.REVERTED: "reverted",
}


@dataclass(slots=True)
class _Known:
    """The queue's order as read at a moment, and how long reading took; lines are read on demand."""

    at: datetime
    took: timedelta
    order: QueueOrder
    lines: list[dict[str, Any]] | None = None

    @property
    def version(self) -> str:
        """Text that changes whenever the queue is read again."""
        return self.at.isoformat()


@dataclass(frozen=True, slots=True)
class SentChoice:
    """A choice that a page sent: the name of its batch's run, its video and its actions."""

    run_id: str
    vod_id: int
    actions: tuple[str, ...]

    @property
    def key(self) -> tuple[str, int]:
        """What identifies it: its run and its video."""
        return self.run_id, self.vod_id


class NotYet(Exception):  # noqa: N818 (it says what happened)
    """The request cannot be done yet, or not any more; the message is a sentence in Chinese."""


class NotUndone(Exception):  # noqa: N818 (it says what happened)
    """A choice cannot be reverted; the message is a sentence in Chinese."""


class ReviewDesk:
    """The served sheet. Safe to share between threads.

    Args:
        services: Database, archive, settings and time.
        batches: Where choices are recorded and applied.
    """

    def __init__(self, services: Services, batches: Batches) -> None:
        self._services = services
        self._batches = batches
        self._claims = Claims(services)
        self._reading = threading.Lock()
        self._index: _Known | None = None

    def page(self, reviewer: str) -> tuple[bytes, str]:
        """Return the page, and the content security policy to send with it.

        Args:
            reviewer: The logged-in user, empty if unknown.
        """
        return sheet_page(frame_of(self._services, reviewer))

    def open(self, holder: str, reviewer: str, most: int, former: str = "", first: int = 0) -> dict[str, Any]:
        """Claim the first free cards and return them, with the numbers of the queue, for a page that opens.

        The queue is not read again for it unless it is old (`STALE_AGE`): open pages refresh it all the time.

        Args:
            holder: The page.
            reviewer: Who looks at it.
            most: How many cards.
            former: The page's name before it was reloaded: its claims are transferred.
            first: A video whose card is wanted before the others, if it waits; 0 for none.
        """
        self._batches.wake()  # a service that was killed may have left something
        if former:
            self._claims.hand_over(former, holder)
        known = self._known(STALE_AGE)
        others = self._claims.of_others(holder)
        hidden = self._hidden(others)
        order = known.order
        waiting = [place for place in order.places if place.vod_id not in hidden]
        free = [place for at, place in enumerate(waiting) if at < _WINDOW or place.vod_id == first]
        wanted = sorted((place.vod_id for place in free), key=lambda vod_id: vod_id != first)
        found = self.cards(holder, reviewer, wanted, most)
        gone = set(found["gone"])
        shown = [place for place in free if place.vod_id not in gone]
        return {**found, "items": lines_of(self._services, order, shown), **self._counts(known, others)}

    def queue(self, holder: str) -> dict[str, Any]:
        """Return a line for each waiting video that is not decided and that nobody else has claimed."""
        known = self._known(LEAST_AGE)
        lines = known.lines or lines_of(self._services, known.order, known.order.places)
        known.lines = lines
        others = self._claims.of_others(holder)
        hidden = self._hidden(others)
        return {"items": [line for line in lines if line["vod"] not in hidden], **self._counts(known, others)}

    def _counts(self, known: _Known, others: Mapping[int, str]) -> dict[str, Any]:
        waiting, held = len(known.order.places), _cards_by_reviewer(others)
        return {"waiting": waiting, "decided": known.order.decided, "version": known.version, "others": held}

    def cards(self, holder: str, reviewer: str, wanted: Sequence[int], most: int) -> dict[str, Any]:
        """Claim the first ``most`` of ``wanted`` that are free, and return their cards.

        Videos that somebody else has claimed, or that do not wait any more, are listed as ``gone``.
        """
        services = self._services
        held = self._claims.take(holder, reviewer, wanted, most)
        with reading(services.engine) as connection:
            places, _ = places_of(services, connection, held)
            found = entries_of(services, connection, places)
        queue = ReviewQueue(len(found), {}, tuple((found[vod],) for vod in held if vod in found))
        entries = completed(services, queue, most=0)[0].first
        shown = {entry.vod_id for entry in entries}
        hidden = self._hidden(self._claims.of_others(holder))
        gone = [vod for vod in wanted if vod in hidden or (vod in held and vod not in shown)]
        return {"cards": cards_of(services, entries), "gone": gone}

    def live(
        self,
        holder: str,
        reviewer: str,
        held: Collection[int],
        sent: Sequence[SentChoice],
        *,
        hidden: bool = False,
    ) -> dict[str, Any]:
        """Renew the claims of a page, and return what changed since its cards were shown.

        Args:
            holder: The page.
            reviewer: Who looks at it.
            held: The videos whose cards it has.
            sent: Choices that it sent and that are not settled.
            hidden: Whether nobody sees it, so that it asks seldom.
        """
        known = self._known(LEAST_AGE)
        self._claims.renew(holder, reviewer, held, hidden=hidden)
        others = self._claims.of_others(holder)
        own = {choice.vod_id for choice in sent}
        return {
            "gone": sorted(self._hidden(others) - own),
            "version": known.version,
            "others": _cards_by_reviewer(others),
            "asked": self._claims.asked_by(holder),
            "states": self._states(sent),
        }

    def decide(self, request: str, reviewer: str, note: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Record decisions, once per ``request``; return the name of their run. They are applied within seconds.

        Raises:
            DecisionError: The reviewer or the note is invalid.
        """
        return self._batches.record(request, reviewer, note, rows)

    def undo(self, request: str, reviewer: str, choice: SentChoice) -> None:
        """Revert a choice, with all that it wrote.

        Raises:
            NotYet: The choice is not recorded, or has no effect to revert.
            NotUndone: What it wrote cannot be reverted, as a later change or the site's lock stands against it.
        """
        found = self._decisions([choice]).values()
        live = (DecisionState.PENDING, DecisionState.QUEUED, DecisionState.APPLIED)
        rows = [row for row in found if row["state"] in live]
        if not rows:
            if any(row["state"] == DecisionState.REVERTED for row in found):
                return  # asked for again, because the answer was lost
            raise NotYet("这个选择还没有记录下来，或已被拒绝、撤销，没有可撤销的内容")
        reverted = self._batches.undo(
            request,
            reviewer,
            [row["decision_id"] for row in rows],
            # Who meant a choice although the site locked the row means its undoing so too.
            override_cms_lock=any(row["override_cms_lock"] for row in rows),
        )
        skipped = [change.reason for change in reverted.changes if change.skipped]
        if skipped:
            raise NotUndone("；".join(dict.fromkeys(skipped)))

    def ask_for_cards(self, holder: str, reviewer: str) -> int:
        """Ask the other pages for cards that their reviewers have not come to; return how many cards those hold.

        Each page answers when it next calls `live`: it releases some, and shows who asked.
        """
        return self._claims.ask(holder, reviewer or "另一位审核员")

    def release(self, holder: str, given_up: Collection[int]) -> None:
        """Release the claims of a page on videos that were not decided there."""
        self._claims.release(holder, given_up)

    def _states(self, sent: Sequence[SentChoice]) -> list[dict[str, Any]]:
        """Return the outcomes of choices, one entry for each of their actions."""
        rows = self._decisions(sent)
        found = []
        for choice in sent:
            about = {"run": choice.run_id, "vod": choice.vod_id}
            for action in choice.actions:
                row = rows.get((*choice.key, action))
                state, reason = (_STATES[row["state"]], row["state_reason"]) if row else _unrecorded(choice)
                found.append({**about, "action": action, "state": state, "reason": reason})
        return found

    def _decisions(self, sent: Sequence[SentChoice]) -> dict[tuple[str, int, str], RowMapping]:
        """Return the recorded decisions of choices, by run, video and action."""
        decision = self._services.tables.decision
        wanted = {choice.key for choice in sent}
        found: dict[tuple[str, int, str], RowMapping] = {}
        with reading(self._services.engine) as connection:
            for some in chunks(sorted({choice.vod_id for choice in sent})):
                query = select(decision).where(decision.c.vod_id.in_(some)).order_by(decision.c.decision_id)
                for row in connection.execute(query).mappings():
                    if (row["run_id"], row["vod_id"]) in wanted:
                        found[row["run_id"], row["vod_id"], row["action"]] = row
        return found

    def _hidden(self, others: Collection[int]) -> set[int]:
        """Return the videos that are decided or claimed by others."""
        with reading(self._services.engine) as connection:
            return decided_videos(self._services.tables, connection) | set(others)

    def _known(self, age: timedelta) -> _Known:
        """Return the queue's order; read again if it is older than ``age`` and than `_REST` times its reading time.

        One thread reads; others use the existing result.
        """
        now = self._services.clock.now()
        known = self._index
        if known is not None and (now - known.at < max(age, _REST * known.took) or self._reading.locked()):
            return known
        with self._reading:
            if self._index is not known and self._index is not None:
                return self._index
            order = order_of(self._services)
            self._index = _Known(now, self._services.clock.now() - now, order)
            return self._index


def _unrecorded(choice: SentChoice) -> tuple[str, str]:
    """Return the state and the reason of an action of which nothing was recorded although its batch was."""
    if choice.run_id.startswith(SERVED_RUN):
        return "already", "已经如此，或已有相同的决定，无需记录"
    return "refused", "没有找到它的记录，请重新选择"


def _cards_by_reviewer(others: Mapping[int, str]) -> list[list[Any]]:
    """Return how many cards each reviewer of ``others`` holds, the most first; an empty name is not known."""
    counts = Counter(others.values())
    return [[name, count] for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
