"""Outside text in a spreadsheet's cells: shown as it is and never calculated."""

from __future__ import annotations

FORMULA_SIGNS = tuple("=+-@＝＋－＠")
"""What a cell begins with that a spreadsheet calculates."""

_SIGNS = (*FORMULA_SIGNS, "\t", "\r", "\n")


def protected(text: str) -> str:
    """Return ``text`` as a spreadsheet shows it and never calculates it: what looks like a formula gets a ``'``."""
    line = " ".join(text.replace("\0", " ").split())
    # One that begins with ' already gets another, so that taking one away gives back what was there.
    return f"'{line}" if line.startswith((*FORMULA_SIGNS, "'")) or text.startswith(_SIGNS) else line


def unprotected(text: str) -> str:
    """Return what `protected` was given, spaces aside."""
    line = text.strip()
    return line[1:] if line.startswith("'") else line
