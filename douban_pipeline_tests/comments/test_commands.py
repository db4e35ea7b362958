"""The command ``comment-worker``: what waits is applied, and what is missing is said."""

from __future__ import annotations

from douban_pipeline.comments.store import events
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.sections import ensure_section, find_section
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.fixtures.calling import (
    caller,  # noqa: F401 (a fixture)
)
from douban_pipeline_tests.harness.fixtures.clocks import START


def test_what_waits_is_applied_once(tmp_path, call):
    url = f"sqlite:///{tmp_path / 'comments.sqlite'}"
    given = {"DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    assert call("setup", "--system", "comments", **given).status == 0
    engine = open_engine(url)
    with engine.begin() as connection:
        section = ensure_section(connection, 1, 7, START)
        event = EventInput(section, EventKind.PUBLISH, Actor("u:2", 2), "k", 5, {"content": "好看"})
        events.append(connection, [event], START)
    assert "1 events applied" in call("comment-worker", "--once", **given).said
    assert "0 events applied" in call("comment-worker", "--once", **given).said
    with engine.connect() as connection:
        found = find_section(connection, 1, 7)
    engine.dispose()
    assert found is not None
    assert found["visible_count"] == 1


def test_a_list_of_words_that_is_missing_is_named(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_COMMENTS_WORDS_FOLDER": str(tmp_path / "none")}
    refused = call("comment-worker", "--once", **given)
    assert refused.status == 2
    assert "maccms.php" in refused.said
