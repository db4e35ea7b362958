"""Checks whether something listens at an address; no request is sent."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.ui.language import said

CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}


def reached(name: str, setting: str, url: str) -> CheckResult:
    """Check that something listens at ``url``, the value of ``setting``; its password is not shown."""
    parts = urlsplit(url)
    shown = shown_address(url)
    remedy = said(f"检查 {setting}，以及它的服务器是否在运行", f"check {setting} and that its server runs")
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
        with socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS):
            return CheckResult(name, "ok", said(f"{shown} 有应答", f"{shown} answers"))
    except TimeoutError:
        late = said(
            f"{setting} = {shown} 在 {CONNECT_SECONDS:g} 秒内没有应答",
            f"{setting} = {shown} does not answer in {CONNECT_SECONDS:g} s",
        )
        return CheckResult(name, "warn", late, remedy)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        unreached = said(f"{setting} = {shown} 无法连接（{why}）", f"{setting} = {shown} cannot be reached ({why})")
        return CheckResult(name, "fail", unreached, remedy)


def shown_address(url: str) -> str:
    """Return an address without the parts that may be secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
