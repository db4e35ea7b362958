"""Draws the answer to a question to the graph as an SVG file, whose names any viewer shows in its own fonts. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.core.language import terminal_language
from douban_pipeline.core.ui.templates import render
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTION, LINK, SENTENCE

_APART = 130
"""Distance of neighbours in pixels: names of ten Chinese characters fit beside each other."""
_SHORTEST = 190
_LONGEST_NAME = 12


@dataclass(frozen=True, slots=True)
class Dot:
    """A person or a title in the picture: name, a note under it, its place, and whether it is a title."""

    name: str
    note: str
    x: float
    y: float
    is_title: bool = False

    @property
    def shown(self) -> str:
        """The name, cut where it would cover others; the whole one is shown under a pointer."""
        return self.name if len(self.name) <= _LONGEST_NAME else f"{self.name[: _LONGEST_NAME - 1]}…"


@dataclass(frozen=True, slots=True)
class _Part:
    """Dots and lines between two of them that belong together, with the size they take."""

    dots: Sequence[Dot]
    lines: Sequence[tuple[int, int]]
    width: float
    height: float


def picture_of(asked: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of an answer as SVG: who belongs to a person or a title around it, ways from left to right.

    Args:
        asked: The question in words.
        names: The names it is about.
        rows: Rows of `questions.ask`, at least one.
    """
    dots: list[Dot] = []
    lines: list[tuple[Dot, Dot]] = []
    top = 60.0
    parts = [*_parts(names, rows)]
    width = max(part.width for part in parts)
    for part in parts:
        left = (width - part.width) / 2
        moved = [Dot(each.name, each.note, each.x + left, each.y + top, each.is_title) for each in part.dots]
        dots += moved
        lines += [(moved[one], moved[other]) for one, other in part.lines]
        top += part.height
    sentence = ATTRIBUTION if terminal_language() == "zh" else SENTENCE
    return render(
        "douban_pipeline.tmdb.graph",
        "picture.svg.j2",
        asked=asked,
        dots=dots,
        lines=lines,
        width=round(width),
        height=round(top + 40),
        sentence=sentence,
        link=LINK,
    )


def _parts(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[_Part]:
    if "path" in rows[0]:
        for row in rows:
            yield _way(row["path"])
        return
    around: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        if "director" in row:
            around.setdefault((row["title"], str(row["day"] or "")[:4]), []).append((row["director"], ""))
        else:
            around.setdefault((names[0], ""), []).append((row["person"], f"× {row['titles']}"))
    for (name, note), others in around.items():
        yield _star(name, note, others, is_title="director" in rows[0])


def _way(names: Sequence[str]) -> _Part:
    dots = [Dot(name, "", _APART * (place + 0.6), 50, bool(place % 2)) for place, name in enumerate(names)]
    return _Part(dots, [(place - 1, place) for place in range(1, len(dots))], _APART * (len(dots) + 0.2), 120)


def _star(name: str, note: str, others: Sequence[tuple[str, str]], *, is_title: bool) -> _Part:
    radius = max(_SHORTEST, _APART * len(others) / (2 * math.pi))
    middle = radius + _APART / 2
    dots = [Dot(name, note, middle, radius + 40, is_title)]
    for place, (other, more) in enumerate(others):
        turned = 2 * math.pi * place / len(others) - math.pi / 2
        dots.append(Dot(other, more, middle + radius * math.cos(turned), radius * (1 + math.sin(turned)) + 40))
    return _Part(dots, [(0, place) for place in range(1, len(dots))], 2 * middle, 2 * radius + 130)
