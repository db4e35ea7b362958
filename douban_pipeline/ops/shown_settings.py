"""Shows the current settings of the named systems. Loads SQLAlchemy only where an address is set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import typer
from pydantic import SecretStr

from douban_pipeline.core.console import console
from douban_pipeline.core.database_urls import DatabaseError, parse_url
from douban_pipeline.core.language import terminal_text
from douban_pipeline.ops.installed import installed
from douban_pipeline.serve.settings import load_settings as load_service

_SECRETS = re.compile(
    r"(?<=://)[^/\s,@]*(?=@)|(?<=[?&])[^=&\s,]*(?:key|token|secret|password|sign)[^=&\s,]*=[^&\s,]*", re.IGNORECASE
)
"""What may be secret in an address: user and password, and values of its query with such names."""


def show_settings(names: Sequence[str] | None) -> None:
    """Show every setting: its variable, its value (never a secret) and what it means.

    In a terminal the output is a table; otherwise one line per setting, with tabs between its three parts.
    """
    rows = _rows(names)
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(row))  # rich has no tabs
        return
    from rich.table import Column

    from douban_pipeline.core.terminal_table import Table

    # A truncated variable cannot be copied.
    table = Table(
        Column(terminal_text("variable"), no_wrap=True),
        Column(terminal_text("value"), overflow="fold"),
        Column(terminal_text("meaning"), overflow="fold"),
    )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _rows(names: Sequence[str] | None) -> Iterator[tuple[str, str, str]]:
    """Yield variable, value and meaning of each setting; one that several systems share comes once."""
    shown: set[str] = set()
    for settings in (*(system.settings().load() for system in installed(names)), load_service()):
        for name, definition in type(settings).model_fields.items():
            given = settings.variable(name)
            if given not in shown:
                yield given, _shown(getattr(settings, name)), terminal_text(definition.description or "")
            shown.add(given)


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return _shown_secret(value.get_secret_value())
    if isinstance(value, frozenset):
        value = tuple(sorted(value))
    if isinstance(value, dict):
        value = tuple(f"{name}={policy}" for name, policy in value.items())
    shown = (", ".join(map(str, value)) or "—") if isinstance(value, tuple) else str(value)
    return _SECRETS.sub("***", shown)


def _shown_secret(secret: str) -> str:
    """Return a database's address without its password; for any other secret only whether it is set."""
    if "://" not in secret:
        return "set" if secret else "—"
    try:
        return parse_url(secret, setting="").render_as_string(hide_password=True)
    except DatabaseError:
        return "set"
