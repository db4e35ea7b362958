"""Value types of the comment system: section types, statuses, ranks, attribute bits, event kinds, actors, shards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum, IntFlag, StrEnum

SHARDS = 64
"""Number of shards that sections are distributed over; a shard is processed by one worker at a time."""
BIGGEST_ID = 2**63 - 1
"""Greatest number that an id column can hold."""
BIGGEST_LEVEL = 2**15 - 1
"""Greatest level of an author that its column can hold."""
IMPORTED = "mac_comment:"
"""Prefix of the request keys and source keys of comments imported from the CMS."""
EDIT_TIME = timedelta(minutes=15)
"""How long after it was written its author may edit a comment."""
CMS_ACTOR = "cms"
"""Key of the actor of changes that people made in the CMS."""
IMPORTED_VOTES = 1000
"""Maximum number of likes, dislikes and reports (each) imported per comment as votes and reports, a row each."""
MORE_VOTES = "more"
"""Name in a comment's `meta` of how many more of each it was imported with, by the name of its counter."""


class SectionType(IntEnum):
    """Type of object that a section belongs to, numbered as ``comment_mid`` of the CMS."""

    VIDEO = 1
    ARTICLE = 2
    TOPIC = 3
    ACTOR = 8
    ROLE = 9
    WEBSITE = 11
    MANGA = 12


class SectionStatus(IntEnum):
    """What is allowed in a section."""

    ACTIVE = 0
    CLOSED = 1
    """Readable; adding and liking are refused. Reporting is not: what is shown can be reported."""
    HIDDEN = 2
    """Nothing of the section is shown."""


class CommentStatus(IntEnum):
    """Status of a comment. It is shown if it and its root are NORMAL."""

    NORMAL = 0
    REVIEW = 1
    """Waits for review by a person; visible to its author only."""
    DELETED = 2


class Rank(IntEnum):
    """Rank of whoever set a status: a lower rank never overrides a higher one."""

    USER = 0
    OWNER = 1
    AUTOMATION = 2
    OPERATOR = 3
    AUDIT = 4


class Attribute(IntFlag):
    """Bits of ``attributes``; bits 0 to 2 are defined by the plan."""

    OWNER_LIKED = 1
    REVIEWED = 2
    FEATURED = 4
    PINNED = 8
    OWNER_REPLIED = 16
    BY_OWNER = 32
    MASKED = 64
    """Some of its words were replaced by asterisks."""
    PROMOTED = 128
    """An advertisement or paid content; pages label it."""
    STAFF = 256
    """Published with an operator's or auditor's token; pages label it."""


class EventKind(StrEnum):
    """Kinds of events of a section; the events of one section are applied one after another."""

    PUBLISH = "publish"
    EDIT = "edit"
    VOTE = "vote"
    REPORT = "report"
    WITHDRAW_REPORT = "withdraw_report"
    SET_STATUS = "set_status"
    UNDO_STATUS = "undo_status"
    PIN = "pin"
    FEATURE = "feature"
    PROMOTE = "promote"
    SET_SECTION = "set_section"
    ERASE = "erase"


class EventState(IntEnum):
    """Processing state of an event."""

    PENDING = 0
    APPLIED = 1
    """Rows and counters are committed; updates of caches and notices may be outstanding."""
    FINISHED = 2


class Vote(IntEnum):
    """A user's vote on a comment."""

    DISLIKE = -1
    NONE = 0
    LIKE = 1


@dataclass(frozen=True, slots=True)
class Actor:
    """The originator of an event: a user (``u:12``), a guest (``g:…``), ``auto``, or an operator (``ops:…``)."""

    key: str
    user_id: int = 0
    name: str = ""
    level: int = 0
    rank: Rank = Rank.USER

    @property
    def is_guest(self) -> bool:
        """Whether it is a visitor who is not logged in."""
        return not self.user_id and self.rank == Rank.USER


def shard_of(section_id: int) -> int:
    """Return the shard of a section."""
    return section_id % SHARDS
