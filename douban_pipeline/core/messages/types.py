"""Types of messages: what is sent, how a delivery fails, and the interface of a channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from douban_pipeline.core.errors import LONGEST_RETRY_AFTER


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        title: One line.
        text: Lines of plain text; markup in it is neutralised.
        kind: Kind of event, for machines.
        cause: The exact cause, for machines: the same cause gives the same text.
        at: When it began.
        url: Where to read more; empty for none.
        key: Identifies a message that is sent again; empty for none.
    """

    title: str
    text: str
    kind: str
    cause: str
    at: datetime
    url: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the pieces in which a message is sent, each with the message's title and link.

    Attributes:
        message: The whole message.
        title: The title without markup, with a mark such as ``(1/2)`` if there are several pieces.
        text: Its text without markup.
        number: Its number, from 1.
        count: How many pieces there are.
    """

    message: Message
    title: str
    text: str
    number: int = 1
    count: int = 1

    @property
    def key(self) -> str:
        """Identifies this piece when it is sent again; empty for none."""
        return f"{self.message.key}-{self.number}" if self.message.key and self.count > 1 else self.message.key


class DeliveryError(Exception):
    """A message was not reported as accepted; the text says why in one sentence, without address and secret.

    Attributes:
        reached: Whether there was any answer; if not, other messages need not be tried now.
        uncertain: Whether it may have been delivered nevertheless: it was sent, and no answer reported a refusal.
        retry_after: Seconds that the platform asks to wait, a day at most; None if it does not say.
    """

    def __init__(
        self, reason: str, *, reached: bool, uncertain: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.reached = reached
        self.uncertain = uncertain
        if retry_after is not None:
            retry_after = min(max(retry_after, 0.0), LONGEST_RETRY_AFTER) if math.isfinite(retry_after) else None
        self.retry_after = retry_after


class Channel(Protocol):
    """A way of sending to people. A message is split into parts of the channel's maximum length, each sent
    separately."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def kind(self) -> str:
        """Name of its platform."""
        ...

    @property
    def per_minute(self) -> int:
        """How many messages per minute the platform accepts."""
        ...

    @property
    def keyed(self) -> bool:
        """Whether a message that is sent again with its key is shown once."""
        ...

    def parts(self, message: Message) -> Sequence[Part]:
        """Return the pieces of ``message``, in order; at least one."""
        ...

    def send(self, part: Part, *, now: datetime) -> str:
        """Send one piece once, without retries.

        Returns:
            The platform's answer, short and without secrets.

        Raises:
            DeliveryError: The platform did not report that it accepted the piece.
        """
        ...
