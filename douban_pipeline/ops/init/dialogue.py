"""Asks a person in a terminal, or takes what was given where nobody can be asked; prints what each step finds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import typer

from douban_pipeline.core.console import console, plain
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.language import terminal_text


@dataclass
class Dialogue:
    """What is said in a terminal.

    Attributes:
        asks: Whether a person answers.
        steps: How many steps there are.
    """

    asks: bool
    steps: int
    step: int = 0
    _began: float = field(default_factory=time.monotonic)

    def begin(self, title: str) -> None:
        """Begin the next step: its number, its title, and the time since the start."""
        self.step += 1
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        console.rule(f"{self.step}/{self.steps}  {title}  [dim]{minutes}:{seconds:02d}[/]", align="left")

    def say(self, line: str) -> None:
        """Print a line as it is."""
        plain(line)

    def answer(self, prompt: str, default: str, check: Callable[[str], str], *, option: str, unasked: str = "") -> str:
        """Return what ``check`` makes of a person's answer; it is asked again as long as ``check`` raises ValueError.

        Args:
            prompt: The question.
            default: The answer of who only presses Enter.
            check: Returns the value for an answer, or raises ValueError with what is wrong.
            option: The option that gives the answer where nobody can be asked, for the message.
            unasked: The answer where nobody can be asked; by default ``default``.

        Raises:
            OperatingError: Nobody can be asked, and the answer is wrong or missing.
        """
        if not self.asks:
            return checked((unasked or default).strip(), check, option)
        while True:
            given = typer.prompt(prompt, default=default or None, type=str)
            try:
                return check(given.strip())
            except ValueError as error:
                plain(f"  {error}")

    def secret(self, prompt: str) -> str:
        """Return a password, which is not shown; empty where nobody can be asked."""
        return str(typer.prompt(prompt, default="", hide_input=True, show_default=False)) if self.asks else ""

    def wait(self, prompt: str) -> bool:
        """Wait until a person presses Enter; return whether there is a person."""
        if self.asks:
            typer.prompt(prompt, default="", show_default=False)
        return self.asks


def required(value: str) -> str:
    """Return an answer that may not be empty."""
    if not value:
        raise ValueError(terminal_text("an answer is needed"))
    return value


def checked(value: str, check: Callable[[str], str], option: str) -> str:
    """Return what ``check`` makes of the value of an option.

    Raises:
        OperatingError: It refuses the value.
    """
    try:
        return check(value)
    except ValueError as error:
        raise OperatingError(f"--{option}: {error}") from error
