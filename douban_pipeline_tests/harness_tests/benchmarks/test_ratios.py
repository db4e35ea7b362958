"""What must not get worse did not, in every system; and what counts steps counts the same, time after time."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.benchmarks.measures.ratios import all_ratios, calls, sqlite_steps, statements


@pytest.mark.long
def test_no_ratio_is_a_third_above_what_it_was(tmp_path: Path) -> None:
    figures = all_ratios(tmp_path)
    systems = {figure.name.partition(":")[0] for figure in figures}
    assert systems == {"douban", "feeds", "digest", "tmdb", "comments"}
    worse = [f"{each.name}: {each.value:.2f}, {each.note}" for each in figures if each.value > each.target.most]
    assert not worse


def test_counting_is_the_same_time_after_time(tmp_path: Path) -> None:
    def work() -> None:
        sorted(len(text) for text in ("a", "bb"))

    assert calls(work) == calls(work) > 2
    engine = open_engine(f"sqlite:///{tmp_path / 'steps.sqlite'}")
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT count(*) FROM n"
    found = []
    for most in (1000, 1000, 10_000):
        with sqlite_steps(engine) as steps, statements(engine) as asked, engine.connect() as connection:
            connection.exec_driver_sql(query.format(most)).all()
        found.append((steps.number, asked.number))
    engine.dispose()
    assert found[0] == found[1]
    assert {asked for _, asked in found} == {found[0][1]}
    assert found[0][1] >= 1
    assert 8 < found[2][0] / found[0][0] < 12
