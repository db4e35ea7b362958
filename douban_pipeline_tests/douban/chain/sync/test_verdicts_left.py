"""A verdict never waits for a task that is closed."""

from __future__ import annotations

import zlib

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.sync import writer
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of, subject


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


@pytest.mark.parametrize("body", [None, b"no JSON", b'{"code": 1009, "msg": "need_login"}'])
def test_a_link_whose_archived_answer_cannot_be_read_any_more_is_matched_again(stage, body):
    scenario = stage([row_of(RIVER, 4), row_of(WHALE, 68)], FILMS)
    assert scenario.run(4, steps=("due_videos", "search_candidates", "scored_matches")).success
    candidate, snapshot = scenario.library.tables.candidate, scenario.library.tables.snapshot
    [row] = scenario.library.query(sa.select(candidate.c.snapshot_id).where(candidate.c.douban_id == RIVER["id"]))
    this = snapshot.c.snapshot_id == row["snapshot_id"]
    if body is None:
        scenario.library.execute(sa.delete(snapshot).where(this))
    else:
        scenario.library.execute(sa.update(snapshot).where(this).values(body=zlib.compress(body), sha256="other"))

    assert scenario.run(4).success
    # The other video is written all the same, and no failure is counted.
    assert scenario.cms(68, "vod_douban_id") == (WHALE["id"],)
    assert scenario.cms(4, "vod_douban_id") == (0,)
    assert scenario.task(4)["status"] == "SKIP"
    assert scenario.library.state(4)["douban_sync_fail_count"] == 0
    assert ("refused", "判定所依据的存档应答已不在或无法解析，将重新匹配") in verdicts(scenario)

    scenario.clock.advance(hours=2)
    assert scenario.play(4).success
    assert scenario.cms(4, "vod_douban_id") == (RIVER["id"],)


@pytest.mark.parametrize("together", [True, False], ids=["in one chunk", "in one each"])
def test_of_two_videos_with_different_numbers_that_were_judged_together_one_is_linked(stage, monkeypatch, together):
    if not together:
        monkeypatch.setattr(writer, "_CHUNK", 1)
    sequel = subject(90_000_301, "铁壁将军2", 2021, aka=["铁壁将军：寒冬战士"], original_title="Iron General: Winter")
    rows = [row_of(sequel, 4), row_of(sequel, 68, vod_name="铁壁将军：寒冬战士"), row_of(sequel, 132)]
    scenario = stage(rows, [sequel])
    assert scenario.play(4).success
    # As when they are judged one after the other: the first to be written, and two records of one name are normal.
    linked = {vod_id for vod_id in (4, 68, 132) if scenario.cms(vod_id, "vod_douban_id") == (sequel["id"],)}
    assert linked in ({4, 132}, {68})
    assert ("refused", "该条目已关联到季数不同的另一部影片") in verdicts(scenario)

    scenario.clock.advance(hours=2)
    assert scenario.play(4).success
    for vod_id in {4, 68, 132} - linked:
        assert scenario.library.state(vod_id)["douban_review_status"] == "REVIEW"
        assert scenario.verdicts(vod_id)[-1]["reasons"] == ["LINKED_ELSEWHERE"]
