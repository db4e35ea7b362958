"""Doubtful videos that visitors discuss come first in the review queue; without comments it is ordered as before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from douban_pipeline.comments.store.tables import section
from douban_pipeline.core import other_databases
from douban_pipeline.core.database import open_engine
from douban_pipeline.douban.review.worklist.discussions import HOT_FOR, hot_comments
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, video

QUIET, DISCUSSED, OTHER = 4, 5, 6
NAMES = {QUIET: "狂飙", DISCUSSED: "繁花", OTHER: "漫长的季节"}


@pytest.fixture
def library(shared_library):
    """Three videos that wait for a person alike; the comments have no tables yet."""
    fresh = shared_library.renewed([video(n, vod_name=name, vod_hits=1_000) for n, name in NAMES.items()])
    for vod_id in (QUIET, DISCUSSED, OTHER):
        fresh.set_state(vod_id, douban_review_status="REVIEW", douban_review_reason="可疑")
    section.drop(fresh.engine, checkfirst=True)
    yield fresh
    section.drop(fresh.engine, checkfirst=True)


def services_of(library, **changes):
    """Return the library's services with other settings; comments are installed unless ``systems`` says otherwise."""
    given = {"database_url": library.url, "systems": ("douban", "comments"), **changes}
    names = ("systems", "comments_url")
    update = {name: getattr(GivenSettings(**given), name) for name in names}
    return replace(library.services, settings=library.services.settings.model_copy(update=update))


def comment_on(engine, now, **counts):
    """Give videos sections with so many comments: ``video_5=300``."""
    section.create(engine, checkfirst=True)
    with engine.begin() as connection:
        for name, count in counts.items():
            kind, object_id = name.split("_")
            row = {"type": 1 if kind == "video" else 2, "object_id": int(object_id), "visible_count": count}
            empty = {"settings": {}, "pinned": [], "created_at": now, "active_at": now}
            connection.execute(section.insert().values(**empty, **row))


def order_of(services) -> list[int]:
    return [entry.vod_id for entry in review_queue_of(services, most=9).first]


def test_what_is_discussed_comes_first_for_a_week(library):
    services, now = services_of(library), library.clock.now()
    assert order_of(services) == [QUIET, DISCUSSED, OTHER], "an installation whose comments have no tables yet"
    comment_on(library.engine, now, video_5=3_000, article_6=90_000)
    assert order_of(services) == [DISCUSSED, QUIET, OTHER]
    assert hot_comments(services) == hot_comments(services, [DISCUSSED, OTHER]) == {DISCUSSED: 3_000}
    assert hot_comments(services, [OTHER]) == hot_comments(services, []) == {}
    library.clock.advance(seconds=(HOT_FOR + timedelta(seconds=1)).total_seconds())
    assert order_of(services) == [QUIET, DISCUSSED, OTHER]


def test_without_the_system_nothing_is_discussed(library):
    comment_on(library.engine, library.clock.now(), video_5=3_000)
    assert order_of(services_of(library, systems=("douban",))) == [QUIET, DISCUSSED, OTHER]


def test_the_comments_are_read_where_their_setting_says(library, tmp_path):
    elsewhere = tmp_path / "comments.sqlite"
    services = services_of(library, comments_url=f"sqlite:///{elsewhere}")
    assert order_of(services) == [QUIET, DISCUSSED, OTHER]
    assert not elsewhere.exists(), "asking makes no file"
    engine = open_engine(f"sqlite:///{elsewhere}")
    comment_on(engine, library.clock.now(), video_6=5_000)
    engine.dispose()
    assert hot_comments(services) == {OTHER: 5_000}
    assert order_of(services) == [OTHER, QUIET, DISCUSSED]


def test_a_database_that_does_not_answer_is_a_warning_and_no_more(library, caplog):
    dead = services_of(library, comments_url="postgresql+psycopg2://nobody:geheim@127.0.0.1:1/x")
    assert order_of(dead) == [QUIET, DISCUSSED, OTHER]
    assert "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL" in caplog.text
    assert "geheim" not in caplog.text


def test_the_comments_database_is_opened_once_and_closed_with_the_services(library, tmp_path, monkeypatch):
    place = tmp_path / "comments.sqlite"
    engine = open_engine(f"sqlite:///{place}")
    comment_on(engine, library.clock.now(), video_6=5_000)
    engine.dispose()
    opened = []

    def open_and_note(*given, **named):
        opened.append(open_engine(*given, **named))
        return opened[-1]

    monkeypatch.setattr(other_databases, "open_engine", open_and_note)
    services = services_of(library, comments_url=f"sqlite:///{place}")
    assert hot_comments(services) == hot_comments(services) == hot_comments(services, [OTHER]) == {OTHER: 5_000}
    [engine] = opened
    assert engine.pool.checkedin() == 1
    services.others.close()
    assert engine.pool.checkedin() == 0
