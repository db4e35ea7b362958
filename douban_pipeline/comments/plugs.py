"""Client of optional services of the site, each with an address in the settings: friends, badges, a reviewing model.

All of them are weak dependencies: without a timely answer there is no label and no badge, and only word lists review.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field

MOST_FRIENDS = 500
"""Maximum number of a user's friends whose likes are looked up; the first ones."""
_MOST_BYTES = 262_144
_PICTURE = r"^((https://|/[^/\\\s])[^\s<>\"'()\\]+)?$"


class PlugError(RuntimeError):
    """A service did not answer, or its answer does not have the documented form."""


class TextVerdict(StrEnum):
    """A model's verdict on a text."""

    FINE = "pass"
    REVIEW = "review"
    """A person has to review it."""
    REJECT = "reject"
    """It is deleted, and only an auditor can restore it."""


class _PlugAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


_Found = TypeVar("_Found", bound=_PlugAnswer)


class _Friends(_PlugAnswer):
    friends: list[int]


class Decoration(_PlugAnswer):
    """Decorations of a user.

    Attributes:
        color: Colour of the badge, ``#rrggbb``; empty for the page's own.
        avatar: Address of a picture, ``https://…`` or a path of the site; empty for none.
    """

    badge: str = Field("", max_length=20)
    color: str = Field("", pattern=r"^(#[0-9a-fA-F]{6})?$")
    avatar: str = Field("", pattern=_PICTURE, max_length=500)
    frame: str = Field("", pattern=_PICTURE, max_length=500)


class _Decorations(_PlugAnswer):
    users: dict[Annotated[str, Field(pattern=r"^\d{1,19}$")], Decoration]


class Judgement(_PlugAnswer):
    """A model's judgement of one text."""

    verdict: TextVerdict
    reason: str = Field("", max_length=300)


class SitePlugs:
    """Calls the services; each exists if its address is given.

    Args:
        friends_url: ``GET …?user=12`` answers ``{"friends": [13, 14]}``.
        decorations_url: ``POST {"users": [12]}`` answers ``{"users": {"12": {"badge": "VIP", "color": "#c00000"}}}``,
            with the fields of `Decoration`.
        review_url: ``POST {"id": "…", "text": "…"}`` answers ``{"verdict": "pass|review|reject", "reason": "…"}``.
        token: Bearer token sent to all of them; empty sends none.
    """

    def __init__(
        self,
        *,
        friends_url: str = "",
        decorations_url: str = "",
        review_url: str = "",
        token: str = "",
        seconds: float = 1.0,
    ) -> None:
        self._seconds = seconds
        self._friends, self._decorations, self._review = friends_url, decorations_url, review_url
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=seconds, trust_env=False, follow_redirects=False)

    @property
    def has_friends(self) -> bool:
        """Whether there is a service for friends."""
        return bool(self._friends)

    @property
    def has_decorations(self) -> bool:
        """Whether there is a service for badges."""
        return bool(self._decorations)

    def friends(self, user_id: int) -> list[int]:
        """Return the friends of a user, at most `MOST_FRIENDS`.

        Raises:
            PlugError: There is no usable answer.
        """
        found = self._ask(_Friends, "GET", self._friends, params={"user": user_id})
        return found.friends[:MOST_FRIENDS]

    def decorations(self, users: Sequence[int]) -> dict[str, Decoration]:
        """Return the decorations of users, by id; users without any are missing.

        Raises:
            PlugError: There is no usable answer.
        """
        return self._ask(_Decorations, "POST", self._decorations, json={"users": list(users)}).users

    def judge(self, comment_id: int, text: str) -> Judgement:
        """Return the model's judgement of a text.

        Raises:
            PlugError: There is no usable answer.
        """
        return self._ask(Judgement, "POST", self._review, json={"id": str(comment_id), "text": text})

    def _ask(self, kind: type[_Found], method: str, url: str, **given: Any) -> _Found:
        end = time.monotonic() + self._seconds
        try:
            with self._client.stream(method, url, **given) as answer:
                answer.raise_for_status()
                content = b""
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > _MOST_BYTES or time.monotonic() > end:
                        raise PlugError(f"{url}: more than {_MOST_BYTES} bytes, or too slow")
            return kind.model_validate_json(content)
        except (httpx.HTTPError, ValueError) as error:
            raise PlugError(f"{url}: {type(error).__name__}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
