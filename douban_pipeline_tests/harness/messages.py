"""Keeps the catalogue in step with the code: ``make messages`` adds new messages and drops unused ones."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import typer
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from typer import rich_utils

import douban_pipeline
from douban_pipeline.__main__ import app
from douban_pipeline.core.language import LOCALES
from douban_pipeline.ops.cli import TYPER_TEXTS, with_help

CATALOGUE = LOCALES / "zh_CN/LC_MESSAGES/douban_pipeline.po"
PACKAGE = Path(douban_pipeline.__file__).parent
LOOKUPS = ("terminal_text", "page_text", "reader_text", "translatable", "translated")
SHOWN_DOCSTRINGS = ("page_docstring", "report_asset")
"""Decorators of functions whose docstring is a message."""
HEADER = """\
# Chinese texts of the package by the English ones in the code. `make messages` adds what is new and drops the unused.
msgid ""
msgstr ""
"Language: zh_CN\\n"
"Content-Type: text/plain; charset=utf-8\\n"

"""
Message = tuple[str, str]
"""Context, mostly empty, and English text."""
_HAN = re.compile("[\u4e00-\u9fff]")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def has_chinese(text: str) -> bool:
    """Return whether a text contains Chinese characters outside code."""
    return bool(_HAN.search(_CODE.sub("", text)))


def _constant(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def messages_in(tree: ast.AST, *, settings: bool = False) -> Iterator[Message]:
    """Yield the messages of a module: what it looks up, docstrings that Dagster shows, and what settings mean."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if any(getattr(each, "id", "") in SHOWN_DOCSTRINGS for each in node.decorator_list):
                yield "", inspect.cleandoc(ast.get_docstring(node, clean=False) or "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in LOOKUPS and node.args and _constant(node.args[0]):
                given = node.args[2:] if node.func.id == "translated" else node.args[1:]
                yield _constant(given[0]) if given else "", _constant(node.args[0])
            elif settings and node.func.id == "Field":
                described = next((each.value for each in node.keywords if each.arg == "description"), None)
                if _constant(described):
                    yield "", _constant(described)


def help_messages() -> Iterator[Message]:
    """Yield the texts of ``--help``, and Typer's own."""
    for each in with_help(typer.main.get_command(app)):
        if each.help:
            yield "", each.help
    for name in TYPER_TEXTS:
        yield "", getattr(rich_utils, name)


def all_messages() -> set[Message]:
    """Return every message of the package."""
    found = set(help_messages())
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= set(messages_in(tree, settings=path.name.endswith("settings.py")))
    return found


def read_catalogue() -> Catalog:
    """Return the catalogue as Babel reads it."""
    with CATALOGUE.open("rb") as file:
        return read_po(file, locale="zh_CN")


def main() -> None:
    """Write the catalogue anew."""
    known = read_catalogue()
    catalogue = Catalog(locale="zh_CN")
    for context, message in sorted(all_messages(), key=lambda each: each[::-1]):
        old = known.get(message, context or None)
        catalogue.add(message, old.string if old is not None else "", context=context or None)
    with CATALOGUE.open("wb") as file:
        file.write(HEADER.encode())
        write_po(file, catalogue, width=0, omit_header=True)
    # A fixed date: equal texts give an equal file.
    catalogue.creation_date = catalogue.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    with CATALOGUE.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalogue)


if __name__ == "__main__":
    main()
