"""Results of checks, and how they are printed: one line each; whether something listens at an address."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from rich.markup import escape

from douban_pipeline.core.console import console
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import SettingsError

State = Literal["ok", "warn", "fail"]

_ORDER: tuple[State, ...] = ("ok", "warn", "fail")
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: its state, a message, and the remedy if there is a problem.

    Attributes:
        name: What was checked, in one word.
        state: ok, warn or fail.
        message: What was found.
        remedy: What to do about a problem; empty without one.
    """

    name: str
    state: State
    message: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the result for monitors; the message keeps its earlier key ``told``."""
        return {"name": self.name, "state": self.state, "told": self.message, "remedy": self.remedy}


def print_results(results: Iterable[CheckResult]) -> None:
    """Print results, one line each."""
    for result in results:
        state = f"[{_COLOURS[result.state]}]{result.state:<4}[/]"
        remedy = f" → {result.remedy}" if result.remedy else ""
        line = " ".join(f"{result.message}{remedy}".split())
        console.print(f"{state} {result.name:<9} {escape(line)}", highlight=False, soft_wrap=True)


def worst(states: Iterable[State]) -> State:
    """Return the worst of states; ``ok`` of none."""
    return max(states, key=_ORDER.index, default="ok")


def opening_results(error: SettingsError | DatabaseError) -> list[CheckResult]:
    """Return the results for an error with which a system's services could not be opened."""
    remedy = terminal_text("correct the variable, in the environment or in .env")
    if isinstance(error, SettingsError):
        return [CheckResult("settings", "fail", problem, remedy) for problem in error.problems]
    return [CheckResult("database", "fail", error.problem, error.remedy or remedy)]


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
