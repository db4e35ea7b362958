"""What others changed in the CMS in many videos: a question, asked once and answered once, that stops nothing."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.cleared_ids import MANY, ClearedIdsAnswer, settle
from douban_pipeline.douban.chain.sync.cms_edits import CmsEditsAnswer, asked_edits, settle_edits
from douban_pipeline.douban.chain.sync.guards import overwritten
from douban_pipeline.douban.reports.health import alerts
from douban_pipeline.douban.reports.health.causes import MEASURED, current_causes, guard_cause
from douban_pipeline.douban.reports.health.metrics import measure
from douban_pipeline.douban.reports.lists.last_day import last_day, troubles
from douban_pipeline.douban.reports.lists.statistics import statistics
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.douban.chain.due.taking import taken
from douban_pipeline_tests.harness.fixtures.library import video

VIDEOS = range(1, MANY + 11)


@pytest.fixture
def library(shared_library):
    """Sixty videos, of which the areas and ids were written a minute ago."""
    library = shared_library.renewed([video(vod_id, vod_area="") for vod_id in VIDEOS])
    link = {"douban_review_status": "CONFIRMED", "douban_id_source": "auto"}
    changes = [
        Change(
            vod_id,
            action="link",
            old={"vod_area": "", "vod_douban_id": 0},
            new={"vod_area": "国", "vod_douban_id": 1_000_000 + vod_id},
            state=link | {"vod_douban_id": 1_000_000 + vod_id},
        )
        for vod_id in VIDEOS
    ]
    assert {outcome.state for outcome in library.change_log().write(changes)} == {ChangeState.APPLIED}
    library.clock.advance(minutes=1)
    return library


def edit(library, vod_ids=VIDEOS, **columns):
    """Change columns as the CMS's batch edit does, which leaves `vod_time` alone."""
    library.execute(sa.update(library.services.cms.vod).where(sa.column("vod_id").in_(vod_ids)).values(**columns))


def ask(library):
    """Measure, and return what is asked on the front page."""
    services = library.services
    alerts.settle(services, MEASURED, current_causes(services, measure(services), None))
    return [each for each in troubles(services, statistics(services)) if each.title.endswith("是有意的吗？")]


def answer(library, said):
    with reading(library.engine) as connection:
        _, edits = asked_edits(library.services, connection)
    return settle_edits(library.change_log("answer"), edits, said, "王", dry_run=False)


def differences(library):
    with reading(library.engine) as connection:
        return len(list(overwritten(library.services, connection)))


def test_a_batch_edit_is_one_question_that_stays_until_it_is_answered(library):
    edit(library, vod_area="國")
    [asked] = ask(library)
    assert asked.title == "60 部影片的 地区 在 CMS 中被改（不是本程序），是有意的吗？"
    assert "settle_cms_edits" in asked.detail
    assert asked.address.endswith("/jobs/settle_cms_edits/playground")
    library.clock.advance(days=3)
    assert [each.title for each in ask(library)] == [asked.title], "as old as the writes are by now"
    assert len(alerts.open_alerts(library.services)) == 1
    assert answer(library, CmsEditsAnswer.keep) == []
    assert ask(library) == []
    assert [library.row(vod_id)["vod_area"] for vod_id in VIDEOS] == ["國"] * len(VIDEOS)


def test_an_answer_is_given_once_and_a_later_edit_is_asked_about(library):
    edit(library, vod_area="國")
    assert ask(library)
    answer(library, CmsEditsAnswer.keep)
    assert (ask(library), differences(library)) == ([], 0)
    edit(library, vod_area="邦")
    assert [each.title[:2] for each in ask(library)] == ["60"]


def test_what_was_not_intended_is_written_back_and_can_be_reverted(library):
    edit(library, vod_area="國")
    edit(library, [1], vod_lock=1)
    ask(library)
    results = answer(library, CmsEditsAnswer.restore)
    assert sum(bool(item.restored) for item in results) == len(VIDEOS) - 1
    assert [library.row(vod_id)["vod_area"] for vod_id in (1, 2, 60)] == ["國", "国", "国"]
    assert (ask(library), differences(library)) == ([], 0)


def test_values_that_are_back_ask_nothing(library):
    edit(library, vod_area="國")
    assert ask(library)
    edit(library, vod_area="国")
    assert ask(library) == []


@pytest.mark.parametrize(
    ("edited", "asked"), [(range(1, 10), 0), (range(1, 13), 0), (range(1, 14), 1)], ids=["few", "a fifth", "more"]
)
def test_a_few_edits_are_none(library, edited, asked):
    edit(library, edited, vod_area="國")
    assert len(ask(library)) == asked
    assert differences(library) == len(edited)


def test_columns_that_are_changed_at_once_are_one_question(library):
    edit(library, vod_area="國", vod_douban_id=77)
    assert [each.title for each in ask(library)] == [
        "60 部影片的 地区、豆瓣 ID 在 CMS 中被改（不是本程序），是有意的吗？"
    ]


@pytest.mark.parametrize("said", ClearedIdsAnswer)
def test_ids_that_were_emptied_are_asked_about_once(library, said):
    """67 videos are neither matched nor written until it is answered: the front page must say so, and only so."""
    edit(library, vod_douban_id=0)
    library.intake.sweep(0, 1)
    assert not taken(library, shards=range(64), limit=100)
    [asked] = ask(library)
    assert asked.title == "60 部影片的豆瓣 ID 在 CMS 中一并被清空（不是本程序），是有意的吗？"
    assert asked.address.endswith("/jobs/settle_cleared_ids/playground")
    settle(library.services, said, "王", dry_run=False)
    assert (ask(library), differences(library)) == ([], 0)
    assert "人工" not in "".join(deed.sentence for deed in last_day(library.services)), "nothing was written"


@pytest.mark.parametrize(
    ("asset", "said"),
    [
        ("due_videos", "这次运行没有写入"),
        ("scored_matches", "这次运行没有写入"),
        ("synced_fields", "本次已写入的内容仍在"),
        ("ai_intros", "本次已写入的内容仍在"),
    ],
)
def test_only_a_guard_before_the_writing_says_that_nothing_was_written(asset, said):
    assert said in guard_cause(asset, "check", "1 处不符合", "04").detail
