"""What a check found, and how it is printed: one line each, always."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rich.markup import escape

from douban_pipeline.ops.console import console

State = Literal["ok", "warn", "fail"]

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer to one question: what was found, and what to do about it if it is not well.

    Attributes:
        name: What was looked at, in one word.
        state: Whether it is well.
        message: What was found.
        remedy: What to do about it; empty if it is well.
    """

    name: str
    state: State
    message: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it as monitors read it: the key ``told`` is older than the name ``message``."""
        return {"name": self.name, "state": self.state, "told": self.message, "remedy": self.remedy}


def print_results(results: Iterable[CheckResult]) -> None:
    """Print results, a line each."""
    for result in results:
        state = f"[{_COLOURS[result.state]}]{result.state:<4}[/]"
        remedy = f" → {result.remedy}" if result.remedy else ""
        line = " ".join(f"{result.message}{remedy}".split())
        console.print(f"{state} {result.name:<9} {escape(line)}", highlight=False, soft_wrap=True)
