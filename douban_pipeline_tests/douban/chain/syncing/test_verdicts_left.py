"""A verdict never waits for a task that is closed."""

from __future__ import annotations

import sqlalchemy as sa

from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, row_of


def verdicts(scenario):
    table = scenario.library.tables.verdict
    rows = scenario.library.query(sa.select(table.c.state, table.c.state_reason).order_by(table.c.verdict_id))
    return [tuple(row.values()) for row in rows]


def judged(stage):
    """Return video 4, confirmed, and not written yet."""
    scenario = stage([row_of(RIVER, 4)], FILMS)
    assert scenario.run(4, steps=("due_videos", "search_candidates", "scored_matches")).success
    [(state, _)] = verdicts(scenario)
    assert state == "pending"
    return scenario


def test_a_video_that_was_deleted_before_its_link_was_written(stage):
    scenario = judged(stage)
    scenario.library.execute(sa.delete(scenario.library.cms.vod))
    assert scenario.play(4).success
    assert verdicts(scenario) == [("refused", "影片已从 CMS 中删除")]
    assert scenario.task(4)["status"] == "SKIP"


def test_a_category_that_fell_out_of_scope_before_the_link_was_written(stage):
    scenario = judged(stage)
    type_id = scenario.library.state(4)["type_id"]
    assert scenario.under(excluded_type_ids={type_id}).play(4).success
    assert verdicts(scenario) == [("refused", "分类不在处理范围内")]
    assert scenario.cms(4, "vod_douban_id") == (0,)
