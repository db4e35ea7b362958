"""In-memory rows that a batch of events touches. Pure: `store.batches` loads them and writes the changes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from douban_pipeline.comments.types import Attribute, CommentStatus, EventKind, Rank, SectionStatus


@dataclass(slots=True)
class SectionState:
    """A row of `cmt_section`; attributes are its columns."""

    section_id: int
    type: int
    object_id: int
    owner_id: int
    title: str
    status: SectionStatus
    attributes: int
    settings: dict[str, Any]
    pinned: list[int]
    total_count: int
    root_count: int
    visible_count: int
    hidden_count: int
    floor_seq: int
    event_seq: int
    created_at: datetime
    active_at: datetime
    scored_at: datetime | None = None

    @property
    def heat_at(self) -> datetime:
        """Reference time of ages and windows in its heat: the last sweep, or its beginning before the first one."""
        return self.scored_at or self.created_at


@dataclass(slots=True)
class CommentState:
    """A row of `cmt_comment`, for a new comment with its text; attributes are its columns."""

    comment_id: int
    section_id: int
    publisher_id: int
    parent_id: int
    root_id: int
    dialog_id: int
    floor: int
    created_at: datetime
    updated_at: datetime
    meta: dict[str, Any]
    child_total: int = 0
    child_visible: int = 0
    like_count: int = 0
    dislike_count: int = 0
    report_count: int = 0
    status: CommentStatus = CommentStatus.NORMAL
    status_rank: Rank = Rank.USER
    status_actor: str = ""
    attributes: int = 0
    length: int = 0
    level: int = 0
    source_key: str | None = None
    text: str | None = None
    """Text of a comment that this batch publishes, edits or erases; None for others."""
    address: str = ""
    """Address that a comment of this batch was sent from; empty for others."""

    @property
    def is_root(self) -> bool:
        """Whether it is a root, not a reply."""
        return self.root_id == 0

    def mark(self, bit: Attribute, on: bool) -> None:
        """Set or clear a bit of its attributes."""
        self.attributes = self.attributes | bit if on else self.attributes & ~bit


@dataclass(slots=True)
class ModerationEntry:
    """A row of `cmt_moderation`; attributes are its columns. A new entry has the id 0."""

    event_id: int
    section_id: int
    comment_id: int
    action: str
    old_status: CommentStatus
    old_rank: Rank
    old_actor: str
    new_status: CommentStatus
    new_rank: Rank
    actor: str
    created_at: datetime
    reason: str = ""
    batch: str = ""
    visible_change: int = 0
    undone: bool = False
    moderation_id: int = 0


@dataclass(slots=True)
class CommentReport:
    """A row of `cmt_report`."""

    reason: str
    detail: str
    created_at: datetime
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class NoticeInput:
    """A row of `cmt_notice` to be inserted."""

    user_id: int
    kind: str
    comment_id: int
    section_id: int
    actor: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Findings:
    """Result of the safety review of a text before it is published.

    Attributes:
        refusal: Why it is not published at all; empty where it is.
    """

    text: str
    status: CommentStatus = CommentStatus.NORMAL
    refusal: str = ""
    reasons: tuple[str, ...] = ()
    masked: bool = False


@dataclass(slots=True)
class PendingEvent:
    """A pending row of `cmt_event`, and its outcome once a step was applied."""

    event_id: int
    section_id: int
    kind: EventKind
    comment_id: int
    actor: str
    user_id: int
    actor_rank: Rank
    payload: Mapping[str, Any]
    created_at: datetime
    findings: Findings | None = None
    """Result of the safety review, for events that publish or edit."""
    seq: int = 0
    refusal: str = ""
    touched: set[int] = field(default_factory=set)
    """Comments whose cache entries have to be dropped."""


@dataclass(slots=True)
class BatchState:
    """Everything that the events of a batch touch.

    Attributes:
        votes: Values by comment and voter; a missing pair has no vote.
        moderation: Entries of a comment that can still be undone, oldest first.
        reports_to_review: Number of reports after which a comment waits for review; 0 for never.
        pinned_most: Maximum number of pinned comments of a section.
    """

    now: datetime
    sections: dict[int, SectionState] = field(default_factory=dict)
    comments: dict[int, CommentState] = field(default_factory=dict)
    votes: dict[tuple[int, str], int] = field(default_factory=dict)
    reports: dict[tuple[int, str], CommentReport] = field(default_factory=dict)
    moderation: dict[int, list[ModerationEntry]] = field(default_factory=dict)
    reports_to_review: int = 0
    pinned_most: int = 3

    new_comments: set[int] = field(default_factory=set)
    edited_comments: set[int] = field(default_factory=set)
    erased_comments: set[int] = field(default_factory=set)
    changed_comments: set[int] = field(default_factory=set)
    changed_votes: set[tuple[int, str]] = field(default_factory=set)
    changed_reports: set[tuple[int, str]] = field(default_factory=set)
    notices: list[NoticeInput] = field(default_factory=list)
    liked: dict[int, int] = field(default_factory=dict)
    """Likes gained by comment, withdrawn likes subtracted."""
    scores: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Rows of `cmt_score` of new and touched roots, by id; a new root without one has heat 0 until it is scored."""

    def root_of(self, comment: CommentState) -> CommentState:
        """Return the root of a comment; a root is its own root."""
        return comment if comment.is_root else self.comments[comment.root_id]

    def is_shown(self, comment: CommentState) -> bool:
        """Return whether a comment is visible: its own status and its root's are NORMAL."""
        return comment.status == CommentStatus.NORMAL == self.root_of(comment).status

    def change(self, *comments: CommentState) -> None:
        """Record that the rows of comments have to be written."""
        self.changed_comments.update(comment.comment_id for comment in comments)
