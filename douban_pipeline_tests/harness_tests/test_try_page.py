"""The figures that docs/try.md shows are compared with those of a demo."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from douban_pipeline_tests.harness.try_page import PAGE, differences, main

PRINTED = (
    "library  x\n        This run\n│ due       │ 3  │\n│ not found │ 1  │\n│ intros │ 2 │\n     4 logged changes   \n"
)
EXCERPT = "# Trying\n\n```text\nThis run\n│ due  │ {due}   │\n│ not found │ 1 │\n  …\n4 logged changes\n```\n"


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        (EXCERPT.format(due=3), []),
        (EXCERPT.format(due=33), ["│ due  │ 33   │"]),
        (EXCERPT.format(due=3).replace("4 logged", "5 logged"), ["5 logged changes"]),
        ("# Trying", ["no excerpt of the demo"]),
    ],
)
def test_every_figure_of_the_page_is_one_that_the_demo_printed(page: str, wrong: list[str]) -> None:
    assert list(differences(page, PRINTED)) == wrong


def test_a_figure_that_the_demo_did_not_print_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^│.*│$|^\d+ logged changes$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) > 5
    said = tmp_path / "demo.txt"
    said.write_text("\n".join(["This run", *shown]), encoding="utf-8")
    assert main([str(said)]) == 0
    said.write_text("\n".join(["This run", *shown[1:]]), encoding="utf-8")
    assert main([str(said)]) == 1
    assert f"docs/try.md: {shown[0]} is not what the demo printed" in capsys.readouterr().err
