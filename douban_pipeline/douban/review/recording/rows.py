"""A row of a launch on its way from what was asked for to what became of it. Plain data, no rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from douban_pipeline.douban.review.recording.wishes import Recorded, Result, Wish, identity
from douban_pipeline.douban.store.decisions import LINKING


@dataclass(slots=True)
class Row:
    """A row on its way.

    Attributes:
        wish: What was asked for.
        title: The video's title; empty where there is no such video.
        douban_id: The subject it comes to, 0 for none.
        fingerprint: That of the video's CMS row.
        verdict_id: The verdict the reviewer looked at, or else the newest.
        problems: Why it is refused.
        conflicts: What speaks against the subject; a reviewer may accept it.
        outcome: What became of it; None while it is on its way.
        reason: Why it was refused, or what else is to be known of it.
        checked_at: When the subject was compared.
        unchecked: Why it could not be.
    """

    wish: Wish
    title: str = ""
    douban_id: int = 0
    fingerprint: str = ""
    verdict_id: int | None = None
    problems: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    outcome: Result | None = None
    reason: str = ""
    checked_at: datetime | None = None
    unchecked: str = ""

    @property
    def vod_id(self) -> int:
        """The video."""
        return self.wish.vod_id

    @property
    def linking(self) -> bool:
        """Whether it says which subject it is."""
        return self.wish.action in LINKING

    @property
    def open(self) -> bool:
        """Whether it is on its way and nothing was found against it."""
        return self.outcome is None and not self.problems

    @property
    def identity(self) -> str:
        """What it has in common with a row that says the same; the place of a candidate where it has no subject."""
        wish = self.wish
        same = identity(
            wish.vod_id,
            wish.action,
            self.douban_id,
            lock=wish.lock,
            days=wish.days,
            accept_conflicts=wish.accept_conflicts,
        )
        return same if self.douban_id or not wish.rank else f"{same}#{wish.rank}"

    def settle(self, outcome: Result, reason: str = "") -> None:
        """Say what became of it."""
        self.outcome, self.reason = outcome, reason

    def refuse(self, *problems: str) -> None:
        """Refuse it, for what was found before too."""
        self.problems += problems
        self.settle("refused", "；".join(dict.fromkeys(self.problems)))

    def told(self) -> Recorded:
        """Return what is told of it, once it is settled."""
        assert self.outcome is not None
        unchecked = self.outcome in ("recorded", "checked") and bool(self.unchecked)
        return Recorded(self.wish, self.outcome, self.douban_id, self.reason, self.title, unchecked)
