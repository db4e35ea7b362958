"""Jobs that take in, sweep and prune can say beforehand what they would do, and write nothing then."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.chain.due.intake import Intake
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of


@pytest.fixture
def scenario(stage):
    """Two videos that are known; since then one was changed, one deleted, and one is new."""
    found = stage([row_of(RIVER, 4), row_of(WHALE, 5), video(6)], FILMS)
    found.library.set_cms(4, vod_year="1999", vod_time=2_000_000_000)
    found.library.execute("DELETE FROM mac_vod WHERE vod_id = 6")
    found.library.add(video(7, vod_time=2_000_000_000, vod_director="从未出现过"))
    return found


@pytest.mark.parametrize(
    ("job", "op", "counts"),
    [
        ("initialise_library", "initialise", (1, 1, 0)),
        ("take_in_changes", "take_in", (1, 1, 0)),
        ("sweep_library", "sweep", (1, 1, 1)),
    ],
)
def test_what_would_be_taken_in_is_counted_as_it_is_then_taken_in(scenario, job, op, counts):
    before = scenario.library.states()
    shown = scenario.launch(job)
    assert shown.output["dry_run"] is True, "unless it is told to write"
    assert shown.success
    assert (shown.output["new"], shown.output["changed"], shown.output["gone"]) == counts
    assert scenario.library.states() == before
    done = scenario.launch(job, {op: {"config": {"dry_run": False}}})
    assert (done.output["new"], done.output["changed"], done.output["gone"]) == counts
    preview = {name: value for name, value in shown.output.items() if name != "dry_run"}
    assert preview.items() <= done.output.items()
    assert 7 in scenario.library.states()


def test_a_library_without_our_tables_would_be_new_as_a_whole(shared_library):
    library = shared_library.renewed([video(1), video(2, vod_director="无名氏甲")])
    report = Intake.of(library.services, dry_run=True, blank=True).initialise()
    assert (report.seen, report.new, report.changed) == (2, 2, 0)
    assert report.names == 1
