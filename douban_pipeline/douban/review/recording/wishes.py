"""What reviewers ask for, as they wrote it, and what became of each of their rows. Plain data, no rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.douban.store.decisions import LINKING, locks_id
from douban_pipeline.douban.store.states import DecisionAction

MOST_NOTE = 500
"""Characters of a note; more is refused, never cut."""

MOST_REVIEWER = 64
"""Characters of a reviewer's name."""

Result = Literal["recorded", "known", "already", "checked", "refused"]
"""``known``: the same decision stands already. ``already``: what is asked for is so. ``checked``: in a dry run."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One decision as a reviewer wrote it; 0 and empty are fields left out.

    Attributes:
        rank: Place of the candidate, for ``choose``.
        days: Days to be ignored, for ``ignore``; 0 for ever.
        lock: Whether the id is locked besides.
        accept_conflicts: Whether the reviewer knows what speaks against the subject, and means it.
        verdict_id: The verdict the reviewer looked at.
        note: Why; the launch's note where it is empty.
        where: How messages name the row; ``decisions 第 N 条`` where it is empty.
    """

    vod_id: int
    action: DecisionAction
    douban_id: int = 0
    rank: int = 0
    days: int = 0
    lock: bool = False
    accept_conflicts: bool = False
    verdict_id: int = 0
    note: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one row.

    Attributes:
        wish: The row, named.
        outcome: See `Result`.
        douban_id: The subject it comes to, as far as that is known.
        reason: Why it was not recorded, or what is to be known of one that was.
        title: The video's title; empty where there is no such video.
        unchecked: Whether the subject is still to be asked for and compared, by the run that carries it out.
    """

    wish: Wish
    outcome: Result
    douban_id: int
    reason: str = ""
    title: str = ""
    unchecked: bool = False

    @property
    def sentence(self) -> str:
        """The reason with the row and the video it is about."""
        title = f"《{self.title}》" if self.title else ""
        return f"{self.wish.where}（影片 {self.wish.vod_id}{title}）：{self.reason}"


@dataclass(frozen=True, slots=True)
class Recording:
    """A launch: its rows in the order written, and the batch by which all that follows from it is taken back."""

    batch_id: str
    items: tuple[Recorded, ...]

    def of(self, *outcomes: Result) -> list[Recorded]:
        """Return the rows that came to any of ``outcomes``."""
        return [item for item in self.items if item.outcome in outcomes]


class DecisionError(ProblemsError):
    """Nothing of the launch can be recorded: nobody signs it, or it is empty. ``problems`` holds all sentences."""


def identity(
    vod_id: int, action: DecisionAction, douban_id: int, *, lock: bool, days: int, accept_conflicts: bool
) -> str:
    """Return what makes two decisions the same; what has no meaning for an action makes no difference."""
    numbers = (
        douban_id,
        locks_id(action, lock),
        days if action is DecisionAction.ignore else 0,
        accept_conflicts and action in LINKING,
    )
    return ":".join([str(vod_id), str(action), *(str(int(number)) for number in numbers)])


def identity_of(decision: Mapping[Any, Any]) -> str:
    """Return the identity of a decision that was recorded."""
    return identity(
        decision["vod_id"],
        DecisionAction(decision["action"]),
        decision["douban_id"],
        lock=decision["lock"],
        days=decision["days"],
        accept_conflicts=decision["accept_conflicts"],
    )
