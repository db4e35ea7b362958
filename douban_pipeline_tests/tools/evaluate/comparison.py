"""Comparison of two evaluations of the same rows: which ones improved, regressed or are unchanged."""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from douban_pipeline.douban.evidence.added_facts import TitleFacts
from douban_pipeline.matching import Status
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import FormatError, GoldRow, Key, filled_lines
from douban_pipeline_tests.tools.evaluate.metrics import SHOWN

PREDICTIONS = "predictions.jsonl"


class Grade(enum.IntEnum):
    """Quality of a row's result; higher is better."""

    WRONG = 0
    """Linked to a wrong subject."""
    MISSED = 1
    """Not linked, and the true subject is not shown to a reviewer."""
    DEEP = 2
    """In review, with the true subject below the first five candidates."""
    SHOWN = 3
    """In review, with the true subject among the first five candidates."""
    TOP = 4
    """In review, with the true subject first; or in review where no candidate is true."""
    RIGHT = 5
    """Linked to its subject; or neither linked nor in review where it has none."""


_WITH_TRUTH = {
    Grade.WRONG: "linked wrongly",
    Grade.MISSED: "truth not shown",
    Grade.DEEP: "review, truth below the first five",
    Grade.SHOWN: "review, truth among the first five",
    Grade.TOP: "review, truth on top",
    Grade.RIGHT: "linked rightly",
}
_WITHOUT = {Grade.WRONG: "linked wrongly", Grade.TOP: "review, nothing fits", Grade.RIGHT: "left alone"}


def grade_name(gold: GoldRow, grade: Grade) -> str:
    """Return the name of a grade in reports."""
    if gold.trap is not None and grade is Grade.RIGHT:
        return "not linked to the trap"
    return (_WITHOUT if gold.expected is None else _WITH_TRUTH)[grade]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of ``predictions.jsonl``."""

    verdict: str
    douban_id: int | None
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GradeChange:
    """A row whose grade changed."""

    result: Result
    earlier: Prediction
    before: Grade
    after: Grade


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All rows of two evaluations.

    Attributes:
        earlier_name: Path of the earlier one, or its profile's name.
        regressed: Rows with a lower grade, the largest loss first.
        improved: Rows with a higher grade, the largest gain first.
        unchanged: Number of rows with the same grade.
        relinked: Number of unchanged rows with another verdict or best candidate.
        added: Number of rows that only this evaluation has.
        gone: Number of rows that only the earlier one has.
    """

    earlier_name: str
    regressed: tuple[GradeChange, ...]
    improved: tuple[GradeChange, ...]
    unchanged: int
    relinked: int
    added: int
    gone: int


def compare_with(earlier: Mapping[Key, Prediction], results: Sequence[Result], name: str) -> RunComparison:
    """Compare ``results`` with an earlier evaluation of the same rows."""
    changes: list[GradeChange] = []
    unchanged = relinked = added = 0
    for result in results:
        before = earlier.get(result.gold.key)
        if before is None:
            added += 1
            continue
        now = prediction_of(result)
        change = GradeChange(result, before, grade(result.gold, before), grade(result.gold, now))
        if change.before is change.after:
            unchanged += 1
            relinked += (before.verdict, before.douban_id) != (now.verdict, now.douban_id)
        else:
            changes.append(change)
    changes.sort(key=lambda change: (change.after - change.before, change.after))
    regressed = tuple(change for change in changes if change.after < change.before)
    improved = tuple(change for change in reversed(changes) if change.after > change.before)
    gone = len(earlier.keys() - {result.gold.key for result in results})
    return RunComparison(name, regressed, improved, unchanged, relinked, added, gone)


def changes(
    without: Sequence[Result], results: Sequence[Result], facts: Mapping[Key, TitleFacts]
) -> Counter[tuple[str, str]]:
    """Count the rows that have added facts by their verdict without and with them; wrong links count as ``WRONG``.

    Args:
        without: The rows' results by their own facts.
        results: The same rows' results with the added facts, in the same order.
        facts: The added facts.
    """
    return Counter(
        (_outcome(before), _outcome(after))
        for before, after in zip(without, results, strict=True)
        if before.gold.key in facts
    )


def _outcome(result: Result) -> str:
    return "WRONG" if result.wrong else result.verdict


def grade(gold: GoldRow, found: Prediction) -> Grade:
    """Return the grade of a row with a prediction."""
    if found.verdict == Status.CONFIRMED:
        return Grade.WRONG if gold.wrong_with(found.douban_id) else Grade.RIGHT
    if gold.trap is not None:
        # Only a link to the trap is judged.
        return Grade.RIGHT
    if gold.expected is None:
        return Grade.TOP if found.verdict == Status.REVIEW else Grade.RIGHT
    if found.verdict != Status.REVIEW or gold.expected not in found.candidates:
        return Grade.MISSED
    place = found.candidates.index(gold.expected)
    return Grade.TOP if place == 0 else Grade.SHOWN if place < SHOWN else Grade.DEEP


def prediction_of(result: Result) -> Prediction:
    """Return a result as a row of ``predictions.jsonl``."""
    return Prediction(result.verdict, result.douban_id, tuple(douban_id for douban_id, _ in result.candidates))


def predictions_of(results: Sequence[Result]) -> dict[Key, Prediction]:
    """Return the predictions of an evaluation, as `read_predictions` would from its file."""
    return {result.gold.key: prediction_of(result) for result in results}


def find_predictions(place: Path, profile: str) -> Path:
    """Return the path of the predictions at ``place``: a file, or a report's folder.

    Raises:
        FormatError: There are none.
    """
    if not place.is_dir():
        return place
    for path in (place / profile / PREDICTIONS, place / PREDICTIONS):
        if path.is_file():
            return path
    raise FormatError(f"{place} holds no earlier report: there is no {PREDICTIONS} in it, nor in {profile}/")


def read_predictions(path: Path) -> dict[Key, Prediction]:
    """Read the predictions of an earlier evaluation.

    Raises:
        FormatError: The file cannot be read, or a line is not a prediction.
    """
    found: dict[Key, Prediction] = {}
    for line, each in filled_lines(path):
        try:
            raw = json.loads(each)
            key = (str(raw["file"]), int(raw["row"]), str(raw.get("gid") or ""))
            best = raw["douban_id"]
            found[key] = Prediction(
                str(raw["verdict"]),
                None if best is None else int(best),
                tuple(int(candidate["douban_id"]) for candidate in raw["candidates"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{path}, line {line}: no prediction: {error!r}"
            raise FormatError(f"{message}; give a {PREDICTIONS} that this command wrote") from None
    return found
