"""Translates the command line's help, and Typer's own texts, into Chinese."""

from __future__ import annotations

from typing import Any

import typer

from douban_pipeline.ops.help_in_chinese import HELP

_PANELS = {
    "ARGUMENTS_PANEL_TITLE": "参数",
    "OPTIONS_PANEL_TITLE": "选项",
    "COMMANDS_PANEL_TITLE": "命令",
    "ERRORS_PANEL_TITLE": "错误",
    "DEFAULT_STRING": "[默认：{}]",
    "REQUIRED_LONG_STRING": "[必填]",
    "RICH_HELP": "用 [blue]'{command_path} {help_option}'[/] 查看帮助。",
}
"""Texts of Typer's help by their names in `typer.rich_utils`; other releases may use other names."""


def in_chinese(app: typer.Typer) -> Any:
    """Return the commands of ``app`` with their help in Chinese; untranslated texts stay unchanged."""
    from typer import rich_utils

    for name, text in _PANELS.items():
        if hasattr(rich_utils, name):
            setattr(rich_utils, name, text)
    commands = typer.main.get_command(app)
    _translate(commands)
    return commands


def _translate(command: Any) -> None:
    command.help = _translated(command.help)
    given = command.get_help_option(typer.Context(command))
    for each in [*command.params, *([given] if given is not None else [])]:
        if getattr(each, "help", None):
            each.help = _translated(each.help)
    for inner in getattr(command, "commands", {}).values():
        _translate(inner)


def _translated(text: str | None) -> str | None:
    return HELP.get(text, text) if text else text
