"""Values of the comment system: what states, ranks, bits and kinds of events there are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum

SHARDS = 64
"""Sections are spread over so many shards; one worker at a time works on a shard."""
IMPORTED = "mac_comment:"
"""How requests begin that take a comment over from the CMS, and the keys of these comments."""
IMPORTED_VOTES = 1000
"""Likes, dislikes and reports of each such comment that become votes and reports, at most."""


class SectionType(IntEnum):
    """What a section belongs to, numbered as ``comment_mid`` of the CMS."""

    VIDEO = 1
    ARTICLE = 2
    TOPIC = 3
    ACTOR = 8
    ROLE = 9
    WEBSITE = 11
    MANGA = 12


class SectionStatus(IntEnum):
    """Who may do what in a section."""

    ACTIVE = 0
    CLOSED = 1
    """Read, but nobody may add, like or report."""
    HIDDEN = 2
    """Nothing of it is shown."""


class CommentStatus(IntEnum):
    """Whether a comment is shown: it is if it and its root are NORMAL."""

    NORMAL = 0
    REVIEW = 1
    """Waits for a person; only its author sees it."""
    DELETED = 2


class Rank(IntEnum):
    """Who set a status: a lower rank never changes what a higher one set."""

    USER = 0
    OWNER = 1
    AUTOMATION = 2
    OPERATOR = 3
    AUDIT = 4


class Attribute(IntFlag):
    """Bits of ``attributes``; bits 0 to 2 are the plan's."""

    OWNER_LIKED = 1
    REVIEWED = 2
    FEATURED = 4
    PINNED = 8
    OWNER_REPLIED = 16
    BY_OWNER = 32
    MASKED = 64
    """Words of it were replaced by asterisks."""
    PROMOTED = 128
    """An advertisement, or paid for: pages say so."""


class EventKind(StrEnum):
    """What can happen in a section; events of one section are applied one after another."""

    PUBLISH = "publish"
    VOTE = "vote"
    REPORT = "report"
    WITHDRAW_REPORT = "withdraw_report"
    SET_STATUS = "set_status"
    UNDO_STATUS = "undo_status"
    PIN = "pin"
    FEATURE = "feature"
    PROMOTE = "promote"
    SET_SECTION = "set_section"


class EventState(IntEnum):
    """How far an event has come."""

    PENDING = 0
    APPLIED = 1
    """Its rows and counters are committed; caches and notices may still have to follow."""
    FINISHED = 2


class Vote(IntEnum):
    """What a person thinks of a comment."""

    DISLIKE = -1
    NONE = 0
    LIKE = 1


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts: a user (``u:12``), a guest (``g:…``), ``auto``, or a person of the site (``ops:…``)."""

    key: str
    user_id: int = 0
    name: str = ""
    level: int = 0
    rank: Rank = Rank.USER

    @property
    def is_guest(self) -> bool:
        """Whether nobody knows who it is."""
        return self.user_id == 0 and self.rank == Rank.USER


def shard_of(section_id: int) -> int:
    """Return the shard of a section."""
    return section_id % SHARDS
