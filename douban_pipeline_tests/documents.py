"""Texts of the top level and of the pages, and what stands in them."""

from __future__ import annotations

import re

from douban_pipeline_tests.harness.reference import PROJECT


def text_of(path: str) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


def fences(markdown: str) -> list[tuple[str, str]]:
    """Return the fenced blocks as language and text; those within a list lose its indentation."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", markdown, re.DOTALL | re.MULTILINE)
    return [(language, re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)) for indent, language, body in found]


def fenced(markdown: str, language: str) -> list[str]:
    return [body for found, body in fences(markdown) if found == language]


def outline(markdown: str) -> list[str]:
    prose = re.sub(r"^ *```.*?^ *```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^#+(?= )", prose, re.MULTILINE)


def rows_of(markdown: str, first_cell: str) -> list[list[str]]:
    """Return the table rows whose first cell, which is code, matches ``first_cell``; code marks dropped from it."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", markdown, re.M)]
    return [row for row in rows if re.fullmatch(rf"`{first_cell}`.*", row[0])]


def code_in(markdown: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", markdown) + [
        line for language, body in fences(markdown) if language == "sh" for line in body.splitlines()
    ]


def targets() -> set[str]:
    phony = re.search(r"^\.PHONY: (.*)$", text_of("Makefile"), re.MULTILINE)
    assert phony is not None
    return set(phony.group(1).split())


def rows_of_any(markdown: str, variable: str) -> list[tuple[str, str]]:
    return re.findall(rf"\| `({variable})` \| `([^`]+)` \|", markdown)
