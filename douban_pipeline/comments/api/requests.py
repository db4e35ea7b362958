"""What paths take: ids, places, texts and bodies, as the description of the API has them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from douban_pipeline.comments.api.problems import ID_PATTERN, IdText, OwnerId, not_a_switch

MAX_LENGTH = 2000
"""Maximum length of a comment."""


class Device(StrEnum):
    """What a page is shown on: phones get what a small list shows, see `pages.for_phones`."""

    DESKTOP = "desktop"
    PHONE = "phone"


Size = Annotated[int, Query(ge=1, le=50)]
Cursor = Annotated[
    str | None, Query(max_length=40, json_schema_extra={"pattern": rf"^(-?{ID_PATTERN}\.{ID_PATTERN})?$"})
]
_TARGET = f"{ID_PATTERN}:{ID_PATTERN}"
Targets = Annotated[str, Query(max_length=2000, json_schema_extra={"pattern": f"^{_TARGET}(,{_TARGET})*$"})]
"""Objects, see `targets_of`."""
# Some readers of patterns know \p{…} in part, so that blanks and what cannot be seen are named besides.
_UNSEEN = r"\u00ad\u115f\u1160\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufeff\uffa0"
_SEEN = rf"[^\s\p{{Z}}\p{{C}}\p{{M}}{_UNSEEN}]"
_Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=16_000,
        # What is said of longer ones, and of those that show nothing, is better said than by a pattern.
        json_schema_extra={
            "maxLength": MAX_LENGTH,
            "pattern": _SEEN,
        },
    ),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Advert(_Body):
    """Title and link of an advertisement."""

    title: str = Field(min_length=1, max_length=60)
    link: str = Field(pattern=r"^https?://[^\s\x00-\x20\x7f-\xa0\ufeff<>\"]+$", max_length=500)


class NewComment(_Body):
    """A comment to be published."""

    content: _Text
    parent: IdText | None = None
    name: str = Field("", max_length=60, description="Of a guest.")
    ad: Advert | None = Field(None, description="Makes it an advertisement; of operators alone.")


class Draft(_Body):
    """A text that replaces a comment's."""

    content: _Text


class Typed(_Body):
    """A text as far as it is typed."""

    content: str = Field(min_length=1, max_length=16_000)


class Opinion(_Body):
    """A vote: 1 like, -1 dislike, 0 neither."""

    value: Annotated[int, Field(ge=-1, le=1), BeforeValidator(not_a_switch)]


class Complaint(_Body):
    """The reason for reporting a comment."""

    reason: str = Field("other", max_length=32)
    detail: str = Field("", max_length=300)


class Switch(_Body):
    """A switch: on or off."""

    on: StrictBool


class SectionChange(_Body):
    """Changes to a section: whether it is closed, and whether comments are reviewed before they are shown."""

    closed: StrictBool | None = None
    review_first: StrictBool | None = None


class ShownComments(_Body):
    """Comments that were displayed on a visitor's screen."""

    ids: list[IdText] = Field(max_length=200)
    view: str = Field(max_length=8000, description="``view`` of the page that showed them.")


class Read(_Body):
    """Notices to mark as read: some by id, or all up to an id."""

    ids: list[IdText] = Field(default_factory=list, max_length=200)
    upto: IdText = "0"


class SectionInput(_Body):
    """Owner and title of a section."""

    owner_id: OwnerId = 0
    title: str = Field("", max_length=300)
