"""A section with a worker in the test's own process, and what people do in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlalchemy import Engine

from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import comment_lists, events
from douban_pipeline.comments.store.comment_lists import CommentView, Order
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.sections import ensure_section, get_section
from douban_pipeline.comments.types import Actor, CommentStatus, EventKind, Rank
from douban_pipeline.comments.worker import Follower, Worker
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.database import reading as open_reading
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

OWNER = Actor("u:1", 1, "楼主", rank=Rank.OWNER)
OPERATOR = Actor("ops:li", name="li", rank=Rank.OPERATOR)
AUDIT = Actor("audit:wang", name="wang", rank=Rank.AUDIT)
AUTOMATION = Actor("auto", rank=Rank.AUTOMATION)


def user(number: int) -> Actor:
    return Actor(f"u:{number}", number, f"用户{number}")


@dataclass
class Stage:
    """One section and its worker."""

    engine: Engine
    clock: FakeClock
    worker: Worker
    section_id: int
    ids: IdGenerator
    keys: Iterator[int] = field(default_factory=count)

    def send(self, actor: Actor, kind: EventKind, comment_id: int = 0, **payload: Any) -> None:
        """Write an event, as a request does."""
        given = EventInput(self.section_id, kind, actor, f"{actor.key}-{next(self.keys)}", comment_id, payload)
        with self.engine.begin() as connection:
            events.append(connection, [given], self.clock.now())

    def publish(self, actor: Actor, content: str, parent_id: int = 0, **payload: Any) -> int:
        """Ask for a comment to be published; return its id."""
        self.clock.advance(milliseconds=5)
        number = self.ids.next()
        self.send(actor, EventKind.PUBLISH, number, content=content, parent_id=parent_id, **payload)
        return number

    def vote(self, actor: Actor, comment_id: int, value: int) -> None:
        self.send(actor, EventKind.VOTE, comment_id, value=value)

    def set_status(self, actor: Actor, comment_id: int, status: CommentStatus) -> None:
        self.send(actor, EventKind.SET_STATUS, comment_id, status=status)

    def undo(self, actor: Actor, comment_id: int) -> None:
        self.send(actor, EventKind.UNDO_STATUS, comment_id)

    def work(self) -> int:
        """Have the worker apply everything that waits."""
        done = 0
        while turn := self.worker.turn():
            done += turn
        return done

    def comment(self, number: int) -> CommentView:
        with open_reading(self.engine) as connection:
            return comment_lists.get_comments(connection, [number])[number]

    def exists(self, number: int) -> bool:
        with open_reading(self.engine) as connection:
            return bool(comment_lists.get_comments(connection, [number]))

    def section(self) -> dict[str, Any]:
        with open_reading(self.engine) as connection:
            found = get_section(connection, self.section_id)
        assert found is not None
        return dict(found)

    def roots(self, order: Order = Order.NEW, most: int = 1000) -> list[int]:
        with open_reading(self.engine) as connection:
            return [
                place.comment_id for place in comment_lists.list_roots(connection, self.section_id, order, None, most)
            ]

    def replies(self, root: int) -> list[int]:
        with open_reading(self.engine) as connection:
            return [
                place.comment_id for place in comment_lists.list_replies(connection, root, self.section_id, None, 1000)
            ]

    def refusals(self) -> list[str]:
        """Why events changed nothing, in the order in which they were applied."""
        with open_reading(self.engine) as connection:
            rows = connection.exec_driver_sql("SELECT refusal FROM cmt_event WHERE refusal <> '' ORDER BY seq")
            return [row[0] for row in rows]

    def differences(self) -> list[str]:
        with open_reading(self.engine) as connection:
            return list(count_differences(connection, self.section_id))


@contextmanager
def stage(
    url: str,
    *,
    review: SafetyReview | None = None,
    followers: Sequence[Follower] = (),
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[Stage]:
    """Yield a section of user 1 with its worker; the tables are made where they are missing."""
    engine = open_engine(url)
    TREE.upgrade(engine)
    clock = FakeClock()
    with engine.begin() as connection:
        section_id = ensure_section(connection, 1, 7, clock.now(), owner_id=1, title="片名", settings=settings)
    worker = Worker(engine, clock, "tests@here:1", review or SafetyReview(), followers, **options)
    yield Stage(engine, clock, worker, section_id, IdGenerator(3, clock.now))
    engine.dispose()
