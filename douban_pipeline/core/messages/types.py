"""What is sent, what came of it, and how a sender looks from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        title: One line.
        text: Lines of plain text; markup in it is made harmless.
        kind: What sort of thing happened, for machines.
        cause: What exactly, for machines: the same cause is the same text.
        at: When it began.
        url: Where to read more; empty for nowhere.
        key: What a message that comes a second time has in common with the first; empty for none.
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
    """One of the pieces that a message is sent in, each with the message's title and link.

    Attributes:
        message: What it is a piece of.
        title: The title, harmless, with a mark such as ``(1/2)`` where there are several.
        text: Its text, harmless.
        number: Which it is, from 1.
        count: How many there are.
    """

    message: Message
    title: str
    text: str
    number: int = 1
    count: int = 1

    @property
    def key(self) -> str:
        """What this piece has in common with itself sent a second time; empty for none."""
        return f"{self.message.key}-{self.number}" if self.message.key and self.count > 1 else self.message.key


class DeliveryError(Exception):
    """A message was not taken, as far as is known; the text says why in one sentence, without address and secret.

    Attributes:
        reached: Whether there was an answer at all; without one, the next message need not be tried now.
        uncertain: Whether it may have arrived nevertheless: it was sent, and no answer said that it was refused.
        retry_after: Seconds that the platform asks to wait; None where it does not say.
    """

    def __init__(
        self, reason: str, *, reached: bool, uncertain: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.reached = reached
        self.uncertain = uncertain
        self.retry_after = retry_after


class Channel(Protocol):
    """One way to people. A message is cut into parts as long as the channel takes, and each is sent by itself."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def kind(self) -> str:
        """Which platform it is."""
        ...

    @property
    def per_minute(self) -> int:
        """How many messages a minute the platform takes."""
        ...

    def parts(self, message: Message) -> Sequence[Part]:
        """Return the pieces of ``message``, in order; there is at least one."""
        ...

    def send(self, part: Part, *, now: datetime) -> str:
        """Send one piece once: nothing is tried again.

        Returns:
            What the platform answered, short and without secrets.

        Raises:
            DeliveryError: The platform did not say that it took it.
        """
        ...
