"""The CMS's own comments are taken in once each, with threads, times, votes and status; its table is only read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, func, select, text, update

from douban_pipeline.comments import cms_import
from douban_pipeline.comments.cms_import import ImportReport, last_taken, take_in
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.moderator_tables import address
from douban_pipeline.comments.store.tables import comment, content, event, mark, section, vote
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import reading

COLUMNS = (
    "comment_id int NOT NULL PRIMARY KEY, comment_mid int NOT NULL DEFAULT 1, comment_rid int NOT NULL DEFAULT 0,"
    " comment_pid int NOT NULL DEFAULT 0, user_id int NOT NULL DEFAULT 0, comment_status int NOT NULL DEFAULT 1,"
    " comment_name varchar(60) NOT NULL DEFAULT '', comment_ip bigint NOT NULL DEFAULT 0,"
    " comment_time int NOT NULL DEFAULT 0, comment_content varchar(255) NOT NULL DEFAULT '',"
    " comment_up int NOT NULL DEFAULT 0, comment_down int NOT NULL DEFAULT 0,"
    " comment_reply int NOT NULL DEFAULT 0, comment_report int NOT NULL DEFAULT 0"
)
THEN = 1_600_000_000
ROWS: list[dict[str, Any]] = [
    {
        "id": 3,
        "rid": 7,
        "user": 5,
        "name": "小王",
        "up": 4,
        "down": 1,
        "report": 2,
        "text": "真好看 &lt;3 &#039;赞&#039;",
    },
    {"id": 5, "rid": 7, "pid": 3, "ip": 3_232_235_777, "text": "同意"},
    {"id": 6, "rid": 8, "status": 0, "text": "加群"},
    {"id": 8, "rid": 8, "pid": 6, "text": "别信"},
    {"id": 9, "rid": 7, "pid": 2, "text": "回复已删的"},
    {"id": 10, "rid": 7, "mid": 4, "text": "不知道是什么"},
    {"id": 11, "rid": 7, "text": " "},
]


@pytest.fixture
def services(database_url: str, tmp_path: Path) -> Iterator[CommentsServices]:
    settings = CommentsSettings(_env_file=None, home=tmp_path, library_url=database_url)
    opened = open_services(settings, "test")
    importing_tables(opened)
    yield opened
    opened.close()


def importing_tables(services: CommentsServices) -> None:

    TREE.upgrade(services.engine)
    mysql = services.engine.dialect.name in ("mysql", "mariadb")
    with services.engine.begin() as connection:
        connection.execute(
            text(f"CREATE TABLE mac_comment ({COLUMNS})" + (" ENGINE=MyISAM CHARSET=utf8" if mysql else ""))
        )
    plant(services, ROWS)


def plant(services: CommentsServices, rows: list[dict[str, Any]]) -> None:
    statement = text(
        "INSERT INTO mac_comment (comment_id, comment_mid, comment_rid, comment_pid, user_id, comment_status,"
        " comment_name, comment_ip, comment_time, comment_content, comment_up, comment_down, comment_report)"
        " VALUES (:id, :mid, :rid, :pid, :user, :status, :name, :ip, :at, :text, :up, :down, :report)"
    )
    usual = {"mid": 1, "pid": 0, "user": 0, "status": 1, "name": "", "ip": 0, "up": 0, "down": 0, "report": 0}
    with services.engine.begin() as connection:
        connection.execute(statement, [{**usual, "at": THEN + row["id"], **row} for row in rows])


def work(services: CommentsServices) -> None:
    worker = services.worker()
    while worker.turn():
        pass
    worker.stop()


def taken(services: CommentsServices) -> dict[int, Any]:
    """Return what was taken in, by the number of the CMS."""
    query = select(comment, content.c.content, section.c.type, section.c.object_id)
    query = query.join(content, content.c.comment_id == comment.c.comment_id)
    query = query.join(section, section.c.section_id == comment.c.section_id)
    with reading(services.engine) as connection:
        return {int(row.source_key[-12:]): row for row in connection.execute(query)}


def test_a_reply_to_what_is_elsewhere_is_taken_in_as_a_root(services):
    plant(services, [{"id": 20, "rid": 9, "pid": 3, "text": "回复别处的"}])
    take_in(services, 100)
    work(services)
    assert (taken(services)[20].root_id, taken(services)[20].object_id) == (0, 9)


def test_signs_that_the_form_of_the_cms_wrote_by_name_are_signs_again(services):
    typed = "&amp;ldquo;好&amp;rdquo;&amp;hellip;&amp;hellip;5 &amp;lt; 6 &amp;amp;&amp;amp;copy; a&amp;b=1&amp;copy=2"
    plant(services, [{"id": 20, "rid": 9, "text": typed}])
    take_in(services, 100)
    work(services)
    assert taken(services)[20].content == "“好”……5 < 6 &&copy; a&b=1&copy=2"


def test_replies_to_what_another_run_took_in_meanwhile_stay_replies(services):
    with reading(services.engine) as connection:
        before = last_taken(connection)
    take_in(services, 100)
    with services.engine.begin() as connection:  # as a run reads it that began before the other one was done
        connection.execute(update(mark).values(number=before))
    plant(services, [{"id": 20, "rid": 7, "pid": 3, "text": "也同意"}])
    take_in(services, 100)
    work(services)
    found = taken(services)
    assert found[20].parent_id == found[3].comment_id


def test_comments_of_the_cms_are_taken_in_once_with_all_that_they_have(services):
    assert take_in(services, 3) == ImportReport(taken=3, last=6, left=3)
    assert take_in(services, 100) == ImportReport(taken=2, skipped=1, orphans=1, last=11)
    assert take_in(services, 100) == ImportReport(last=11), "what has no text is not read again"
    work(services)
    found = taken(services)
    assert sorted(found) == [3, 5, 6, 8, 9]
    with reading(services.engine) as connection:
        addresses = dict(connection.execute(select(address.c.comment_id, address.c.address)).tuples().all())
    first, reply, hidden, below, orphan = (found[number] for number in (3, 5, 6, 8, 9))
    assert (first.content, first.publisher_id, first.meta["name"]) == ("真好看 <3 '赞'", 5, "小王")
    assert (first.type, first.object_id) == (1, 7)
    assert (first.like_count, first.dislike_count, first.report_count) == (4, 1, 2)
    assert first.created_at == datetime.fromtimestamp(THEN + 3, UTC)
    assert (reply.parent_id, reply.root_id) == (first.comment_id, first.comment_id)
    assert addresses == {reply.comment_id: "192.168.1.1"}
    assert (first.child_total, first.child_visible) == (1, 1)
    assert (hidden.status, hidden.object_id) == (CommentStatus.REVIEW, 8)
    assert (below.parent_id, below.status) == (hidden.comment_id, CommentStatus.NORMAL)
    assert orphan.root_id == 0
    with reading(services.engine) as connection:
        for section_id in {row.section_id for row in found.values()}:
            assert list(count_differences(connection, section_id)) == []
        assert connection.execute(text("SELECT COUNT(*) FROM mac_comment")).scalar_one() == len(ROWS)


def test_comments_without_text_or_section_do_not_hold_up_those_after_them(services):
    take_in(services, 100)
    plant(services, [{"id": number, "rid": 7, "text": ""} for number in range(21, 26)])
    plant(services, [{"id": 26, "rid": 7, "text": "后来的"}, {"id": 27, "rid": 7, "mid": 4, "text": "不知道是什么"}])
    reports = [take_in(services, 2) for _ in range(3)]
    assert [report.skipped for report in reports] == [2, 2, 1]
    assert (reports[-1].taken, reports[-1].last, reports[-1].left) == (1, 26, 0)


def test_an_import_of_an_earlier_release_is_continued(services):
    take_in(services, 3)
    with services.engine.begin() as connection:
        connection.execute(delete(mark))
        assert last_taken(connection) == 6
    assert take_in(services, 100).taken == 2


def test_taking_in_goes_on_where_events_were_cleared_away(services):
    take_in(services, 3)
    work(services)
    with services.engine.begin() as connection:
        connection.execute(delete(event))
        assert last_taken(connection) == 6
    plant(services, [{"id": 20, "rid": 7, "pid": 3, "text": "后来的"}])
    report = take_in(services, 100)
    assert (report.taken, report.last) == (3, 20)
    work(services)
    found = taken(services)
    assert found[20].root_id == found[3].comment_id
    assert take_in(services, 100).taken == 0


def test_a_run_that_dies_between_batches_doubles_nothing(services, monkeypatch):
    monkeypatch.setattr(cms_import, "BATCH", 2)
    store, calls = cms_import._store, []

    def dying(*given, **named):
        calls.append(None)
        if len(calls) == 2:
            raise RuntimeError("killed")
        return store(*given, **named)

    monkeypatch.setattr(cms_import, "_store", dying)
    with pytest.raises(RuntimeError, match="killed"):
        take_in(services, 100)
    monkeypatch.setattr(cms_import, "_store", store)
    assert take_in(services, 100).taken == 3
    work(services)
    with reading(services.engine) as connection:
        assert connection.execute(select(func.count()).select_from(comment)).scalar_one() == 5


def test_without_a_cms_nothing_is_taken_in(tmp_path):
    alone = open_services(CommentsSettings(_env_file=None, home=tmp_path), "test")
    assert take_in(alone, 10) is None
    elsewhere = CommentsSettings(_env_file=None, home=tmp_path, library_url=f"sqlite:///{tmp_path / 'empty.sqlite'}")
    empty = open_services(elsewhere, "test").ready()
    assert take_in(empty, 10) is None
    for services in (alone, empty):
        services.close()


def test_more_votes_than_have_rows_are_counted_all_the_same(services):
    plant(services, [{"id": 30, "rid": 9, "up": 12_345, "down": 1_000, "text": "热"}])
    take_in(services, 100)
    work(services)
    row = taken(services)[30]
    assert (row.like_count, row.dislike_count) == (12_345, 1_000)
    with reading(services.engine) as connection:
        assert connection.execute(select(func.count()).select_from(vote)).scalar_one() < 2_100
        assert list(count_differences(connection, row.section_id)) == []
