"""What people hide, delete or show again in the CMS follows here, and what is decided here is written there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event as listening
from sqlalchemy import select, text

from douban_pipeline.comments import cms_moderation
from douban_pipeline.comments.cms_import import take_in
from douban_pipeline.comments.cms_moderation import CmsModeration, CmsStatus, wanted_status
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.tables import event, moderation
from douban_pipeline.comments.types import CommentStatus, EventKind
from douban_pipeline_tests.comments.test_cms_export import OPERATOR, cms, run
from douban_pipeline_tests.comments.test_cms_import import importing_tables, plant, taken
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

SHOWN, WAITING, GONE = CommentStatus.NORMAL, CommentStatus.REVIEW, CommentStatus.DELETED


class Site:
    """A library with comments of the CMS, imported, and the worker that follows it."""

    def __init__(self, services: CommentsServices) -> None:
        self.services, self.clock = services, services.clock
        self.worker, self.moderation = services.worker(), CmsModeration(services)

    def settle(self) -> int:
        """Do a round of the worker, of the moderation, and of the worker again; return what the second did."""
        self.worker.turn()
        self.clock.advance(seconds=1)
        done = self.moderation.turn()
        while self.worker.turn():
            pass
        return done

    def person(self, statement: str) -> None:
        """Do in the CMS what its admin does."""
        with self.services.engine.begin() as connection:
            connection.execute(text(statement))

    def status(self, number: int) -> CommentStatus:
        return CommentStatus(taken(self.services)[number].status)

    def decide(self, number: int, status: CommentStatus) -> None:
        """Decide here, as an operator."""
        self.clock.advance(seconds=1)
        row, now = taken(self.services)[number], self.clock.now()
        payload = {"status": int(status)}
        given = EventInput(row.section_id, EventKind.SET_STATUS, OPERATOR, now.isoformat(), row.comment_id, payload)
        with self.services.engine.begin() as connection:
            append(connection, [given], now)

    def asked(self) -> list[str]:
        """Return the statements that a round without changes sends to the CMS's table."""
        found: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if "mac_comment" in statement and "SELECT" in statement:
                found.append(statement)

        listening.listen(self.services.engine, "before_cursor_execute", note)
        self.moderation.turn()
        listening.remove(self.services.engine, "before_cursor_execute", note)
        return found


@pytest.fixture
def opened(database_url: str, tmp_path: Path) -> Iterator[Any]:
    made: list[CommentsServices] = []

    def build(**values: Any) -> Site:
        given = CommentsSettings(_env_file=None, home=tmp_path, library_url=database_url, **values)
        services = open_services(given, "test", FakeClock())
        made.append(services)
        importing_tables(services)
        take_in(services, 100)
        site = Site(services)
        while site.worker.turn():
            pass
        return site

    yield build
    for services in made:
        services.close()


def test_what_people_do_in_the_cms_follows_here_both_ways(opened):
    site = opened()
    assert site.settle() == 0, "what is hidden since the import is known"
    assert (site.status(3), site.status(6)) == (SHOWN, WAITING)
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 3")
    site.person("DELETE FROM mac_comment WHERE comment_id = 5")
    assert site.settle() == 2
    assert (site.status(3), site.status(5)) == (WAITING, GONE)
    assert site.settle() == 0
    site.person("UPDATE mac_comment SET comment_status = 1 WHERE comment_id IN (3, 6)")
    plant(site.services, [{"id": 5, "rid": 7, "pid": 3, "text": "同意"}])
    assert site.settle() == 3, "shown again, restored from a backup, and let through for the first time"
    assert [site.status(number) for number in (3, 5, 6)] == [SHOWN] * 3
    with site.services.engine.connect() as connection:
        reasons = set(connection.execute(select(moderation.c.reason).where(moderation.c.actor == "cms")).scalars())
        assert not connection.execute(select(event.c.refusal).where(event.c.refusal != "")).all()
    assert reasons == {"在 CMS 中被隐藏", "在 CMS 中已删除", "在 CMS 中恢复显示"}


def test_only_changes_are_followed_and_what_was_decided_here_stays(opened):
    site = opened()
    site.settle()
    site.decide(6, SHOWN)
    assert site.settle() == 0
    assert site.status(6) == SHOWN, "an operator let it through here; in the CMS nobody has changed it"
    site.decide(3, GONE)
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 3")
    site.settle()
    site.person("UPDATE mac_comment SET comment_status = 1 WHERE comment_id = 3")
    site.settle()
    assert site.status(3) == GONE, "the CMS takes back only what it had decided"
    site.person("UPDATE mac_comment SET comment_status = 1 WHERE comment_id = 6")
    site.settle()
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 6")
    site.settle()
    assert site.status(6) == WAITING, "hidden anew"


