"""Types of the feeds system: sources, entries, the result of a fetch, and the outcome of a poll."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class SourceKind(enum.StrEnum):
    """Kind of a source, which determines its client."""

    RSS = "rss"
    """RSS, Atom or JSON Feed at an address."""
    WERSS = "werss"
    """A public account, through WeRSS."""
    MACCMS = "maccms"
    """A resource site's ``provide/vod`` list."""
    JSON = "json"
    """Any JSON list, with a path and a mapping of its fields."""

    @property
    def source_type(self) -> str:
        """Its type in the scheduler's tables: ``rss``, or ``custom`` for every other kind."""
        return "rss" if self is SourceKind.RSS else "custom"


class SourceState(enum.StrEnum):
    """Whether a source is polled."""

    ACTIVE = "active"
    PAUSED = "paused"
    """Paused by a person, until a person resumes it."""
    GONE = "gone"
    """It reported that it no longer exists (HTTP 410), or was removed; its history is kept."""
    DUPLICATE = "duplicate"
    """It moved permanently to the address of another source, which is polled instead."""


class GapReason(enum.StrEnum):
    """Why entries of a source were left unread."""

    LIMIT = "limit"
    """The pages that one poll may read were all new."""
    TIME = "time"
    """The poll's time was over."""
    FAILED = "failed"
    """A further page could not be read."""
    REPEATED = "repeated"
    """A further page held the same rows as an earlier one."""
    ANSWER = "answer"
    """The answer held more entries than one poll reads."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries that a source published and that were not read.

    Attributes:
        at: When they were left. What was stored before is known; reading on to it closes the gap.
        page: The page at which reading goes on; 0 if the source has no pages.
        reason: Why they were left.
        error: The error of the page that could not be read.
    """

    at: int
    page: int
    reason: GapReason
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"at": self.at, "page": self.page, "reason": self.reason.value, "error": self.error}

    @classmethod
    def from_json(cls, stored: object) -> Gap | None:
        """Return the gap from its stored form; None if there is none, or it cannot be read."""
        if not isinstance(stored, Mapping):
            return None
        try:
            reason, error = GapReason(stored["reason"]), str(stored.get("error", ""))
            return cls(int(stored["at"]), int(stored["page"]), reason, error)
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Source:
    """One followed source.

    Attributes:
        source_id: Its key in every table, derived from kind and address; see `source_id_for`.
        kind: Its kind.
        url: Its address.
        title: Its title for people.
        options: Further values that its kind needs.
        manual_cadence: P0 to P6; used until three distinct publications are known.
        state: Whether it is polled.
        state_reason: Why it is not polled, for people.
        etag: ``ETag`` of its last answer.
        last_modified: ``Last-Modified`` of its last answer.
        body_hash: Hash of its last answer; an identical answer is not parsed again.
        gap: What it published and was not read; None for nothing.
        clock: What is known of its clock, as `clock_skew` stores it.
        folder: Where people put it; empty for nowhere. A folder in another is written ``outer/inner``.
        credential: Name of the credentials with which it is asked; empty for none. See `feeds.credentials`.
        own_gap: Seconds its publisher wants between two polls; 0 if it says nothing.
        own_gap_from: Where that is written: ``ttl``, ``sy``, ``max-age`` or ``expires``.
    """

    source_id: str
    kind: SourceKind
    url: str
    title: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    manual_cadence: str = "P2"
    state: SourceState = SourceState.ACTIVE
    state_reason: str = ""
    etag: str = ""
    last_modified: str = ""
    body_hash: str = ""
    gap: Gap | None = None
    clock: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    credential: str = ""
    own_gap: int = 0
    own_gap_from: str = ""


@dataclass(frozen=True)
class Entry:
    """One published item of a source, unprocessed.

    Attributes:
        guid: The source's identifier of it; empty if there is none.
        link: Its page; empty if it has none.
        title: Its title, as plain text.
        summary: Its summary, as plain text and cut.
        published_at: When it was published; None if the source gives no credible time.
        extra: Further facts of its kind.
        edit_publishes: Whether a change counts as a publication, as for a video's new episode.
        content: The article as HTML, as its source wrote it and not safe to show; empty if the summary says it all. It
            does not count as an edit by itself.
    """

    guid: str
    link: str
    title: str
    summary: str = ""
    published_at: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    edit_publishes: bool = False
    content: str = ""

    @cached_property
    def guid_hash(self) -> str:
        """Hash that identifies it within its source: of its guid, else its link, else its title."""
        return digest(self.guid or self.link or self.title)

    @cached_property
    def content_hash(self) -> str:
        """Hash of its content; changes when it is edited."""
        return digest("\x1f".join((self.title, self.link, self.summary, repr(sorted(self.extra.items())))))


@dataclass(frozen=True, slots=True)
class FetchedFeed:
    """Result of fetching a source.

    Attributes:
        entries: Its entries in order; empty if nothing changed.
        unchanged: Whether nothing changed since the last poll: the source answered 304, or its answer is identical.
        title: The source's own title.
        etag: For the next conditional request.
        last_modified: For the next conditional request.
        body_hash: Hash of the answer; empty if there was none.
        own_gap: Seconds that the publisher wants between two polls; 0 if it says nothing.
        own_gap_from: Where that is written; see `Source`.
        moved_to: The address it moved to permanently; empty if it did not.
        status: HTTP status.
        left_out: Entries beyond the maximum of one answer.
        page_count: Number of pages the source has; 0 if it does not say.
        gap: What remains unread; None for nothing.
    """

    entries: Sequence[Entry] = ()
    unchanged: bool = False
    title: str = ""
    etag: str = ""
    last_modified: str = ""
    body_hash: str = ""
    own_gap: int = 0
    own_gap_from: str = ""
    moved_to: str = ""
    status: int = 200
    left_out: int = 0
    page_count: int = 0
    gap: Gap | None = None


class PollOutcome(enum.StrEnum):
    """How a poll ended."""

    HIT = "hit"
    MISS = "miss"
    """It answered, but without new entries."""
    UNCHANGED = "unchanged"
    """It answered 304, or exactly as before."""
    FAILED = "failed"
    DEFERRED = "deferred"
    """Its host's gate admitted no call; it was not polled."""


@dataclass(frozen=True, slots=True)
class PollRecord:
    """One poll, as stored for figures and checks.

    ``delay`` is the age of its oldest new entry in seconds; ``gap``, which is stored with the source, whether something
    remained unread.
    """

    source_id: str
    host: str
    at: int
    outcome: PollOutcome
    status: int = 0
    new: int = 0
    updated: int = 0
    delay: int | None = None
    duration_ms: int = 0
    error: str = ""
    gap: bool = False


def digest(text: str) -> str:
    """Return a text as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def source_id_for(kind: SourceKind, url: str, account: str = "") -> str:
    """Return the key of a source: the kind, and the first digits of a hash of its address.

    Args:
        kind: Its kind.
        url: Its address.
        account: The account, if one address serves several.
    """
    return f"{kind.value}-{digest(url + chr(31) + account)[:16]}"
