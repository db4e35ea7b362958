"""Channels as written in a setting: ``[NAME=]KIND+ADDRESS[#SECRET]``, separated by blanks or line ends.

The address is the one the platform shows, so that a proxy, a self-hosted server or a stand-in is just another address.
The part after ``#`` is the signing secret, or ntfy's access token, and is never sent as part of the address::

    wecom+https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY
    team=dingtalk+https://oapi.dingtalk.com/robot/send?access_token=TOKEN#SECRET
    feishu+https://open.feishu.cn/open-apis/bot/v2/hook/TOKEN#SECRET
    serverchan+https://sctapi.ftqq.com/SENDKEY.send
    bark+https://api.day.app/KEY
    telegram+https://api.telegram.org/botTOKEN?chat_id=-1001234
    ntfy+https://ntfy.sh/TOPIC#TOKEN
    webhook+https://example.com/hook#SECRET
    email+smtps://USER:PASSWORD@smtp.example.com?from=a@example.com&to=b@example.com,c@example.com

``email+smtp`` starts TLS with STARTTLS, ``email+smtps`` uses it from the start; ``smtp`` to this machine uses no TLS
unless ``tls=yes``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from douban_pipeline.core.messages.delivery import DEADLINE_SECONDS
from douban_pipeline.core.messages.mail import MailChannel, MailServer
from douban_pipeline.core.messages.platforms import PLATFORMS, Robot
from douban_pipeline.core.messages.robots import RobotChannel
from douban_pipeline.core.messages.types import Channel
from douban_pipeline.core.settings_base import is_loopback

MAIL = "email"
KINDS = (*PLATFORMS, MAIL)
_ENTRY = re.compile(r"(?:(?P<name>[A-Za-z0-9_.-]+)=)?(?P<kind>[a-z]+)\+(?P<address>[a-z]+://\S+)")
_MOST_NAME = 16
_MAIL_ADDRESS = re.compile(r"[^@\s,<>]+@[^@\s,<>]+")


def read_channels(text: str, *, seconds: float = DEADLINE_SECONDS) -> dict[str, Channel]:
    """Return the channels of ``text`` by name, in order; one without a name is named after its kind.

    Args:
        text: In the form described in the module's docstring; empty for no channel.
        seconds: Wall-clock limit of a call.

    Raises:
        ValueError: One is wrong, or two share a name. The message identifies it by its position and quotes only its
            name and kind.
    """
    found: dict[str, Channel] = {}
    for place, entry in enumerate(text.split(), 1):
        match = _ENTRY.fullmatch(entry)
        if match is None or match["kind"] not in KINDS:
            raise ValueError(f"channel {place} is not NAME=KIND+ADDRESS with a kind of {', '.join(KINDS)}")
        kind, name = match["kind"], match["name"] or match["kind"]
        what = f"channel {place} ({name}, {kind})"
        if len(name) > _MOST_NAME:
            raise ValueError(f"{what}: its name is longer than {_MOST_NAME} letters")
        if name in found:
            raise ValueError(f"{what}: another channel has this name; write NAME=KIND+ADDRESS")
        try:
            parts = urlsplit(match["address"])
            _ = parts.port
        except ValueError:
            raise ValueError(f"{what}: its address cannot be read") from None
        read = _mail if kind == MAIL else _robot
        found[name] = read(what, name, kind, parts, seconds)
    return found


def _robot(what: str, name: str, kind: str, parts: SplitResult, seconds: float) -> RobotChannel:
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{what}: its address is neither http:// nor https://")
    if kind == "telegram" and ("/bot" not in parts.path or "chat_id" not in parse_qs(parts.query)):
        raise ValueError(f"{what}: its address is not …/botTOKEN?chat_id=CHAT")
    if kind in ("bark", "ntfy") and not parts.path.strip("/"):
        raise ValueError(f"{what}: its address does not end with the {'key' if kind == 'bark' else 'topic'}")
    address = parts._replace(fragment="").geturl()
    return RobotChannel(name, PLATFORMS[kind], Robot(address, unquote(parts.fragment)), seconds)


def _mail(what: str, name: str, _kind: str, parts: SplitResult, seconds: float) -> MailChannel:
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise ValueError(f"{what}: its address is neither smtp:// nor smtps://")
    options = _options(parts.query)
    recipients = [each for each in options.get("to", "").split(",") if each]
    addresses = [options.get("from", ""), *recipients]
    if not recipients or not all(_MAIL_ADDRESS.fullmatch(each) for each in addresses):
        raise ValueError(f"{what}: it needs from=ADDRESS and to=ADDRESS,… in its query")
    local = is_loopback(parts.geturl())
    security = "tls" if parts.scheme == "smtps" else "none" if local and options.get("tls") != "yes" else "starttls"
    server = MailServer(
        parts.hostname,
        parts.port or (465 if security == "tls" else 587),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        security,
    )
    return MailChannel(name, server, options["from"], recipients, seconds)


def _options(query: str) -> Mapping[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
