"""Ids that were cleared in the CMS itself: a person's word, a form that was open too long, or a program."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.cleared_ids import MANY, ClearedIdsAnswer, held_in_bulk, settle
from douban_pipeline.douban.undo.history import histories
from douban_pipeline.douban.undo.history_page import history_page
from douban_pipeline.douban.writes.revert_selection import ChangeSelection, select_changes
from douban_pipeline.douban.writes.reverted_changes import undone_values
from douban_pipeline_tests.douban.chain.due.taking import taken
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, row_of

IDS = range(1, MANY + 11)


@pytest.fixture
def library(shared_library):
    return shared_library.renewed([video(vod_id, vod_douban_id=1_000_000 + vod_id) for vod_id in IDS])


def clear(library, *vod_ids):
    library.execute(sa.update(library.services.cms.vod).where(sa.column("vod_id").in_(vod_ids)).values(vod_douban_id=0))
    return library.intake.sweep(0, 1)


def ruled_out(library, vod_id):
    with reading(library.engine) as connection:
        return undone_values(connection, library.tables, [vod_id]).get(vod_id, {}).get("vod_douban_id", [])


def test_an_id_that_was_cleared_alone_is_ruled_out_and_reviewed(library):
    clear(library, 3)
    state = library.state(3)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (0, "REVIEW")
    assert "1000003 在 CMS 后台被清空：不再自动关联它" in state["douban_review_reason"]
    assert ruled_out(library, 3) == [1_000_003]
    [change] = library.log()
    assert (change["operator"], change["action"], change["state"]) == ("cms", "clear_id", "applied")
    assert library.intake.sweep(0, 1).changed == 0
    assert len(library.log()) == 1


def test_what_was_done_in_the_cms_is_not_ours_to_take_back_with_a_window(library):
    before = library.clock.now()
    clear(library, 3)
    [change] = library.log()
    with reading(library.engine) as connection:
        window = ChangeSelection(since=before - timedelta(days=1))
        assert select_changes(connection, library.tables, window) == []
        [named] = select_changes(connection, library.tables, ChangeSelection(change_ids=(change["change_id"],)))
    assert named.vod_id == 3
    found = histories(library.services, [3], most_events=5)
    page = history_page(found, library.services.settings.zone, library.services.location)
    assert "在 CMS 后台所做，此处只作记录" in page
    assert "规则" not in page


def test_a_few_are_persons_words_each(library):
    clear(library, *range(1, MANY))
    assert {library.state(vod_id)["douban_review_status"] for vod_id in range(1, MANY)} == {"REVIEW"}
    assert ruled_out(library, MANY - 1) == [1_000_000 + MANY - 1]


def test_many_at_once_are_one_question_and_nothing_is_looked_for(library):
    cleared = range(1, MANY + 1)
    clear(library, *cleared)
    library.clock.advance(days=400)
    library.intake.sweep(0, 1)
    assert not {*cleared} & {*taken(library, shards=range(64), limit=100)}
    assert ruled_out(library, 1) == []
    with reading(library.engine) as connection:
        found = list(held_in_bulk(library.services, connection))
    assert [breach.vod_id for breach in found] == [*cleared]
    assert f"共 {MANY} 部" in found[0].what


def test_many_are_one_question_in_whatever_slices_they_are_seen(library):
    library.execute(sa.update(library.services.cms.vod).values(vod_douban_id=0))
    for part in range(24):
        library.intake.sweep(part, 24)
    with reading(library.engine) as connection:
        assert [breach.vod_id for breach in held_in_bulk(library.services, connection)] == [*IDS]
    assert library.log() == []


def test_ids_that_are_back_are_links_again(library):
    clear(library, *range(1, MANY + 1))
    library.set_cms(1, vod_douban_id=1_000_001)
    library.intake.sweep(0, 1)
    state = library.state(1)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (1_000_001, "CONFIRMED")
    assert state["douban_next_sync_at"] == library.clock.now()


@pytest.mark.parametrize(("answer", "out"), [(ClearedIdsAnswer.rematch, []), (ClearedIdsAnswer.rule_out, [1_000_001])])
def test_an_answer_frees_all_of_them(library, answer, out):
    clear(library, *range(1, MANY + 1))
    assert settle(library.services, answer, "王", dry_run=True) == MANY
    assert library.state(1)["douban_next_sync_at"] is None
    assert settle(library.services, answer, "王", dry_run=False) == MANY
    state = library.state(1)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (0, "NOT_FOUND")
    assert state["douban_next_sync_at"] == library.clock.now()
    assert ruled_out(library, 1) == out
    assert settle(library.services, answer, "王", dry_run=False) == 0


@pytest.fixture
def linked(stage):
    scenario = stage([row_of(RIVER, 4)], FILMS)
    assert scenario.play().success
    assert scenario.cms(4, "vod_douban_id") == (RIVER["id"],)
    return scenario


def written(scenario):
    """Return the values that stood in the columns that were written."""
    return {column: value for change in scenario.library.log() for column, value in change["old_values"].items()}


def test_a_cleared_link_is_never_made_again(linked):
    linked.library.set_cms(4, vod_douban_id=0)
    linked.library.intake.sweep(0, 1)
    for _ in range(3):
        linked.clock.advance(days=40)
        linked.play()
    assert linked.cms(4, "vod_douban_id") == (0,)
    assert linked.library.state(4)["douban_review_status"] == "REVIEW"


def test_what_is_said_of_a_locked_id_holds_until_it_is_back(linked):
    linked.library.set_state(4, douban_id_locked=True, douban_id_lock_time=linked.clock.now())
    said = f"锁定的豆瓣 ID {RIVER['id']} 在 CMS 中被改为 0"
    for current, reason in ((0, said), (RIVER["id"], "")):
        linked.library.set_cms(4, vod_douban_id=current)
        linked.library.intake.sweep(0, 1)
        linked.library.set_state(4, douban_next_sync_at=linked.clock.now())
        linked.play()
        assert linked.library.state(4)["douban_review_reason"] == reason
        linked.clock.advance(minutes=1)


def test_a_form_that_was_opened_before_says_nothing_of_the_link(linked):
    old = written(linked)
    assert len(old) > 1
    linked.library.set_cms(4, **old)
    linked.library.intake.sweep(0, 1)
    state = linked.library.state(4)
    assert (state["douban_review_status"], state["vod_douban_id"]) == ("NOT_FOUND", 0)
    assert "写入之前打开的表单" in state["douban_review_reason"]
    linked.clock.advance(minutes=5)
    assert linked.play().success
    assert linked.cms(4, "vod_douban_id") == (RIVER["id"],)


def test_a_form_in_which_another_field_stayed_is_a_persons_word(linked):
    old = written(linked)
    kept = next(column for column in old if column != "vod_douban_id")
    del old[kept]
    linked.library.set_cms(4, **old)
    linked.library.intake.sweep(0, 1)
    assert linked.library.state(4)["douban_review_status"] == "REVIEW"
    assert linked.library.state(4)["douban_next_sync_at"] - linked.clock.now() == timedelta(0)
