"""Alerts of the pipeline to the site's operators: one POST to a chat robot, or to a URL that accepts JSON.

A robot's address is its key. Neither it nor the signing secret ever appears in an error or a log.
"""

from __future__ import annotations

from datetime import datetime

from douban_pipeline.core.messages.platforms import PLATFORMS, Robot
from douban_pipeline.core.messages.robots import RobotChannel
from douban_pipeline.core.messages.types import Message

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
