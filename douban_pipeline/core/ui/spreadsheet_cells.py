"""Outside text in spreadsheet cells: shown unchanged and never evaluated."""

from __future__ import annotations

FORMULA_SIGNS = tuple("=+-@＝＋－＠")
"""First characters of cells that a spreadsheet evaluates."""

_SIGNS = (*FORMULA_SIGNS, "\t", "\r", "\n")


def protected(text: str) -> str:
    """Return ``text`` so that a spreadsheet shows it and does not evaluate it: a possible formula gets a ``'``."""
    line = " ".join(text.replace("\0", " ").split())
    # A text that already begins with ' gets another one, so that removing one restores the original.
    return f"'{line}" if line.startswith((*FORMULA_SIGNS, "'")) or text.startswith(_SIGNS) else line


def unprotected(text: str) -> str:
    """Return the original of a text from `protected`, except for spaces around it."""
    line = text.strip()
    return line[1:] if line.startswith("'") else line
