"""Sections of videos have Douban's title while the library has a confirmed link, and cost what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, event, insert, select

from douban_pipeline.comments import section_titles
from douban_pipeline.comments.section_titles import ConfirmedLink, TitleReport, give_titles, wanted_title
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.marks import Mark, read_mark
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.sections import TitleChange, TitledSection, store_titles
from douban_pipeline.comments.store.tables import mark, section
from douban_pipeline_tests.comments.linked_library import LinkedLibrary
from douban_pipeline_tests.comments.sections import NOW
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

RIVER, WHALE, TRAM = 90_000_101, 90_000_102, 90_000_103


@dataclass
class Place:
    """The comments' tables and a library beside them."""

    services: CommentsServices
    library: LinkedLibrary
    clock: FakeClock

    def sections(self, *given: tuple[int, str], kind: int = 1) -> None:
        """Make sections: of which object, and with what title of the site's."""
        rows = [
            {"type": kind, "object_id": object_id, "title": title, "settings": {}, "pinned": []}
            | {"created_at": NOW, "active_at": NOW}
            for object_id, title in given
        ]
        with self.services.engine.begin() as connection:
            connection.execute(insert(section), rows)

    def titles(self, kind: int = 1) -> dict[int, tuple[str, int]]:
        """Return the titles with their subjects, by what the sections belong to."""
        query = select(section.c.object_id, section.c.title, section.c.title_douban_id).where(section.c.type == kind)
        with self.services.engine.connect() as connection:
            return {row[0]: (row[1], row[2]) for row in connection.execute(query.order_by(section.c.object_id))}

    def run(self) -> TitleReport:
        found = give_titles(self.services)
        assert found is not None
        return found

    def later(self, minutes: int = 10) -> datetime:
        self.clock.advance(seconds=60 * minutes)
        return self.clock.now()


def opened(comments_url: str, library_url: str, home: Path, /, **values: Any) -> Iterator[Place]:
    clock, library = FakeClock(), LinkedLibrary(library_url)
    given = {"home": home, "database_url": comments_url, "library_url": library_url, **values}
    settings = CommentsSettings(_env_file=None, **given)  # type: ignore[call-arg]
    services = open_services(settings, "test", clock)
    TREE.upgrade(services.engine)
    yield Place(services, library, clock)
    services.close()
    library.close()


@pytest.fixture
def place(any_database_url, tmp_path) -> Iterator[Place]:
    """Comments on each database in turn, beside a library in a file."""
    yield from opened(any_database_url, f"sqlite:///{tmp_path / 'cms.sqlite'}", tmp_path)


@pytest.fixture
def beside(database_url, tmp_path) -> Iterator[Place]:
    """A library on each database that it may be on, beside comments in a file."""
    yield from opened(f"sqlite:///{tmp_path / 'comments.sqlite'}", database_url, tmp_path)


@pytest.fixture
def together(database_url, tmp_path) -> Iterator[Place]:
    """Both in one database, as where nothing else is set."""
    yield from opened("", database_url, tmp_path)


@pytest.fixture
def small(tmp_path) -> Iterator[Place]:
    """Both in files."""
    yield from opened(f"sqlite:///{tmp_path / 'comments.sqlite'}", f"sqlite:///{tmp_path / 'cms.sqlite'}", tmp_path)


