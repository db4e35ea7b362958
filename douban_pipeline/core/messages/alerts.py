"""Alerts of the pipeline itself to the people who keep the site: one POST to a robot, or to an address that takes JSON.

The address of a robot is its key. Neither it nor the signing secret ever appears in an error or a log.
"""

from __future__ import annotations

from datetime import datetime

from douban_pipeline.core.messages.platforms import PLATFORMS, Robot
from douban_pipeline.core.messages.robots import RobotChannel
from douban_pipeline.core.messages.types import Message

ALERT_SECONDS = 5.0
"""Wall-clock limit of one alert: runs and sensors wait for it."""
MOST_BYTES = 4096
"""Longest text of an alert: WeCom's limit, the shortest of them all. What is longer is cut, not split."""
FORMS = {"wecom": "wecom", "dingtalk": "dingtalk", "feishu": "feishu", "generic": "webhook"}
"""The platform of each form that settings may name."""


def post_alert(
    form: str, url: str, secret: str, message: Message, *, now: datetime, deadline: float = ALERT_SECONDS
) -> None:
    """Send ``message`` once: no redirect is followed, nothing is tried again.

    Args:
        form: wecom, dingtalk, feishu or generic.
        url: Where to.
        secret: Key of the signature; empty for none. WeCom has none.
        message: What to send.
        now: The present moment, which platforms hold against their own clock.
        deadline: Seconds the call may take in all.

    Raises:
        DeliveryError: There was no good answer in time.
        ValueError: There is no such form.
    """
    if form not in FORMS:
        raise ValueError(f"no such form of alerts: {form}")
    channel = RobotChannel(form, PLATFORMS[FORMS[form]], Robot(url, secret), deadline)
    channel.send(channel.single_part(message, MOST_BYTES), now=now)
