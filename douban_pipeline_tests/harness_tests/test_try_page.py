"""The figures that docs/try.md shows are compared with those of a demo."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from douban_pipeline_tests.harness.try_page import PAGE, main


def test_a_figure_that_the_demo_did_not_print_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^│.*│$|^\d+ logged changes$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) > 5
    said = tmp_path / "demo.txt"
    said.write_text("\n".join(["This run", *shown]), encoding="utf-8")
    assert main([str(said)]) == 0
    said.write_text("\n".join(["This run", *shown[1:]]), encoding="utf-8")
    assert main([str(said)]) == 1
    assert f"docs/try.md: {shown[0]} is not what the demo printed" in capsys.readouterr().err
