"""The language in which Dagster's pages and the command line speak to the site's people: Chinese or English.

Both texts stand where a thing is declared. Which is shown is asked when the definitions are loaded, so a change of the
setting needs the code locations to be reloaded. The pages are Chinese unless the setting says otherwise; a terminal
speaks as its locale does.
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
    """Return the language that an environment chooses, None for none. `check` refuses values that are none of both."""
    given = (environment.get(VARIABLE) or "").strip().lower()
    return "en" if given == "en" else "zh" if given == "zh" else None


@cache
def language() -> Language:
    """Return the language of Dagster's pages: `DOUBAN_PIPELINE_LANGUAGE`, from the environment or ``.env``; Chinese."""
    return chosen_language(environment()) or "zh"


@cache
def terminal_language() -> Language:
    """Return the language of the command line: `DOUBAN_PIPELINE_LANGUAGE`, or what the locale's is; English."""
    return chosen_language(environment()) or locale_language(os.environ)


def locale_language(variables: Mapping[str, str]) -> Language:
    """Return the language of the locale that ``LC_ALL``, ``LC_MESSAGES`` and ``LANG`` name, the first of them."""
    named = next((given for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (given := variables.get(name))), "")
    return "zh" if named.lower().startswith("zh") else "en"


def said(chinese: str, english: str) -> str:
    """Return a message of the command line in its language."""
    return chinese if terminal_language() == "zh" else english


@overload
def described(chinese: str, english: str) -> str: ...
@overload
def described(chinese: str) -> str | None: ...
def described(chinese: str, english: str | None = None) -> str | None:
    """Return a description in the language of the pages.

    Without ``english`` it is None in English: Dagster then shows the docstring of what is decorated. Sensors and
    schedules have none shown, so theirs is given.
    """
    return chinese if language() == "zh" else english


def has_chinese(text: str) -> bool:
    """Return whether a text has Chinese characters outside code."""
    return bool(_HAN.search(_QUOTED.sub("", _CODE.sub("", text))))


def one_side(text: str, wanted: Language | None = None) -> str:
    """Return the wanted half of ``中文 · English``, by default that of the pages; a text of one language as it is."""
    left, between, right = text.partition(_BETWEEN)
    if not between or not has_chinese(left):
        return text
    return left if (wanted or language()) == "zh" else right


def one_language(manual: str, wanted: Language | None = None) -> str:
    """Return what a manual in Markdown says in one language, by default that of the pages.

    Of lines ``中文 · English`` the half is kept; of paragraphs in one language, those of the wanted one. Code and
    markers in braces belong to both.
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
