"""Checks whether something listens at an address; no request is sent."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.language import terminal_text

CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}


def reached(name: str, setting: str, url: str) -> CheckResult:
    """Check that something listens at ``url``, the value of ``setting``; its password is not shown."""
    parts = urlsplit(url)
    shown = shown_address(url)
    remedy = terminal_text("check {setting} and that its server runs").format(setting=setting)
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
        with socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS):
            return CheckResult(name, "ok", terminal_text("{shown} answers").format(shown=shown))
    except TimeoutError:
        late = terminal_text("{setting} = {shown} does not answer in {connect_seconds:g} s").format(
            setting=setting, shown=shown, connect_seconds=CONNECT_SECONDS
        )
        return CheckResult(name, "warn", late, remedy)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        unreached = terminal_text("{setting} = {shown} cannot be reached ({why})").format(
            setting=setting, shown=shown, why=why
        )
        return CheckResult(name, "fail", unreached, remedy)


def shown_address(url: str) -> str:
    """Return an address without the parts that may be secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
