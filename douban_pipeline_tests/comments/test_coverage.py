"""Whether `plans/comments.md` has every part of the plan once, and names files that there are."""

from __future__ import annotations

import re
from pathlib import Path

from douban_pipeline_tests.test_plan_coverage import PACKAGE, PAGE, STATES

ROWS = re.findall(
    r"^\| (\d+) [^|]+ \| ([^|]+) \| (.+) \|$", (PAGE.parent / "comments.md").read_text(encoding="utf-8"), re.M
)


def test_every_part_stands_there_once_with_a_state():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 91))
    assert {state for _, state, _ in ROWS} <= set(STATES)


def test_what_is_built_names_files_that_there_are():
    missing, silent = [], []
    for number, state, where in ROWS:
        named = [Path(name) for name in re.findall(r"`([\w/]+\.py)`", where)]
        missing += [f"{number}: {name}" for name in named if not (PACKAGE / "comments" / name).is_file()]
        silent += [number] if not named and state != "not" and "make bench" not in where else []
    assert (missing, silent) == ([], [])