def a_life_of_titles(place: Place) -> None:
    """Titles come with links, follow Douban, and go with links; the site's own stay."""
    place.sections((1, ""), (2, "站点的片名"), (3, ""), (4, ""), (5, ""))
    place.sections((1, ""), kind=2)
    now = place.clock.now()
    place.library.sync(now, (1, RIVER, "长河落日记事"), (2, WHALE, "蓝鲸与灯塔守望者"), (3, TRAM, ""), (9, TRAM, ""))
    place.library.sync(now, (4, WHALE, ""), status="REVIEW")
    found = place.run()
    assert (found.given, found.changed, found.withdrawn, found.left, found.problem) == (1, 0, 0, 0, "")
    before = {1: ("长河落日记事", RIVER), 2: ("站点的片名", 0), 3: ("", 0), 4: ("", 0), 5: ("", 0)}
    assert place.titles() == before
    assert place.titles(kind=2) == {1: ("", 0)}, "only what belongs to videos"
    with place.services.engine.connect() as connection:
        query = select(section.c.titled_at).where(section.c.object_id == 1, section.c.type == 1)
        assert connection.execute(query).scalar_one() == now, "since when is stored with the section"

    at = place.later()
    place.library.sync(at, (1, RIVER, "长河落日"), (3, TRAM, "午夜电车站台"))
    found = place.run()
    assert (found.given, found.changed, found.withdrawn) == (1, 1, 0)
    assert place.titles() == before | {1: ("长河落日", RIVER), 3: ("午夜电车站台", TRAM)}

    place.later()
    place.library.withdraw(1)
    found = place.run()
    assert (found.given, found.changed, found.withdrawn) == (0, 0, 1)
    assert [(each.section.title, each.title) for each in found.rows] == [("长河落日", "")]
    assert place.titles() == before | {1: ("", 0), 3: ("午夜电车站台", TRAM)}
    place.later()
    found = place.run()
    assert (found.given, found.changed, found.withdrawn) == (0, 0, 0)


def test_titles_come_follow_and_go_with_links(place):
    a_life_of_titles(place)


def test_the_library_may_be_on_a_server(beside):
    a_life_of_titles(beside)


def test_both_may_be_in_one_database(together):
    a_life_of_titles(together)


@pytest.mark.parametrize(
    ("title", "douban_id", "link", "wanted"),
    [
        ("", 0, None, None),
        ("", 0, ConfirmedLink(RIVER, ""), None),
        ("", 0, ConfirmedLink(RIVER, "长河"), ("长河", RIVER)),
        ("站点", 0, None, None),
        ("站点", 0, ConfirmedLink(RIVER, "长河"), None),
        ("长河", RIVER, ConfirmedLink(RIVER, "长河"), None),
        ("长河", RIVER, ConfirmedLink(RIVER, ""), None),
        ("长河", RIVER, ConfirmedLink(RIVER, "大河"), ("大河", RIVER)),
        ("长河", RIVER, ConfirmedLink(WHALE, "长河"), ("长河", WHALE)),
        ("长河", RIVER, ConfirmedLink(WHALE, ""), ("", 0)),
        ("长河", RIVER, None, ("", 0)),
    ],
)
def test_what_a_section_is_to_be_called(title, douban_id, link, wanted):
    change = wanted_title(TitledSection(1, 1, 7, title, douban_id), link)
    assert (None if change is None else (change.title, change.douban_id)) == wanted


def test_a_pass_costs_what_changed_and_not_all_sections(small):
    small.sections(*((number, "") for number in range(1, 2_001)))
    small.library.sync(small.clock.now() - timedelta(days=2), *((n, RIVER + n, f"片{n}") for n in range(1, 2_001)))
    assert small.run().given == 2_000
    small.library.sync(small.later(), (1_999, RIVER, "新片名"))
    statements: list[str] = []
    for engine in (small.services.engine, small.services.others.engine(small.library.url, setting="")):
        event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = small.run()
    assert (found.changed, found.sections) == (1, section_titles.ROTATION + 1)
    assert len([each for each in statements if each.startswith("SELECT")]) < 20
    assert small.titles()[1_999] == ("新片名", RIVER)


def test_a_pass_is_bounded_and_says_what_is_left(small, monkeypatch):
    monkeypatch.setattr(section_titles, "MOST", 4)
    monkeypatch.setattr(section_titles, "_PAGE", 2)
    monkeypatch.setattr(section_titles, "ROTATION", 1)
    small.sections(*((number, "") for number in range(1, 8)))
    moment = small.clock.now() - timedelta(days=1)
    small.library.sync(moment, *((number, RIVER + number, f"片{number}") for number in range(1, 8)))
    first, second = small.run(), small.run()
    assert (first.given, first.left, second.given, second.left) == (4, 3, 3, 0)
    # Of one moment, as those of one chunk of writes may be.
    small.library.sync(small.later(), *((number, RIVER + number, f"新{number}") for number in range(1, 8)))
    passes = [small.run() for _ in range(3)]
    assert [each.left for each in passes] == [3, 0, 0]
    assert {title for title, _ in small.titles().values()} == {f"新{number}" for number in range(1, 8)}


