"""This evaluation against an earlier one: which rows fare better, worse, or as before."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from douban_pipeline.evaluation.formats import FormatError, GoldRow, filled_lines
from douban_pipeline.evaluation.metrics import SHOWN, link_is_wrong
from douban_pipeline.evaluation.runner import Result

PREDICTIONS = "predictions.jsonl"

Key = tuple[str, int, str]
"""File, line and own id of a row; a row whose file was rewritten is not taken for another."""


class Grade(enum.IntEnum):
    """How well a row fares; more is better."""

    WRONG = 0
    """Linked to a subject that it is not."""
    MISSED = 1
    """Nobody is shown the truth."""
    DEEP = 2
    """A reviewer is shown the truth, but not among the first five."""
    SHOWN = 3
    """A reviewer is shown the truth among the first five."""
    TOP = 4
    """A reviewer is shown the truth on top; or has to refuse candidates where none is true."""
    RIGHT = 5
    """Linked to its subject; or left alone where it has none."""


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
    """Return a grade as people read it."""
    if gold.trap is not None and grade is Grade.RIGHT:
        return "not linked to the trap"
    return (_WITHOUT if gold.expected is None else _WITH_TRUTH)[grade]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a row of ``predictions.jsonl`` says."""

    verdict: str
    douban_id: int | None
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GradeChange:
    """A row that fares otherwise than before."""

    result: Result
    earlier: Prediction
    before: Grade
    after: Grade


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All rows of two evaluations.

    Attributes:
        earlier_name: Where the earlier one was read, or its profile's name.
        regressed: Rows that fare worse, the worst first.
        improved: Rows that fare better, the best first.
        unchanged: Rows that fare as before.
        relinked: Those of them whose verdict or best candidate is another one.
        added: Rows only this evaluation has.
        gone: Rows only the earlier one has.
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
        before = earlier.get(_key(result.gold))
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
    gone = len(earlier.keys() - {_key(result.gold) for result in results})
    return RunComparison(name, regressed, improved, unchanged, relinked, added, gone)


def grade(gold: GoldRow, found: Prediction) -> Grade:
    """Return how well a row fares with a prediction."""
    if found.verdict == "CONFIRMED":
        return Grade.WRONG if link_is_wrong(gold, found.douban_id) else Grade.RIGHT
    if gold.trap is not None:
        # What else becomes of it is not judged.
        return Grade.RIGHT
    if gold.expected is None:
        return Grade.TOP if found.verdict == "REVIEW" else Grade.RIGHT
    if found.verdict != "REVIEW" or gold.expected not in found.candidates:
        return Grade.MISSED
    place = found.candidates.index(gold.expected)
    return Grade.TOP if place == 0 else Grade.SHOWN if place < SHOWN else Grade.DEEP


def prediction_of(result: Result) -> Prediction:
    """Return what ``predictions.jsonl`` says of a result."""
    return Prediction(result.verdict, result.douban_id, tuple(douban_id for douban_id, _ in result.candidates))


def predictions_of(results: Sequence[Result]) -> dict[Key, Prediction]:
    """Return the predictions of an evaluation, as `read_predictions` would from its file."""
    return {_key(result.gold): prediction_of(result) for result in results}


def find_predictions(place: Path, profile: str) -> Path:
    """Return the predictions at ``place``: a file, or a report's folder.

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
        FormatError: The file cannot be read, or a line is no prediction.
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


def _key(gold: GoldRow) -> Key:
    return gold.file, gold.row, gold.gid or ""
