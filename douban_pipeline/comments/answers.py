"""What the API answers, as it is built and as its description says. All ids are text: JavaScript cannot hold them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

Id = str
At = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Piece(TypedDict, total=False):
    """A part of a text: words (``text``), an emoji of the CMS, a link, a mention (``at``), a spoiler or a moment."""

    text: str
    spoiler: bool
    seconds: Annotated[int, Field(description="The moment of the video that the text names.")]
    emoji: int
    link: str
    host: str
    at: str
    user: Id | None


class Who(TypedDict):
    """A user; without id a guest."""

    id: Id | None
    name: str


class Author(Who):
    level: int


class Advertisement(TypedDict):
    title: str
    link: str


class ServedComment(TypedDict):
    """A comment for another server of the site."""

    id: Id
    root: Id | None
    parent: Id | None
    floor: int
    author: Author
    at: At
    pieces: list[Piece]
    likes: int
    replies: int
    labels: list[str]


class Shown(ServedComment):
    """A comment that is shown."""

    dialog: Id | None
    dislikes: int
    edited: At | None
    ad: Advertisement | None


class Reply(Shown):
    """A reply, with the name of whom it answers, unless that is the root."""

    reply_to: str | None


class Root(Shown):
    """A root with its most liked replies."""

    preview: list[Reply]


class Waiting(Root):
    """A comment of the visitor that waits for review, or is not applied yet."""

    waiting: bool


class PhoneComment(TypedDict):
    """A comment for phones: what is 0, empty or unknown is left out."""

    id: Id
    author: Who
    at: At
    parent: NotRequired[Id]
    pieces: NotRequired[list[Piece]]
    likes: NotRequired[int]
    replies: NotRequired[int]
    labels: NotRequired[list[str]]
    edited: NotRequired[At]
    ad: NotRequired[Advertisement]
    reply_to: NotRequired[str]
    preview: NotRequired[list[PhoneComment]]


class Friends(TypedDict):
    """How many friends of the visitor like a comment, and some of them."""

    count: int
    users: list[Id]


class Section(TypedDict):
    id: Id
    type: int
    object_id: int
    title: str
    closed: bool
    owner_id: Id
    count: int
    roots: int
    edit_seconds: int


class Personal(TypedDict):
    """A visitor's part of a page."""

    votes: dict[Id, int]
    mine: list[Waiting]
    liked_by_friends: NotRequired[dict[Id, Friends]]


class _Page(TypedDict):
    notice: str | None
    degraded: Annotated[list[str], Field(description="What could not be asked, and is missing.")]
    decorations: NotRequired[Annotated[dict[Id, dict[str, Any]], Field(description="By author.")]]
    me: NotRequired[Who | None]
    votes: NotRequired[dict[Id, int]]
    mine: NotRequired[list[Waiting]]
    liked_by_friends: NotRequired[dict[Id, Friends]]


class _Roots(TypedDict):
    section: Section
    sort: str
    next: Annotated[str | None, Field(description="The cursor of the next page.")]


class _Replies(TypedDict):
    next: str | None


class Roots(_Roots):
    """The part of a page of a section that everybody shares."""

    pinned: list[Root]
    items: list[Root]


class Replies(_Replies):
    """The same of a page of the replies to a root."""

    root: Shown
    items: list[Reply]


class Dialog(_Replies):
    """The same of a page of a dialog."""

    items: list[Reply]


class SectionPage(Roots, _Page):
    """A page of a section."""

    view: Annotated[str, Field(description="For `POST /impressions`.")]


class PhonePage(_Roots, _Page):
    """A page of a section with `device=phone`."""

    pinned: list[PhoneComment]
    items: list[PhoneComment]
    view: str


class RepliesPage(Replies, _Page):
    """A page of the replies to a root."""


class PhoneReplies(_Replies, _Page):
    """A page of replies with `device=phone`."""

    root: PhoneComment
    items: list[PhoneComment]


class DialogPage(Dialog, _Page):
    """A page of a dialog."""


class Count(TypedDict):
    """The number of comments shown of an object."""

    type: int
    object_id: int
    count: int


class Counts(TypedDict):
    counts: list[Count]


class Published(TypedDict):
    """What is needed to display a comment before it is applied."""

    id: Id
    state: Literal["accepted"]
    parent: Id | None
    author: Who
    at: At
    pieces: list[Piece]
    labels: list[str]
    ad: Advertisement | None


class Edited(TypedDict):
    """A text that replaces a comment's."""

    id: Id
    pieces: list[Piece]
    edited: At


class Outcome(TypedDict):
    """What became of a text that a visitor sent; ``detail`` says why it was refused."""

    state: Literal["pending", "refused", "shown", "waiting", "deleted"]
    detail: str


class Accepted(TypedDict):
    """A request that will be applied within a second."""

    accepted: Literal[True]


class Preview(TypedDict):
    """A text as it will be shown."""

    pieces: list[Piece]


class Me(TypedDict):
    """Who asks; null for a visitor who may only read."""

    me: Who | None


class Counted(TypedDict):
    """How many impressions were counted."""

    counted: int


class NoticeSection(TypedDict):
    type: int
    object_id: int
    title: str


class NoticeComment(TypedDict):
    id: Id
    root: Id | None
    pieces: list[Piece]
    likes: int
    status: str


class Notice(TypedDict):
    id: Id
    kind: str
    seen: bool
    at: At
    by: Who | None
    section: NoticeSection | None
    comment: NoticeComment | None


class Notices(TypedDict):
    items: list[Notice]
    next: Id | None


class Unread(TypedDict):
    unread: Annotated[int, Field(description="100 means 100 or more.")]


class Marked(TypedDict):
    """How many notices were marked as read."""

    marked: int


class ServedComments(TypedDict):
    comments: list[ServedComment]


class MadeSection(TypedDict):
    """The id of a section that is there."""

    id: Id


class ProblemAnswer(TypedDict):
    """An error (RFC 9457); ``detail`` says what to do about it."""

    type: str
    title: str
    status: int
    detail: str
