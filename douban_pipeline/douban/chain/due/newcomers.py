"""Videos that the feeds' resource sites added or changed, and the library's rows with their titles.

The system feeds stores these videos in `feed_newcomer`, the only table of it that is used here. The CMS's own collector
adds videos to the library. Intake checks the rows with such a title at once, regardless of their `vod_time`, and a
video without a subject is searched again when a resource site has just added it. A title that the library does not have
waits for the collector, for at most a week.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import BigInteger, Boolean, Engine, String, bindparam, column, select, table, update

from douban_pipeline.core.database import chunks, reading, run_statement
from douban_pipeline.douban.chain.due.intake import Intake, IntakeReport
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable
from douban_pipeline.douban.store.states import ReviewStatus

DAYS = 7
"""How long a newcomer waits for the collector."""
MOST = 2000
"""Newcomers that one run looks at, the newest first."""
_DAY = 86_400

newcomer = table(
    "feed_newcomer",
    column("newcomer_id", BigInteger),
    column("source_id", String),
    column("name", String),
    column("changed", Boolean),
    column("seen_at", BigInteger),
    column("taken_at", BigInteger),
)
"""The columns that are read of the feeds' table, and `taken_at`, which is written; moments are unix seconds."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A video that a resource site added or changed."""

    newcomer_id: int
    name: str
    changed: bool
    seen_at: int


@dataclass(slots=True)
class NewcomerReport:
    """Results for the newcomers.

    Attributes:
        taken: Those whose title the library has, with its rows.
        searched_again: Videos without a subject whose visit was moved to now.
        waiting: Titles that the library does not have yet.
        given_up: Those that waited for a week.
        intake: Results of intake for the rows.
    """

    taken: list[tuple[Newcomer, tuple[int, ...]]] = field(default_factory=list)
    searched_again: int = 0
    waiting: int = 0
    given_up: int = 0
    intake: IntakeReport = field(default_factory=IntakeReport)


class Newcomers:
    """The newcomers beside the library of ``services``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cms = services.cms
        self._now = int(services.clock.now().timestamp())

    def any_in_library(self) -> bool:
        """Return whether a newcomer waits whose title the library has."""
        engine = self._engine()
        found = self._waiting(engine) if engine is not None else []
        return bool(self._rows_of(found))

    def take(self, intake: Intake) -> NewcomerReport:
        """Check the library's rows of all waiting newcomers.

        Raises:
            DatabaseError: The feeds' database cannot be used.
            SQLAlchemyError: It does not answer.
        """
        report = NewcomerReport()
        engine = self._engine()
        if engine is None:
            return report
        waiting = self._waiting(engine)
        rows = self._rows_of(waiting)
        intake.look_at(sorted({vod_id for ids in rows.values() for vod_id in ids}), report.intake)
        done: list[Newcomer] = []
        for each in waiting:
            if each.newcomer_id in rows:
                report.taken.append((each, rows[each.newcomer_id]))
                done.append(each)
            elif each.seen_at >= self._now - DAYS * _DAY:
                report.waiting += 1
        report.searched_again = self._search_again(
            sorted({vod_id for each, ids in report.taken if not each.changed for vod_id in ids})
        )
        self._note_taken(engine, done)
        report.given_up = self._give_up(engine)
        return report

    def _engine(self) -> Engine | None:
        """Return the database of the feeds' tables; None where they are not.

        Without the system feeds nothing is asked: MariaDB refuses an account that was given the tables of one system
        alone even to look whether the other's exist.
        """
        settings, others = self._services.settings, self._services.others
        if "feeds" not in settings.systems:
            return None
        return others.engine_with(newcomer, settings.feeds_tables_url, setting=variable("feeds_url"))

    def _waiting(self, engine: Engine) -> list[Newcomer]:
        columns = (newcomer.c.newcomer_id, newcomer.c.name, newcomer.c.changed, newcomer.c.seen_at)
        query = select(*columns).where(newcomer.c.taken_at.is_(None))
        with reading(engine) as connection:
            found = connection.execute(query.order_by(newcomer.c.newcomer_id.desc()).limit(MOST)).all()
        return [Newcomer(row.newcomer_id, row.name, bool(row.changed), row.seen_at) for row in found]

    def _rows_of(self, waiting: Sequence[Newcomer]) -> dict[int, tuple[int, ...]]:
        """Return the ids of the library's rows of each newcomer's title, for those that have any."""
        vod = self._cms.vod
        by_name: dict[str, list[int]] = {}
        # The CMS's columns hold no character above U+FFFF, and comparing them with one would read the whole table.
        names = sorted({each.name for each in waiting if each.name and max(each.name) <= "\uffff"})
        with reading(self._services.engine) as connection:
            for some in chunks(names):
                for vod_id, name in connection.execute(
                    select(vod.c.vod_id, vod.c.vod_name).where(vod.c.vod_name.in_(some))
                ):
                    by_name.setdefault(_same(name), []).append(vod_id)
        return {
            each.newcomer_id: tuple(sorted(by_name[_same(each.name)]))
            for each in waiting
            if _same(each.name) in by_name and each.name
        }

    def _search_again(self, vod_ids: Sequence[int]) -> int:
        """Move the visits of those videos to now whose subject was not found, unless a failure has them wait."""
        video, now = self._services.tables.video, self._services.clock.now()
        moved = 0
        for some in chunks(vod_ids):
            statement = (
                update(video)
                .where(
                    video.c.vod_id.in_(some),
                    video.c.douban_review_status == ReviewStatus.NOT_FOUND,
                    video.c.douban_sync_fail_count == 0,
                    video.c.douban_next_sync_at > now,
                )
                .values(douban_next_sync_at=now)
            )
            moved += run_statement(self._services.engine, statement)
        return moved

    def _note_taken(self, engine: Engine, done: Sequence[Newcomer]) -> None:
        # One that changed again since it was read is told of anew.
        statement = (
            update(newcomer)
            .where(newcomer.c.newcomer_id == bindparam("key"), newcomer.c.seen_at == bindparam("seen"))
            .values(taken_at=self._now)
        )
        for some in chunks(done):
            given = [{"key": each.newcomer_id, "seen": each.seen_at} for each in some]
            run_statement(engine, statement, given)

    def _give_up(self, engine: Engine) -> int:
        """End the wait of all that is older than a week, also of what was not looked at; return how many."""
        late = update(newcomer).where(newcomer.c.taken_at.is_(None), newcomer.c.seen_at < self._now - DAYS * _DAY)
        return run_statement(engine, late.values(taken_at=self._now))


def _same(name: str) -> str:
    return name.strip().casefold()
