"""What the feeds system speaks of, as values: sources, entries, what a fetch gave, and how a poll ended."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class SourceKind(enum.StrEnum):
    """How a source is asked."""

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
        """What the scheduler's tables call it: ``rss``, or ``custom`` for every other kind."""
        return "rss" if self is SourceKind.RSS else "custom"


class SourceState(enum.StrEnum):
    """Whether a source is polled."""

    ACTIVE = "active"
    PAUSED = "paused"
    """By a person, until a person resumes it."""
    GONE = "gone"
    """It says that it no longer exists (HTTP 410), or was removed; its history stays."""
    DUPLICATE = "duplicate"
    """It moved for good to the address of another source, which is polled in its place."""


@dataclass(frozen=True, slots=True)
class Source:
    """One followed source.

    Attributes:
        source_id: Its key in every table, made from kind and address; see `source_id_for`.
        kind: How it is asked.
        url: Where it is asked.
        title: What people call it.
        options: What its kind needs beside the address.
        manual_cadence: P0 to P6; in force until three distinct publications are known.
        state: Whether it is polled.
        state_reason: Why it is not, for people.
        etag: What it said of its last answer.
        last_modified: What it said of its last answer.
        body_hash: Hash of its last answer; the same answer again need not be read.
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


@dataclass(frozen=True)
class Entry:
    """One thing that a source published, as it came.

    Attributes:
        guid: What the source calls it; empty if it has no name for it.
        link: Its page; empty if it has none.
        title: Its title, as plain text.
        summary: What it is about, as plain text and cut.
        published_at: When it was published; None if the source does not say so credibly.
        extra: Further facts of its kind.
        edit_publishes: Whether a change of it is a publication, as a new episode of a video is.
    """

    guid: str
    link: str
    title: str
    summary: str = ""
    published_at: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    edit_publishes: bool = False

    @cached_property
    def guid_hash(self) -> str:
        """What tells it from the source's other entries: its guid, else its link, else its title."""
        return digest(self.guid or self.link or self.title)

    @cached_property
    def content_hash(self) -> str:
        """Changes when it is edited."""
        return digest("\x1f".join((self.title, self.link, self.summary, repr(sorted(self.extra.items())))))


@dataclass(frozen=True, slots=True)
class FetchedFeed:
    """What asking a source gave.

    Attributes:
        entries: Its entries, in its order; empty when nothing changed.
        unchanged: Nothing changed since the last time: it said so (304), or its answer is the same.
        title: What it calls itself.
        etag: For the next conditional request.
        last_modified: For the next conditional request.
        body_hash: Hash of the answer; empty where there was none.
        max_age: Seconds for which it says that asking again is useless; None if it says nothing.
        moved_to: The address it moved to for good; empty if it did not.
        status: HTTP status.
        left_out: Entries beyond the most that one poll takes in.
    """

    entries: Sequence[Entry] = ()
    unchanged: bool = False
    title: str = ""
    etag: str = ""
    last_modified: str = ""
    body_hash: str = ""
    max_age: int | None = None
    moved_to: str = ""
    status: int = 200
    left_out: int = 0


class PollOutcome(enum.StrEnum):
    """How a poll ended."""

    HIT = "hit"
    MISS = "miss"
    """It answered, and nothing was new."""
    UNCHANGED = "unchanged"
    """It answered 304, or exactly as before."""
    FAILED = "failed"
    DEFERRED = "deferred"
    """Its host's gate let nothing through; it was not asked."""


@dataclass(frozen=True, slots=True)
class PollRecord:
    """One poll, as it is kept for plots and checks; ``delay`` is the age in seconds of what was found, oldest first."""

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


def digest(text: str) -> str:
    """Return a text as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def source_id_for(kind: SourceKind, url: str, account: str = "") -> str:
    """Return the key of a source: the kind, and the beginning of a hash of its address.

    Args:
        kind: How it is asked.
        url: Its address.
        account: Which account of it, where one address serves several.
    """
    return f"{kind.value}-{digest(url + chr(31) + account)[:16]}"
