"""Prints the manual's table of simulated readers: `python -m douban_pipeline_tests.douban.intros.measured`.

Each text is read as in production, by the messages and the checks of `second_reading`; only the model is simulated.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from random import Random

from douban_pipeline.douban.intros.second_reading import MEASURED
from douban_pipeline_tests.douban.intros.readers import READERS, Case, cases, holds_invention, reading, written


def outcome(name: str, texts: Iterable[Case]) -> tuple[int, int, int]:
    """Return what becomes of texts with a reader, as `Measured` counts it: written, lost, bare."""
    random, through, lost, bare = Random(7), 0, 0, 0
    for case in texts:
        found = reading(case, READERS[name], random)
        text = written(case, found)
        through += bool(case.kind) and holds_invention(case, text)
        lost += not case.kind and text != case.text
        bare += bool(case.kind) and not any(each.problem for each in found.statements)
    return through, lost, bare


def table() -> str:
    """Return the table in Markdown, in the order of `MEASURED`; in brackets without the false statements."""
    parts = {
        "at hand": [case for case in cases() if not case.kept],
        "kept aside": [case for case in cases() if case.kept and case.story <= 60],
        "written last": [case for case in cases() if case.story > 60],
    }
    sizes = {part: Counter(bool(case.kind) for case in listed) for part, listed in parts.items()}
    lines = [
        "| reader | "
        + " | ".join(f"{part}: {sizes[part][True]} inventions, {sizes[part][False]} faithful" for part in parts)
        + " | all |",
        "|--|" + "--|" * (len(parts) + 1),
    ]
    for name, measured in MEASURED.items():
        found = [outcome(name, listed) for listed in parts.values()]
        total = tuple(map(sum, zip(*found, strict=True)))
        cells = " | ".join(f"{through} ({bare}) written, {lost} lost" for through, lost, bare in (*found, total))
        lines.append(f"| {name}（{measured.reader}） | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
