"""The language of Dagster's pages and of the command line: English, as the code has it, or Chinese from the catalogue.

Which one is shown is decided when a text is looked up, for descriptions when the definitions are loaded, so code
locations must be reloaded after the setting is changed. The pages are Chinese unless the setting says otherwise; the
terminal follows its locale. ``make messages`` keeps the catalogue in step with the code.
"""

from __future__ import annotations

import gettext
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from douban_pipeline.core.environment import BASE_PREFIX, environment

Language = Literal["zh", "en"]
VARIABLE = f"{BASE_PREFIX}LANGUAGE"
LOCALES = Path(__file__).parents[1] / "locale"
"""Where the compiled catalogue stands beside its source; both are committed, and ``make messages`` writes both."""

F = TypeVar("F", bound=Callable[..., Any])


def chosen_language(environment: Mapping[str, str | None]) -> Language | None:
    """Return the language set in an environment, None if unset or invalid; `check` reports invalid values."""
    given = (environment.get(VARIABLE) or "").strip().lower()
    return "en" if given == "en" else "zh" if given == "zh" else None


@cache
def language() -> Language:
    """Return the language of Dagster's pages: `DOUBAN_PIPELINE_LANGUAGE`, from the environment or ``.env``; Chinese."""
    return chosen_language(environment()) or "zh"


@cache
def terminal_language() -> Language:
    """Return the language of the command line: `DOUBAN_PIPELINE_LANGUAGE`, else the locale's; by default English.

    An output that cannot show Chinese gets English, whatever they say.
    """
    try:
        "中".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return "en"
    return chosen_language(environment()) or locale_language(os.environ)


def locale_language(variables: Mapping[str, str]) -> Language:
    """Return the language of the locale, from the first of ``LC_ALL``, ``LC_MESSAGES`` and ``LANG`` that is set."""
    named = next((given for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (given := variables.get(name))), "")
    return "zh" if named.lower().startswith("zh") else "en"


_READER: ContextVar[Language | None] = ContextVar("reader", default=None)


def reader_language() -> Language:
    """Return the language of who reads what is written now: that of `read_in`; without it Chinese, as on our pages."""
    return _READER.get() or "zh"


@contextmanager
def read_in(wanted: Language) -> Iterator[None]:
    """Set the language of who reads in a block, in this thread: of the command line's texts for readers of a page, and
    of texts for people (`reader_text`) for the command line."""
    token = _READER.set(wanted)
    try:
        yield
    finally:
        _READER.reset(token)


def terminal_text(message: str, context: str = "") -> str:
    """Return an English text in the language of the command line, or of `read_in`.

    Args:
        message: The text, with values in braces that ``format`` replaces in what is returned.
        context: Where it is used, if the same words have another translation elsewhere.
    """
    return translated(message, _READER.get() or terminal_language(), context)


def page_text(message: str, context: str = "") -> str:
    """Return an English text in the language of the pages; see `terminal_text`."""
    return translated(message, language(), context)


def reader_text(message: str, context: str = "") -> str:
    """Return an English text that pages and commands share, in the language of who reads; see `terminal_text`."""
    return translated(message, reader_language(), context)


def translatable(text: str) -> str:
    """Return a text unchanged: marks what is looked up where it is used."""
    return text


def page_docstring(function: F) -> F:
    """Decorate a function of which Dagster shows the docstring: put it in the language of the pages."""
    if language() == "zh":
        function.__doc__ = translated(inspect.cleandoc(function.__doc__ or ""), "zh")
    return function


def translated(message: str, wanted: Language, context: str = "") -> str:
    """Return a text in a language; what the catalogue does not have stays English."""
    if wanted == "en" or not message:  # the catalogue's header is what it has for an empty text
        return message
    return catalogue().pgettext(context, message) if context else catalogue().gettext(message)


@cache
def catalogue() -> gettext.NullTranslations:
    """Return the Chinese texts by the English ones."""
    return gettext.translation("douban_pipeline", LOCALES, ["zh_CN"])
