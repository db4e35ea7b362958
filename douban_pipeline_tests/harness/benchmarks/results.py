"""What a run of the benchmarks found, and how it is kept: one JSON file with everything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target

FORMAT = 1


class ResultsError(Exception):
    """A file holds no results of the benchmarks; the message names it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one measure went on one library.

    Attributes:
        measure: Its name.
        size: Videos in the library; 0 for a measure that needs none.
        seconds: How long it took with everything around it.
        figures: What it found; empty if it failed.
        failure: The end of what a failed one said; empty if it went well.
        changed: Tables that it should have left as they were, and did not (looked at in small libraries only).
    """

    measure: str
    size: int
    seconds: float
    figures: tuple[Figure, ...] = ()
    failure: str = ""
    changed: tuple[str, ...] = ()


@dataclass(slots=True)
class Results:
    """Everything a run found, and where.

    Attributes:
        started_at: When it began (UTC).
        seed: What the libraries were generated from.
        sizes: Videos in them, the smallest first.
        machine: What it ran on, see `machine.describe`.
        outcomes: In the order in which they came.
        preparation: Seconds that making each library took, by its size; one that was there already took little.
    """

    started_at: datetime
    seed: int
    sizes: tuple[int, ...]
    machine: Mapping[str, str]
    outcomes: list[Outcome] = field(default_factory=list)
    preparation: dict[int, float] = field(default_factory=dict)

    @property
    def failed(self) -> list[Outcome]:
        """Those that came to no result."""
        return [outcome for outcome in self.outcomes if outcome.failure]


def write_results(path: Path, results: Results) -> None:
    """Write ``results`` to ``path``, whole or not at all."""
    content = {"format": FORMAT, **asdict(results), "started_at": results.started_at.isoformat()}
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    half.replace(path)


def read_results(path: Path) -> Results:
    """Return the results that `write_results` wrote.

    Raises:
        ResultsError: The file cannot be read, or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ResultsError(f"{path} has format {content['format']}, this release reads {FORMAT}")
        return Results(
            started_at=datetime.fromisoformat(content["started_at"]),
            seed=content["seed"],
            sizes=tuple(content["sizes"]),
            machine=content["machine"],
            outcomes=[_outcome(item) for item in content["outcomes"]],
            preparation={int(size): seconds for size, seconds in content["preparation"].items()},
        )
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} holds no results of the benchmarks: {error!r}") from error


def figures_from(items: Sequence[Mapping[str, Any]]) -> tuple[Figure, ...]:
    """Return figures that were written as JSON."""
    return tuple(Figure(**{**item, "target": Target(**item["target"]) if item["target"] else None}) for item in items)


def _outcome(item: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**item, "figures": figures_from(item["figures"]), "changed": tuple(item["changed"])})
