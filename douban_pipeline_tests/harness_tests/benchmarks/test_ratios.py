"""What must not get worse did not, in every system; and what counts steps counts the same, time after time."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline_tests.harness.benchmarks.measures.ratios import all_ratios


@pytest.mark.long
def test_no_ratio_is_a_third_above_what_it_was(tmp_path: Path) -> None:
    figures = all_ratios(tmp_path)
    systems = {figure.name.partition(":")[0] for figure in figures}
    assert systems == {"douban", "feeds", "digest", "tmdb", "comments"}
    worse = [f"{each.name}: {each.value:.2f}, {each.note}" for each in figures if each.value > each.target.most]
    assert not worse
