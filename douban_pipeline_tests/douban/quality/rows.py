"""Labelled rows and results made by hand, to be counted on the fingers."""

from __future__ import annotations

from typing import Any

from douban_pipeline.matching import Video
from douban_pipeline_tests.tools.evaluate.labelled_replay import Result
from douban_pipeline_tests.tools.evaluate.labelled_rows import GoldRow

TRUTH = 100
FIELDS = [
    "file",
    "row",
    "gid",
    "verdict",
    "douban_id",
    "score",
    "lead",
    "conflicts",
    "reasons",
    "candidates",
    "requests",
]
"""Fields of a row of predictions.jsonl, in their order."""


def gold(row: int = 1, **changes: Any) -> GoldRow:
    """Return a row of a headline source whose subject is 100, thin unless told otherwise."""
    title, year = changes.pop("title", "青石巷"), changes.pop("year", 2015)
    values: dict[str, Any] = {
        "file": "gold.jsonl",
        "row": row,
        "gid": None,
        "source": "bangumi",
        "label": "gold",
        "tags": (),
        "expected": TRUTH,
        "trap": None,
        "video": Video(row, title, year=year),
        "rich": False,
    }
    return GoldRow(**(values | changes))


def result(row: GoldRow | None = None, verdict: str = "CONFIRMED", best: int | None = TRUTH, **changes: Any) -> Result:
    """Return what became of a row: by default its subject was linked with 90 points."""
    others = changes.pop("others", ())
    score = changes.pop("score", 90.0 if best is not None else None)
    values: dict[str, Any] = {
        "gold": row or gold(),
        "verdict": verdict,
        "douban_id": best,
        "score": score,
        "lead": None,
        "conflicts": (),
        "reasons": () if verdict == "CONFIRMED" else ("BELOW_CONFIRM",),
        "explanation": "年份冲突：差 3 年。",
        "candidates": tuple((each, score or 0.0) for each in (best, *others) if each is not None),
        "titles": {each: f"条目 {each} (2015)" for each in (best, *others) if each is not None},
        "strata": (),
        "requests": 2,
        "truth_titles": "青石巷 (2015)",
    }
    return Result(**(values | changes))


def none_row(row: int = 1, **changes: Any) -> GoldRow:
    """Return a row whose subject is not in the corpus."""
    return gold(row, **({"file": "none.jsonl", "expected": None, "label": "none"} | changes))


def trap_row(row: int = 1, **changes: Any) -> GoldRow:
    """Return a row that must not be linked to 666."""
    return gold(row, **({"file": "traps.jsonl", "expected": None, "trap": 666, "source": "sites"} | changes))
