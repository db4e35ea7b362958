"""Reading on in a source's list: further pages while all of their rows are new, and what an earlier poll had left.

A list is sorted by change, newest first, so the first row that is known marks the end of what is new. A poll that ends
before it leaves a `Gap`, at which the next poll reads on until it meets what was stored before the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from douban_pipeline.core.errors import SourceError
from douban_pipeline.feeds.types import Entry, FetchedFeed, Gap, GapReason

MOST_PAGES = 50
"""Pages of one poll. At 20 videos a page, what most sites send, this is 1,000; at 30 requests a minute, 100 seconds."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a poll may read.

    Attributes:
        all_unread: Returns whether none of the entries is stored as it is; with a moment, before that moment.
        may_go_on: Returns whether there is time for another page.
    """

    all_unread: Callable[[Sequence[Entry], int | None], bool]
    may_go_on: Callable[[], bool] = lambda: True


@dataclass(slots=True)
class _Walk:
    """A walk over pages: what it found, the number of the last page, and why it ended early (None: it did not)."""

    read: Callable[[int], FetchedFeed]
    reach: Reach
    entries: list[Entry]
    page_count: int
    seen: set[str] = field(default_factory=set)
    number: int = 1
    requests: int = 1
    ended: GapReason | None = None
    error: str = ""

    def __post_init__(self) -> None:
        self.seen = {each.guid_hash for each in self.entries}

    def on(self, start: int, before: int | None) -> None:
        """Read pages from ``start`` until one has a row that is known (stored before ``before``) or the list ends."""
        number = start
        while not self.page_count or number <= self.page_count:
            if self.requests >= MOST_PAGES or not self.reach.may_go_on():
                self.ended = GapReason.LIMIT if self.requests >= MOST_PAGES else GapReason.TIME
                break
            try:
                page = self.read(number)
            except SourceError as error:
                self.ended, self.error = GapReason.FAILED, error.reason[:300]
                break
            self.requests += 1
            self.page_count = page.page_count or self.page_count
            if not page.entries:
                break
            if all(each.guid_hash in self.seen for each in page.entries):
                self.ended = GapReason.REPEATED
                break
            self.entries += page.entries
            self.seen |= {each.guid_hash for each in page.entries}
            number += 1
            if page.left_out:
                self.ended = GapReason.ANSWER
                break
            if not self.reach.all_unread(page.entries, before):
                break
        self.number = max(self.number, number - 1)


def read_on(
    first: FetchedFeed, gap: Gap | None, read: Callable[[int], FetchedFeed], reach: Reach, now: int
) -> FetchedFeed:
    """Return a source's answer with the entries of its further pages, and with the gap that remains.

    Args:
        first: Its first page.
        gap: What the polls before had left.
        read: Returns a page by its number, from 2 on; raises a `SourceError`.
        reach: How far to read.
        now: The current time.
    """
    walk = _Walk(read, reach, list(first.entries), first.page_count)
    since = gap.at if gap is not None else now
    if first.left_out and reach.all_unread(first.entries, None):
        walk.ended = GapReason.ANSWER
    elif reach.all_unread(first.entries, None):
        walk.on(2, None)
    if gap is not None and walk.ended is None:
        # One page earlier than where it ended: rows that were deleted since move the others up.
        walk.on(max(gap.page - 1, walk.number + 1, 2), since)
    left = None if walk.ended is None else Gap(since, walk.number + 1, walk.ended, walk.error)
    unchanged = first.unchanged and not walk.entries
    return replace(first, entries=tuple(walk.entries), unchanged=unchanged, gap=left)
