"""The language of Dagster's pages and of the command line: Chinese or English.

Both texts are given where a thing is declared. Which one is shown is decided when the definitions are loaded, so code
locations must be reloaded after the setting is changed. The pages are Chinese unless the setting says otherwise; the
terminal follows its locale.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, overload

from douban_pipeline.core.environment import BASE_PREFIX, environment

Language = Literal["zh", "en"]
VARIABLE = f"{BASE_PREFIX}LANGUAGE"
_HAN = re.compile("[\u4e00-\u9fff]")
_BETWEEN = " · "
_CODE = re.compile(r"(```.*?```)", re.DOTALL)
_QUOTED = re.compile(r"`[^`]*`")


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
    """Return the language of the command line: `DOUBAN_PIPELINE_LANGUAGE`, else the locale's; by default English."""
    return chosen_language(environment()) or locale_language(os.environ)


def locale_language(variables: Mapping[str, str]) -> Language:
    """Return the language of the locale, from the first of ``LC_ALL``, ``LC_MESSAGES`` and ``LANG`` that is set."""
    named = next((given for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (given := variables.get(name))), "")
    return "zh" if named.lower().startswith("zh") else "en"


def said(chinese: str, english: str) -> str:
    """Return the text in the language of the command line."""
    return chinese if terminal_language() == "zh" else english


@overload
def described(chinese: str, english: str) -> str: ...
@overload
def described(chinese: str) -> str | None: ...
def described(chinese: str, english: str | None = None) -> str | None:
    """Return a description in the language of the pages.

    Without ``english`` it is None in English: Dagster then shows the docstring of the decorated function. Dagster does
    not do that for sensors and schedules, so theirs must be given.
    """
    return chinese if language() == "zh" else english


def has_chinese(text: str) -> bool:
    """Return whether a text contains Chinese characters outside code."""
    return bool(_HAN.search(_QUOTED.sub("", _CODE.sub("", text))))


def one_side(text: str, wanted: Language | None = None) -> str:
    """Return the wanted half of ``中文 · English``, by default the pages'; other texts unchanged."""
    left, between, right = text.partition(_BETWEEN)
    if not between or not has_chinese(left):
        return text
    return left if (wanted or language()) == "zh" else right


def one_language(manual: str, wanted: Language | None = None) -> str:
    """Return one language of a Markdown manual, by default that of the pages.

    Of lines ``中文 · English`` one half is kept; of paragraphs in one language, those in the wanted one. Code and
    markers in braces are kept in both.
    """
    wanted = wanted or language()
    kept = []
    for block in _CODE.split(manual):
        if block.startswith("```"):
            kept.append(block)
            continue
        paragraphs = (_kept(paragraph.strip("\n"), wanted) for paragraph in re.split(r"\n{2,}", block))
        kept.append("\n\n".join(paragraph for paragraph in paragraphs if paragraph))
    return "\n\n".join(block for block in kept if block)


def _kept(paragraph: str, wanted: Language) -> str:
    lines = [one_side(line, wanted) for line in paragraph.splitlines()]
    split = "\n".join(lines)
    markers = " ".join(re.findall(r"\{\w+\}", split))
    plain = re.sub(r"\{\w+\}", "", _QUOTED.sub("", split)).strip(" \n：:-*")
    if not plain or has_chinese(plain) == (wanted == "zh"):
        return split
    return markers
