"""Links open what they say: the jobs exist, take the config that is filled in, and the address is not too long."""

from __future__ import annotations

import dagster as dg
import pytest

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.reports.pages import links
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.reports.pages.planting import HOSTILE, launched
from douban_pipeline_tests.harness.fixtures.library import GivenSettings


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_defs(settings=GivenSettings()).get_repository_def()


LINKS = {
    **{action.value: links.decision("x", 1024, action) for action in DecisionAction},
    "set_id with an id": links.decision("x", 1024, DecisionAction.set_id, douban_id=1292052),
    "ignore for days": links.decision("x", 1024, DecisionAction.ignore, days=links.IGNORED_DAYS),
    "clear others": links.clear_others("x", 1292052, 1024),
    "ignore others": links.ignore_others("x", list(range(4_200_000_000, 4_200_000_500)), 4_200_000_501),
    "take back": links.take_back("x", "3f2a9c0d1e5b7a64"),
    "history": links.history("x", 1024),
}


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_the_launchpad_takes_what_is_filled_in(link: links.Link, repository: dg.RepositoryDefinition) -> None:
    job, config = launched(link.address)
    assert dg.validate_run_config(repository.get_job(job), config)
    assert link.address.startswith("/locations/")
    assert len(link.address) <= MOST_CHARACTERS


def test_a_batch_that_a_link_launches_only_shows_first() -> None:
    for link in (LINKS["clear others"], LINKS["ignore others"], LINKS["take back"]):
        _, config = launched(link.address)
        [op] = config["ops"].values()
        assert op["config"]["dry_run"] is True


def test_a_title_cannot_leave_the_search() -> None:
    address = links.douban_search("x", f"{HOSTILE}&cat=1#x").address
    host, _, query = address.partition("?")
    assert host == "https://search.douban.com/movie/subject_search"
    assert query.startswith("search_text=")
    assert query.endswith("&cat=1002")
    assert query.count("&") == 1
    assert not set(query) & set("#<>|`()[]\"' ")


def test_a_run_is_linked_only_where_there_is_one() -> None:
    link = links.run("0b1c2d3e-1111-2222-3333-444455556666")
    assert isinstance(link, links.Link)
    assert (link.text, link.address) == ("0b1c2d3e", "/runs/0b1c2d3e-1111-2222-3333-444455556666")
    assert links.run("") == ""
