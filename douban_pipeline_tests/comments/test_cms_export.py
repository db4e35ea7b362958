"""The status goes back into the CMS's own comments: what differs, where it is still known, and back again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import select, text

from douban_pipeline.comments.cms_export import CmsExportReport, CommentExport, open_export
from douban_pipeline.comments.cms_import import take_in
from douban_pipeline.comments.definitions import build_defs
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.tables import comment, export
from douban_pipeline.comments.types import Actor, CommentStatus, EventKind, Rank
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline_tests.comments.test_cms_import import importing_tables, work

OPERATOR = Actor("ops:li", name="li", rank=Rank.OPERATOR)


@pytest.fixture
def services(database_url: str, tmp_path: Path) -> Iterator[CommentsServices]:
    """The comments 3 (4 likes, 1 dislike, 2 reports), 5 (its reply), 6 (hidden), 8 and 9 of the CMS, taken in."""
    opened = open_services(CommentsSettings(_env_file=None, home=tmp_path, library_url=database_url), "test")
    importing_tables(opened)
    take_in(opened, 100)
    work(opened)
    yield opened
    opened.close()


def cms(services: CommentsServices) -> dict[int, tuple[int, int, int, int]]:
    """Return status, likes, dislikes and reports of the CMS's rows."""
    query = "SELECT comment_id, comment_status, comment_up, comment_down, comment_report FROM mac_comment"
    with services.engine.connect() as connection:
        return {row[0]: tuple(row[1:]) for row in connection.execute(text(query))}


def ours(services: CommentsServices, number: int) -> tuple[int, int]:
    with services.engine.connect() as connection:
        query = select(comment.c.comment_id, comment.c.section_id)
        row = connection.execute(query.where(comment.c.source_key.endswith(f"{number:012d}"))).one()
    return row.comment_id, row.section_id


def send(services: CommentsServices, actor: Actor, kind: EventKind, number: int, **payload: Any) -> None:
    comment_id, section_id = ours(services, number)
    key = f"{actor.key}-{kind}-{number}-{payload}"[:64]
    with services.engine.begin() as connection:
        append(
            connection,
            [EventInput(section_id, kind, actor, key, comment_id, payload)],
            services.clock.now(),
        )
    work(services)


def hide(services: CommentsServices, number: int) -> None:
    send(services, OPERATOR, EventKind.SET_STATUS, number, status=int(CommentStatus.DELETED))


def run(services: CommentsServices, batch: str = "", **given: Any) -> CmsExportReport:
    return open_export(services).run(batch, "ann", services.clock.now(), **given)


def undo(services: CommentsServices, batch: str, **given: Any) -> CmsExportReport:
    return open_export(services).undo(batch, **given)


def test_what_happened_here_is_written_there_and_taken_back(services):
    before = cms(services)
    assert run(services).written == 0, "what was just taken in is the same"
    send(services, Actor("u:9", 9), EventKind.VOTE, 3, value=1)
    send(services, OPERATOR, EventKind.SET_STATUS, 9, status=int(CommentStatus.DELETED))
    send(services, OPERATOR, EventKind.SET_STATUS, 6, status=int(CommentStatus.NORMAL))
    planned = run(services)
    assert {row.number: row.new for row in planned.rows} == {6: 1, 9: 0}, "counts are the CMS's own"
    assert cms(services) == before, "a dry run writes nothing"
    done = run(services, "first", dry_run=False)
    assert (done.written, done.skipped) == (2, 0)
    after = {**before, 6: (1, 0, 0, 0), 9: (0, 0, 0, 0)}
    assert cms(services) == after
    assert run(services, "second", dry_run=False).written == 0
    with pytest.raises(ProblemsError, match="已经用过"):
        run(services, "first", dry_run=False)
    assert undo(services, "first").written == 2
    assert cms(services) == after
    assert undo(services, "first", dry_run=False).written == 2
    assert cms(services) == before
    assert run(services, "third", dry_run=False).written == 0, "what a person took back is not written again"
    with pytest.raises(ProblemsError, match="没有可撤销的批次"):
        undo(services, "first")


def test_what_was_hidden_in_the_cms_meanwhile_is_left_alone(services):
    with services.engine.begin() as connection:
        connection.execute(text("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 5"))
    done = run(services, "b", dry_run=False)
    assert (done.written, done.skipped) == (0, 1)
    assert "没有人放行" in done.rows[0].refusal
    assert cms(services)[5][0] == 0


def test_what_was_hidden_here_is_hidden_there_and_shown_again(services):
    hide(services, 3)
    run(services, "a", dry_run=False)
    assert (cms(services)[3][0], cms(services)[5][0]) == (0, 1), "the CMS shows no reply of what is hidden"
    send(services, OPERATOR, EventKind.UNDO_STATUS, 3)
    run(services, "b", dry_run=False)
    assert (cms(services)[3][0], cms(services)[5][0]) == (1, 1)


@pytest.mark.parametrize("written", [True, False])
def test_a_run_that_died_is_settled_by_what_the_cms_has(services, monkeypatch, written):
    hide(services, 3)
    real = CommentExport._put

    def die(self: CommentExport, row: Any) -> bool:
        if written:
            real(self, row)
        raise KeyboardInterrupt

    monkeypatch.setattr(CommentExport, "_put", die)
    with pytest.raises(KeyboardInterrupt):
        run(services, "a", dry_run=False)
    monkeypatch.setattr(CommentExport, "_put", real)
    done = run(services, "b", dry_run=False)
    assert cms(services)[3] == (0, 4, 1, 2)
    assert done.written == (0 if written else 1)
    with services.engine.connect() as connection:
        states = list(connection.execute(select(export.c.state).order_by(export.c.export_id)).scalars())
    assert states == (["applied"] if written else ["skipped", "applied"])


def test_it_is_off_until_it_is_set(services):
    hide(services, 3)
    config = {"dry_run": False, "batch": "x", "operator": "ann"}
    assert "DOUBAN_PIPELINE_COMMENTS_EXPORT=true" in job(services, **config)[1]
    assert cms(services)[3][0] == 1
    assert job(services)[0]["written"] == 1
    opened = open_services(services.settings.model_copy(update={"export": True}), "test")
    try:
        assert job(opened, **config)[0]["written"] == 1
        assert cms(services)[3][0] == 0
        assert job(opened, **config | {"action": "undo"})[0]["written"] == 1
        assert cms(services)[3][0] == 1
    finally:
        opened.close()


def job(services: CommentsServices, **config: Any) -> tuple[dict[str, Any], str]:
    """Run the job of people; return its metadata, and why it failed."""
    defs = build_defs(settings=services.settings, resource_overrides={"services": services})
    with dg.DagsterInstance.ephemeral() as instance:
        found = defs.get_repository_def().get_job("export_comments")
        result = found.execute_in_process(
            instance=instance, raise_on_error=False, run_config={"ops": {"write_back": {"config": config}}}
        )
    for event in result.all_node_events:
        if event.is_step_failure:
            return {}, event.step_failure_data.error.message
        if event.is_successful_output:
            return {name: value.value for name, value in event.step_output_data.metadata.items()}, ""
    raise AssertionError("neither failed nor succeeded")


def test_nothing_of_it_alters_the_cms_table(services):
    def columns() -> list[str]:
        with services.engine.connect() as connection:
            return list(connection.execute(text("SELECT * FROM mac_comment")).keys())

    before = columns()
    hide(services, 3)
    run(services, "a", dry_run=False)
    assert columns() == before