def test_a_sync_that_is_stored_late_is_found(small, monkeypatch):
    monkeypatch.setattr(section_titles, "ROTATION", 1)
    small.sections(*((number, "") for number in range(1, 6)))
    small.run()
    dated = small.clock.now() - timedelta(minutes=30)
    small.later()
    small.run()
    small.library.sync(dated, (5, RIVER, "长河"))
    small.later()
    assert small.run().given == 1, "long before the rotation comes to it"


def test_the_rotation_goes_round_all_sections(small, monkeypatch):
    monkeypatch.setattr(section_titles, "ROTATION", 2)
    small.sections(*((number, "") for number in range(1, 6)))
    small.library.sync(small.clock.now() - timedelta(days=1), *((n, RIVER + n, f"片{n}") for n in range(1, 6)))
    assert small.run().given == 5
    small.library.withdraw(1, 5)
    assert sum(small.run().withdrawn for _ in range(3)) == 2
    assert small.titles()[1] == small.titles()[5] == ("", 0)


def test_a_library_that_cannot_be_read_changes_nothing_and_is_gone_on_with_later(small, tmp_path):
    small.sections((1, ""))
    small.library.sync(small.clock.now(), (1, RIVER, "长河"))
    assert small.run().given == 1
    small.sections((2, ""))
    dead = "mysql+pymysql://nobody:geheim@127.0.0.1:1/cms"
    settings = small.services.settings.model_copy(
        update={"library_url": type(small.services.settings.library_url)(dead)}
    )
    away = open_services(settings, "test", small.clock)
    found = give_titles(away)
    away.close()
    assert found is not None
    assert "DOUBAN_PIPELINE_DATABASE_URL" in found.problem
    assert "geheim" not in found.problem
    assert (found.withdrawn, found.sections) == (0, 0)
    assert small.titles() == {1: ("长河", RIVER), 2: ("", 0)}
    small.library.sync(small.later(), (2, WHALE, "蓝鲸"))
    assert small.run().given == 1


@pytest.mark.parametrize("values", [{"titles_from_douban": False}, {"library_url": ""}])
def test_without_the_setting_or_a_library_nothing_is_done(tmp_path, values):
    urls = f"sqlite:///{tmp_path / 'comments.sqlite'}", f"sqlite:///{tmp_path / 'cms.sqlite'}"
    for place in opened(*urls, tmp_path, **values):
        place.sections((1, ""))
        place.library.sync(place.clock.now(), (1, RIVER, "长河"))
        assert give_titles(place.services) is None
        assert place.titles() == {1: ("", 0)}


def test_a_library_without_tables_of_doubans_is_none(tmp_path):
    absent = tmp_path / "absent.sqlite"
    given = {"home": tmp_path, "library_url": f"sqlite:///{absent}"}
    settings = CommentsSettings(_env_file=None, database_url=f"sqlite:///{tmp_path / 'own.sqlite'}", **given)
    services = open_services(settings, "test", FakeClock())
    TREE.upgrade(services.engine)
    assert give_titles(services) is None
    assert not absent.exists()
    services.close()


def test_a_title_that_somebody_else_changed_in_between_stays(place):
    place.sections((1, ""))
    with place.services.engine.begin() as connection:
        [number] = connection.execute(select(section.c.section_id)).scalars()
        read = TitledSection(number, 1, 1, "别的", 0)
        store_titles(connection, [TitleChange(read, "长河", RIVER)], Mark("m", 3), NOW)
        assert read_mark(connection, "m") == Mark("m", 3, None)
        store_titles(connection, [], Mark("m", 4, NOW), NOW)
        assert read_mark(connection, "m") == Mark("m", 4, NOW)
        connection.execute(delete(mark))
    assert place.titles() == {1: ("", 0)}