def test_a_comment_let_through_here_before_it_was_ever_compared_stays(opened):
    site = opened()
    site.decide(6, SHOWN)
    assert site.settle() == 0
    assert site.status(6) == SHOWN


def test_what_is_decided_here_is_written_to_the_cms_and_not_taken_for_its_word(opened):
    site = opened(export=True)
    site.settle()
    site.decide(3, GONE)
    assert site.settle() == 1
    assert cms(site.services)[3][0] == 0
    site.decide(3, SHOWN)
    site.moderation._writes = False  # what was written is seen before it is written again
    assert site.settle() == 0
    assert site.status(3) == SHOWN
    site.moderation._writes = True
    assert site.settle() == 1
    assert cms(site.services)[3][0] == 1
    assert site.settle() == 0
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 3")
    assert site.settle() == 1
    assert site.status(3) == WAITING
    site.person("UPDATE mac_comment SET comment_status = 1 WHERE comment_id = 3")
    assert run(site.services, "hourly", dry_run=False).written == 0, "the CMS's own decision is not written over it"
    site.settle()
    assert (site.status(3), cms(site.services)[3][0]) == (SHOWN, 1)


def test_each_direction_has_a_setting(opened):
    site = opened(import_batch=0)
    site.settle()
    site.decide(9, GONE)
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 3")
    assert not site.moderation.is_on
    assert site.settle() == 0
    assert (site.status(3), cms(site.services)[9][0]) == (SHOWN, 1)


def test_a_round_reads_a_bounded_number_of_rows_by_key_and_comes_by_every_comment(opened, monkeypatch):
    monkeypatch.setattr(cms_moderation, "NEWEST", 2)
    monkeypatch.setattr(cms_moderation, "ROTATION", 3)
    site = opened()
    plant(site.services, [{"id": number, "rid": 20, "text": f"评 {number}"} for number in range(20, 30)])
    take_in(site.services, 100)
    site.settle()
    assert len(site.asked()) == 1
    assert "WHERE mac_comment.comment_id IN" in site.asked()[0]
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id IN (3, 29)")
    assert site.settle() == 1 or site.status(29) == WAITING
    assert site.status(29) == WAITING, "the newest are compared in every round"
    for _ in range(5):
        site.settle()
    assert site.status(3) == WAITING, "15 comments, 3 a round"


def test_one_of_several_workers_does_it(opened):
    site = opened()
    site.settle()
    site.person("UPDATE mac_comment SET comment_status = 0 WHERE comment_id = 3")
    site.worker.stop()
    assert site.moderation.turn() == 0, "it does not own shard 0"
    site.worker.turn()
    assert site.moderation.turn() == 1


def test_a_cms_that_does_not_answer_is_said_and_asked_again(tmp_path, caplog):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"mysql+pymysql://root@127.0.0.1:{closed.getsockname()[1]}/cms"
        own = f"sqlite:///{tmp_path / 'own.sqlite'}"
        given = CommentsSettings(_env_file=None, home=tmp_path, database_url=own, library_url=url)
        services = open_services(given, "test", FakeClock()).ready()
        services.worker().turn()
        paused: list[float] = []

        class Stopped(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                paused.append(timeout or 0.0)
                if len(paused) == 2:
                    self.set()
                return True

        CmsModeration(services).run(Stopped())
        services.close()
    assert paused == [60.0, 60.0]
    assert "the CMS's moderation is not followed for 60 s" in caplog.text


@pytest.mark.parametrize(
    ("status", "theirs", "by_cms", "wanted"),
    [
        (SHOWN, CmsStatus.HIDDEN, False, WAITING),
        (WAITING, CmsStatus.HIDDEN, False, None),
        (GONE, CmsStatus.HIDDEN, False, None),
        (GONE, CmsStatus.HIDDEN, True, WAITING),
        (SHOWN, CmsStatus.DELETED, False, GONE),
        (WAITING, CmsStatus.DELETED, False, GONE),
        (GONE, CmsStatus.DELETED, True, None),
        (WAITING, CmsStatus.SHOWN, True, SHOWN),
        (GONE, CmsStatus.SHOWN, False, None),
        (SHOWN, CmsStatus.SHOWN, True, None),
    ],
)
def test_what_follows_from_a_change(status, theirs, by_cms, wanted):
    assert wanted_status(status, theirs, by_cms=by_cms) == wanted
