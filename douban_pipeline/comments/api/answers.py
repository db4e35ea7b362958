"""What the paths answer, for the description of the API and the clients that are made of it; see `description`.

Nothing is built of these classes: an answer is put together as it is sent, since a page is read thousands of times a
minute. Tests compare what is sent with what is described.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = str
"""An id as text, because JavaScript cannot hold all of them as numbers."""


class Answer(BaseModel):
    """Base of all of them: every field is there, unless it has a default."""

    model_config = ConfigDict(extra="forbid")


class ProblemAnswer(Answer):
    """An error (RFC 9457); ``detail`` says what to do about it."""

    type: str
    title: str
    status: int
    detail: str


class Piece(Answer):
    """A part of a text: words (``text``), an emoji of the CMS, a link, a mention (``at``), a spoiler or a moment."""

    text: str | None = None
    spoiler: bool | None = None
    seconds: int | None = Field(None, description="The moment of the video that the text names.")
    emoji: int | None = None
    link: str | None = None
    host: str | None = None
    at: str | None = None
    user: Id | None = None


class Who(Answer):
    """A user; without id a guest."""

    id: Id | None
    name: str


class Author(Who):
    """Who wrote a comment."""

    level: int


class Advertisement(Answer):
    """Title and link of an advertisement."""

    title: str
    link: str


class Shown(Answer):
    """A comment that is shown."""

    id: Id
    root: Id | None
    parent: Id | None
    dialog: Id | None
    floor: int
    author: Author
    at: datetime
    pieces: list[Piece]
    likes: int
    dislikes: int
    replies: int
    labels: list[str]
    edited: datetime | None
    ad: Advertisement | None


class Reply(Shown):
    """A reply, with the name of whom it answers, unless that is the root."""

    reply_to: str | None


class Root(Shown):
    """A root with its most liked replies."""

    preview: list[Reply]


class Waiting(Shown):
    """A comment of the visitor that waits for review, or is not applied yet."""

    waiting: bool
    preview: list[Reply]


class Friends(Answer):
    """How many friends of the visitor like a comment, and some of them."""

    count: int
    users: list[Id]


class SectionAnswer(Answer):
    """A section."""

    id: Id
    type: int
    object_id: int
    title: str
    closed: bool
    owner_id: Id
    count: int
    roots: int
    edit_seconds: int


class _Personal(Answer):
    notice: str | None
    degraded: list[str] = Field(description="What could not be asked, and is missing.")
    decorations: dict[str, dict[str, Any]] | None = Field(None, description="Badges and avatars, by author.")
    me: Who | None = None
    votes: dict[str, int] | None = None
    mine: list[Waiting] | None = None
    liked_by_friends: dict[str, Friends] | None = None


class SectionPage(_Personal):
    """A page of a section."""

    section: SectionAnswer
    sort: str
    pinned: list[Root]
    items: list[Root]
    next: str | None = Field(description="The cursor of the next page.")
    view: str = Field(description="For `POST /impressions`.")


class RepliesPage(_Personal):
    """A page of the replies to a root."""

    root: Shown
    items: list[Reply]
    next: str | None


class DialogPage(_Personal):
    """A page of a dialog."""

    items: list[Reply]
    next: str | None


class PhoneComment(Answer):
    """A comment for phones: what is 0, empty or unknown is left out."""

    id: Id
    parent: Id | None = None
    author: Who
    at: datetime
    pieces: list[Piece] = []
    likes: int = 0
    replies: int = 0
    labels: list[str] = []
    edited: datetime | None = None
    ad: Advertisement | None = None
    reply_to: str | None = None
    preview: list[PhoneComment] = []


class PhonePage(SectionPage):
    """A page of a section with `device=phone`."""

    pinned: list[PhoneComment]  # type: ignore[assignment]
    items: list[PhoneComment]  # type: ignore[assignment]


class PhoneReplies(RepliesPage):
    """A page of replies with `device=phone`."""

    root: PhoneComment  # type: ignore[assignment]
    items: list[PhoneComment]  # type: ignore[assignment]


class Count(Answer):
    """The number of comments shown of an object."""

    type: int
    object_id: int
    count: int


class Counts(Answer):
    """Numbers of comments."""

    counts: list[Count]


class Published(Answer):
    """What is needed to display a comment before it is applied."""

    id: Id
    state: Literal["accepted"]
    parent: Id | None
    author: Who
    at: datetime
    pieces: list[Piece]
    labels: list[str]
    ad: Advertisement | None


class Edited(Answer):
    """A text that replaces a comment's."""

    id: Id
    pieces: list[Piece]
    edited: datetime


class Outcome(Answer):
    """What became of a text that a visitor sent; ``detail`` says why it was refused."""

    state: Literal["pending", "refused", "shown", "waiting", "deleted"]
    detail: str


class Accepted(Answer):
    """A request that will be applied within a second."""

    accepted: bool


class Preview(Answer):
    """A text as it will be shown."""

    pieces: list[Piece]


class Me(Answer):
    """Who asks; null for a visitor who may only read."""

    me: Who | None


class Counted(Answer):
    """How many impressions were counted."""

    counted: int


class NoticeSection(Answer):
    """The section that a notice is from."""

    type: int
    object_id: int
    title: str


class NoticeComment(Answer):
    """The comment that a notice is about."""

    id: Id
    root: Id | None
    pieces: list[Piece]
    likes: int
    status: str


class Notice(Answer):
    """A notice."""

    id: Id
    kind: str
    seen: bool
    at: datetime
    by: Who | None
    section: NoticeSection | None
    comment: NoticeComment | None


class Notices(Answer):
    """A page of notices."""

    items: list[Notice]
    next: Id | None


class Unread(Answer):
    """The number of unread notices; 100 means 100 or more."""

    unread: int


class Marked(Answer):
    """How many notices were marked as read."""

    marked: int


class ServedComment(Answer):
    """A comment for another server of the site."""

    id: Id
    root: Id | None
    parent: Id | None
    floor: int
    author: Author
    at: datetime
    pieces: list[Piece]
    likes: int
    replies: int
    labels: list[str]


class ServedComments(Answer):
    """Comments for another server of the site."""

    comments: list[ServedComment]


class MadeSection(Answer):
    """The id of a section that is there."""

    id: Id
