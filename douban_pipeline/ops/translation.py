"""The command line's help, and Typer's own texts, in the language of the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from douban_pipeline.core.language import terminal_text

TYPER_TEXTS = (
    "ARGUMENTS_PANEL_TITLE",
    "OPTIONS_PANEL_TITLE",
    "COMMANDS_PANEL_TITLE",
    "ERRORS_PANEL_TITLE",
    "DEFAULT_STRING",
    "REQUIRED_LONG_STRING",
    "RICH_HELP",
)
"""Texts of Typer's help by their names in `typer.rich_utils`; other releases may use other names."""


def in_terminal_language(app: typer.Typer) -> Any:
    """Return the commands of ``app`` with their help in the language of the terminal."""
    from typer import rich_utils

    for name in TYPER_TEXTS:
        if hasattr(rich_utils, name):
            setattr(rich_utils, name, terminal_text(getattr(rich_utils, name)))
    commands = typer.main.get_command(app)
    for each in with_help(commands):
        if each.help:
            each.help = terminal_text(each.help)
    return commands


def with_help(command: Any) -> Iterator[Any]:
    """Yield everything below a command that has a text of help: commands, arguments and options."""
    given = command.get_help_option(typer.Context(command))
    yield command
    yield from (each for each in (*command.params, given) if hasattr(each, "help"))
    for inner in getattr(command, "commands", {}).values():
        yield from with_help(inner)
