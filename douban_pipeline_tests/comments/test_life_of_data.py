"""What is forgotten in time, what is stored of a person and erased, and what moderators are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from douban_pipeline.comments.moderator_notices import EVERY, tell_moderators
from douban_pipeline.comments.person import count_data, erase_data, export_data
from douban_pipeline.comments.retention import forget_expired
from douban_pipeline.comments.review import GUESTS_AT_ONCE
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store import search_index
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.moderator_tables import action, address
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.store.tables import bigram, comment, content, edit, event, vote
from douban_pipeline.comments.types import Actor, EventKind, Rank
from douban_pipeline.core.database import reading
from douban_pipeline_tests.harness.fixtures.calling import (
    caller,  # noqa: F401 (a fixture)
)
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.scripted_source import Say, Source

OPERATOR = Actor("ops:li", rank=Rank.OPERATOR)


def user(number: int) -> Actor:
    return Actor(f"u:{number}", number, name=f"用户{number}")


class Place:
    """A section and its worker, on a clock that a test moves."""

    def __init__(self, services: CommentsServices, clock: FakeClock) -> None:
        self.services, self.clock = services, clock
        self.worker = services.worker()
        self._number = 0
        with services.engine.begin() as connection:
            self.section = ensure_section(connection, 1, 7, clock.now(), title="片名")

    def send(self, actor: Actor, kind: EventKind, comment_id: int = 0, **payload: Any) -> int:
        self._number += 1
        number = comment_id or self.services.numbers.next()
        given = EventInput(self.section, kind, actor, f"k{self._number}", number, payload)
        with self.services.engine.begin() as connection:
            append(connection, [given], self.clock.now())
        return number

    def publish(self, actor: Actor, text: str, **payload: Any) -> int:
        return self.send(actor, EventKind.PUBLISH, content=text, name=actor.name, **payload)

    def work(self) -> None:
        while self.worker.turn():
            pass

    def rows(self, query: sa.Select[Any]) -> list[Any]:
        with reading(self.services.engine) as connection:
            return [tuple(row) for row in connection.execute(query)]

    def texts(self) -> dict[int, str]:
        return dict(self.rows(sa.select(content.c.comment_id, content.c.content)))


@pytest.fixture
def place(any_database_url: str, tmp_path: Path) -> Iterator[Place]:
    clock = FakeClock()
    settings = CommentsSettings(_env_file=None, home=tmp_path, database_url=any_database_url)
    services = open_services(settings, "test", clock)
    TREE.upgrade(services.engine)
    made = Place(services, clock)
    yield made
    made.work()
    with reading(services.engine) as connection:
        assert list(count_differences(connection, made.section)) == []
    services.close()


def test_what_is_old_is_forgotten_and_texts_of_removed_comments_with_all_that_came_of_them(place):
    kept, removed = place.publish(user(2), "留下", ip="192.0.2.7"), place.publish(user(3), "删掉的话", ip="192.0.2.8")
    place.work()
    place.send(user(3), EventKind.EDIT, removed, content="改过的话")
    place.work()
    search_index.fill(place.services.engine, 100)
    place.send(OPERATOR, EventKind.SET_STATUS, removed, status=2, reason="违规")
    place.work()
    place.clock.advance(days=199)
    assert set(forget_expired(place.services, dry_run=False).values()) == {0}
    place.clock.advance(days=2)
    fresh = place.publish(user(4), "新的", ip="192.0.2.9")
    place.work()
    would = forget_expired(place.services, dry_run=True)
    assert would == {"addresses": 2, "events": 4, "earlier_texts": 1, "ended_levels": 0, "log_entries": 0, "texts": 1}
    assert place.texts()[removed] == "改过的话"
    assert forget_expired(place.services, dry_run=False) == would
    place.work()
    assert place.texts() == {kept: "留下", removed: "", fresh: "新的"}
    assert place.rows(sa.select(address.c.comment_id)) == [(fresh,)]
    assert place.rows(sa.select(edit.c.edit_id)) == []
    of_removed = search_index.bigrams_of(search_index.searched_form("改过的话"))
    assert place.rows(sa.select(bigram.c.bigram).where(bigram.c.bigram.in_(of_removed))) == []
    place.send(OPERATOR, EventKind.SET_STATUS, removed, status=0, reason="恢复")
    place.send(OPERATOR, EventKind.UNDO_STATUS, removed)
    place.work()
    refusals = place.rows(sa.select(event.c.refusal).order_by(event.c.event_id.desc()).limit(2))
    assert refusals == [("文字已清除，不能再显示",)] * 2
    assert place.rows(sa.select(comment.c.publisher_id).where(comment.c.comment_id == removed)) == [(3,)]


def test_a_person_s_data_is_shown_exported_and_erased_and_others_keep_theirs(place):
    own = place.publish(user(2), "我的话", ip="192.0.2.7")
    other = place.publish(user(3), "别人的话")
    place.work()
    reply = place.publish(user(3), "回你", parent_id=own)
    place.send(user(2), EventKind.EDIT, own, content="我改了")
    place.send(user(2), EventKind.VOTE, other, value=1)
    place.send(user(2), EventKind.REPORT, other, reason="spam", detail="我看见的")
    place.work()
    with reading(place.services.engine) as connection:
        counts, found = count_data(connection, 2), export_data(connection, 2)
    assert {name: count for name, count in counts.items() if count} == {
        "comments": 1,
        "earlier_texts": 1,
        "addresses": 1,
        "votes": 1,
        "reports": 1,
        "notices": 1,
        "events": 4,
    }
    (mine,) = json.loads(json.dumps(found))["comments"]
    assert (mine["content"], mine["address"], mine["earlier"][0]["content"]) == ("我改了", "192.0.2.7", "我的话")
    assert erase_data(place.services, 2, "terminal:li") == counts
    place.work()
    with reading(place.services.engine) as connection:
        # What is left is the event that erased the comment, which names nobody.
        assert set(count_data(connection, 2).values()) == {0}
        whole = "".join(
            str(tuple(row))
            for table in (comment, content, edit, event, vote, address)
            for row in connection.execute(sa.select(table))
        )
    for trace in ("我的话", "我改了", "用户2", "192.0.2.7", "u:2'"):
        assert trace not in whole, trace
    assert place.texts() == {own: "", other: "别人的话", reply: "回你"}
    likes = place.rows(sa.select(comment.c.like_count, comment.c.report_count).where(comment.c.comment_id == other))
    assert likes == [(1, 1)]
    assert place.rows(sa.select(action.c.action, action.c.actor).where(action.c.about == "user:2")) == [
        ("person", "terminal:li")
    ]
    place.work()


def test_the_command_changes_nothing_unless_it_is_told_to(tmp_path, call):
    given = {
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": f"sqlite:///{tmp_path / 'comments.sqlite'}",
    }
    assert call("setup", "--system", "comments", **given).status == 0
    file = tmp_path / "person.json"
    shown = call("comment-person", "2", "--export", str(file), **given)
    assert shown.status == 0, shown.said
    assert "Nothing is stored" in shown.said
    assert json.loads(file.read_text(encoding="utf-8"))["user"] == 2
    assert file.stat().st_mode & 0o077 == 0
    assert "exists already" in call("comment-person", "2", "--export", str(file), **given).said
    assert "--operator" in call("comment-person", "2", "--erase", **given).said


def test_moderators_are_told_once_of_what_waits_and_again_where_it_did_not_arrive(tmp_path):
    clock, source = FakeClock(), Source()
    settings = CommentsSettings(
        _env_file=None, home=tmp_path, moderator_channels=f"webhook+{source.url}", public_url="https://c.example"
    )
    services = open_services(settings, "test", clock).ready()
    place = Place(services, clock)
    assert tell_moderators(services).told == []
    place.publish(user(2), "看 https://a.example https://b.example")
    place.work()
    source.says(Say(status=503), Say())
    assert "503" in tell_moderators(services).problems["webhook"]
    assert tell_moderators(services).told == ["webhook"]
    clock.advance(seconds=EVERY.total_seconds())
    assert tell_moderators(services).told == [], "it was told of that one"
    sent = str(json.loads(source.bodies[-1]))
    place.publish(user(2), "看 https://b.example https://c.example")
    place.work()
    told = [tell_moderators(services).told]
    for beginning in (100, 200):
        clock.advance(minutes=1)
        for n in range(beginning, beginning + GUESTS_AT_ONCE + 1):
            place.publish(Actor(f"g:{n}"), f"来 {n}", ip=f"198.51.100.{n % 250}")
        place.work()
        told.append(tell_moderators(services).told)
    clock.advance(seconds=EVERY.total_seconds())
    told.append(tell_moderators(services).told)
    assert told == [["webhook"], ["webhook"], [], ["webhook"]], "of a flood at once, then as of others"
    titles = [json.loads(body)["title"] for body in source.bodies[-2:]]
    assert titles == ["游客发言突增：3 条评论等待审核，新增 1 条", "游客发言突增：34 条评论等待审核，新增 31 条"]
    services.close()
    source.close()
    for part in ("1 条评论等待审核", "《片名》看 https://a.example", "https://c.example/comments/admin"):
        assert part in sent
