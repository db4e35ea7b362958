"""Titles of sections in Dagster: the asset that gives them, with a library, with a silent one, and without."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.tables import section
from douban_pipeline.core.other_databases import OtherDatabases
from douban_pipeline_tests.comments.linked_library import LinkedLibrary
from douban_pipeline_tests.comments.location import given_settings, metadata, planted, run
from douban_pipeline_tests.comments.sections import NOW
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def library(tmp_path: Path) -> Iterator[LinkedLibrary]:
    """A library with a confirmed link of video 1."""
    opened = LinkedLibrary(f"sqlite:///{tmp_path / 'cms.sqlite'}")
    opened.sync(NOW, (1, 90_000_101, "长河落日记事"))
    yield opened
    opened.close()


def title_of(services: CommentsServices) -> tuple[str, int]:
    with services.engine.connect() as connection:
        row = connection.execute(select(section.c.title, section.c.title_douban_id)).one()
    return row.title, row.title_douban_id


def test_a_pass_gives_titles_of_confirmed_links_and_takes_them_back(tmp_path, library, instance):
    settings = given_settings(tmp_path, library_url=library.url, database_url=f"sqlite:///{tmp_path / 'own.sqlite'}")
    services = open_services(settings, "test", FakeClock(NOW))
    TREE.upgrade(services.engine)
    planted(services)
    first = run(services, instance, "score_comments")
    assert first.success
    found = metadata(first, "section_titles")
    assert (found["given"], found["left_for_next_run"], found["problem"]) == (1, 0, "")
    assert "长河落日记事" in found["titles"]
    assert title_of(services) == ("长河落日记事", 90_000_101)
    library.withdraw(1)
    second = metadata(run(services, instance, "score_comments"), "section_titles")
    assert (second["given"], second["withdrawn"]) == (0, 1)
    assert title_of(services) == ("", 0)
    services.close()


def test_a_library_that_does_not_answer_is_one_warning_and_the_pass_goes_on(tmp_path, library, instance, capfd):
    own = f"sqlite:///{tmp_path / 'own.sqlite'}"
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"mysql+pymysql://nobody:geheim@127.0.0.1:{silent.getsockname()[1]}/cms"
        services = open_services(given_settings(tmp_path, library_url=url, database_url=own), "test", FakeClock(NOW))
        vars(services)["others"] = OtherDatabases(services.engine, seconds=0.2)
        TREE.upgrade(services.engine)
        planted(services)
        result = run(services, instance, "score_comments")
        services.close()
    assert result.success
    assert metadata(result, "hot_scores")["sections"] == 1
    assert "无法读取影视库" in metadata(result, "section_titles")["problem"]
    logged = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
    assert len([line for line in logged if "DOUBAN_PIPELINE_DATABASE_URL" in line]) == 1
    assert not [line for line in logged if "geheim" in line]


@pytest.mark.parametrize("named", [False, True])
def test_without_a_library_the_pass_has_no_titles_to_give(tmp_path, instance, named):
    given = {"library_url": f"sqlite:///{tmp_path / 'absent.sqlite'}"} if named else {}
    own = f"sqlite:///{tmp_path / 'own.sqlite'}"
    services = open_services(given_settings(tmp_path, database_url=own, **given), "test", FakeClock(NOW))
    TREE.upgrade(services.engine)
    planted(services)
    result = run(services, instance, "score_comments")
    assert result.success
    assert metadata(result, "section_titles")["given"] == 0
    services.close()
