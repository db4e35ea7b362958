"""Channels of the platforms that accept a POST, and alerts to the site's operators through one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import parse_qsl, unquote, urlsplit

from douban_pipeline.core.messages.delivery import DEADLINE_SECONDS, post
from douban_pipeline.core.messages.message_parts import cut, plain, split
from douban_pipeline.core.messages.platforms import PLATFORMS, MessagePlatform, Robot
from douban_pipeline.core.messages.types import Message, Part

_MOST_TITLE = 100
_MOST_PARTS = 99
_MOST_SHOWN = 500
_LEAST_SECRET = 6


@dataclass(frozen=True, slots=True)
class RobotChannel:
    """A channel of a platform that accepts a POST.

    Attributes:
        name: Its name.
        platform: The platform.
        robot: Address and secret.
        deadline: Seconds a call may take in total.
    """

    name: str
    platform: MessagePlatform
    robot: Robot = field(repr=False)
    deadline: float = DEADLINE_SECONDS

    @property
    def kind(self) -> str:
        """Name of the platform."""
        return self.platform.name

    @property
    def keyed(self) -> bool:
        """Whether a message that is sent again with its key is shown once."""
        return self.platform.keyed

    @property
    def per_minute(self) -> int:
        """Messages per minute that the platform accepts."""
        return self.platform.per_minute

    def parts(self, message: Message) -> Sequence[Part]:
        """Return the pieces of ``message``, at most 99; the rest is cut off."""
        whole = self._bare(message)
        text = plain(message.text)
        if self._fits(replace(whole, text=text)):
            return [replace(whole, text=text)]
        marked = replace(whole, title=f"{whole.title} ({_MOST_PARTS}/{_MOST_PARTS})")
        # A platform that doubles line breaks needs more room than the text's own length: half of it always suffices.
        pieces = split(text, self._room(marked), self.platform.width)
        if not all(self._fits(replace(marked, text=piece)) for piece in pieces):
            pieces = split(text, self._room(marked) // 2, self.platform.width)
        pieces = pieces[:_MOST_PARTS]
        count = len(pieces)
        return [
            Part(message, f"{whole.title} ({number}/{count})", piece, number, count)
            for number, piece in enumerate(pieces, 1)
        ]

    def single_part(self, message: Message, most: int) -> Part:
        """Return ``message`` as one piece, its text cut if the whole would be longer than ``most``."""
        whole = self._bare(message)
        room = min(most, self.platform.most) - self.platform.width(self.platform.counted(replace(whole, text="字")))
        return replace(whole, text=cut(plain(message.text), room + self.platform.width("字"), self.platform.width))

    def send(self, part: Part, *, now: datetime) -> str:
        """Send one piece; see `Channel.send`."""
        answer = post(self.platform.request(self.robot, part, now), self.deadline)
        return self._redacted(self.platform.judge(answer))

    def _bare(self, message: Message) -> Part:
        return Part(message, " ".join(plain(message.title).split())[:_MOST_TITLE], "")

    def _fits(self, part: Part) -> bool:
        return self.platform.width(self.platform.counted(part)) <= self.platform.most

    def _room(self, part: Part) -> int:
        # One character of text, so that the line breaks around the text are counted too.
        return self.platform.most - self.platform.width(self.platform.counted(replace(part, text="x"))) + 1

    def _redacted(self, text: str) -> str:
        parts = urlsplit(self.robot.url)
        secrets = {self.robot.secret, parts.password or "", parts.path.strip("/")}
        secrets |= {value for _, value in parse_qsl(parts.query)}
        secrets |= {unquote(segment) for segment in parts.path.split("/")}
        secrets |= {segment.removeprefix("bot") for segment in parts.path.split("/")}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _LEAST_SECRET:
                text = text.replace(secret, "***")
        return text[:_MOST_SHOWN]


ALERT_SECONDS = 5.0
"""Wall-clock limit of one alert, in seconds: runs and sensors wait for it."""
MOST_BYTES = 4096
"""Maximum length of an alert's text: WeCom's limit, the smallest of all. Longer texts are cut, not split."""
FORMS = {"wecom": "wecom", "dingtalk": "dingtalk", "feishu": "feishu", "generic": "webhook"}
"""The platform of each value of the settings."""


def post_alert(
    form: str, url: str, secret: str, message: Message, *, now: datetime, deadline: float = ALERT_SECONDS
) -> None:
    """Send ``message`` once: no redirect is followed, and nothing is retried.

    Args:
        form: wecom, dingtalk, feishu or generic.
        url: Target address.
        secret: Key of the signature; empty for none. WeCom has none.
        message: What to send.
        now: The current time, which platforms compare with their own clock.
        deadline: Seconds the call may take in total.

    Raises:
        DeliveryError: No success was reported in time.
        ValueError: There is no such form.
    """
    channel = alert_channel(form, url, secret, seconds=deadline)
    channel.send(channel.single_part(message, MOST_BYTES), now=now)


def alert_channel(form: str, url: str, secret: str, *, name: str = "", seconds: float = ALERT_SECONDS) -> RobotChannel:
    """Return the channel of the alerts' webhook, for a system that sends alerts through an outbox of its own.

    Args:
        form: wecom, dingtalk, feishu or generic.
        url: Target address.
        secret: Key of the signature; empty for none. WeCom has none.
        name: Name of the channel; the form by default.
        seconds: Wall-clock limit of a call.

    Raises:
        ValueError: There is no such form.
    """
    if form not in FORMS:
        raise ValueError(f"unknown form of alerts: {form}")
    return RobotChannel(name or form, PLATFORMS[FORMS[form]], Robot(url, secret), seconds)
