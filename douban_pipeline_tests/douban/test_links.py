"""Links open what they say: the jobs exist, take the config that is filled in, and the address is not too long."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS, Launchpad
from douban_pipeline.core.ui.lists.list_page import ListLink
from douban_pipeline.dagster_kit.launchpad import location_of
from douban_pipeline.douban import links
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.reports.planting import HOSTILE, launched
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.locations import fits_schema


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_defs(settings=GivenSettings()).get_repository_def()


LAUNCHES = {
    **{action.value: links.decide(1024, action, dry_run=False) for action in DecisionAction},
    "set_id with an id": links.decide(1024, DecisionAction.set_id, dry_run=False, douban_id=1292052),
    "ignore for days": links.decide(1024, DecisionAction.ignore, dry_run=False, days=links.IGNORED_DAYS),
    "clear others": links.clear_others(1292052, 1024),
    "ignore others": links.ignore_others(list(range(4_200_000_000, 4_200_000_500)), 4_200_000_501),
    "revert": links.revert(batch_id="3f2a9c0d1e5b7a64"),
    "history": links.history(1024),
}


@pytest.mark.parametrize("launch", LAUNCHES.values(), ids=LAUNCHES)
def test_the_launchpad_takes_what_is_filled_in(launch: Launchpad, repository: dg.RepositoryDefinition) -> None:
    path = launch.path(links.LOCATION)
    job, config = launched(path)
    assert fits_schema(repository.get_job(job), config)
    assert path.startswith("/locations/")
    assert len(path) <= MOST_CHARACTERS


def test_a_batch_that_a_link_launches_only_shows_first() -> None:
    for launch in (LAUNCHES["clear others"], LAUNCHES["ignore others"], LAUNCHES["revert"]):
        _, config = launched(launch)
        [op] = config["ops"].values()
        assert op["config"]["dry_run"] is True


def test_a_title_cannot_leave_the_search() -> None:
    search = ListLink("", links.douban_search_of("{0}"))
    address = search.filled(links.searched(f"{HOSTILE}&cat=1#x"))
    host, _, query = address.partition("?")
    assert host == "https://search.douban.com/movie/subject_search"
    assert query.startswith("search_text=")
    assert query.endswith("&cat=1002")
    assert query.count("&") == 1
    assert not set(query) & set("#<>|`()[]\"' ")


def test_a_run_is_linked_by_its_id() -> None:
    assert links.run_path("0b1c2d3e-1111") == "/runs/0b1c2d3e-1111"


def test_the_location_is_that_of_the_run() -> None:
    grpc = GrpcServerCodeLocationOrigin(host="localhost", port=4000, location_name="影库")
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(grpc, "__repository__"), "douban_chain")
    run = dg.DagsterRun(job_name="douban_chain", remote_job_origin=origin)
    assert location_of(run) == "__repository__@影库"
    path = links.history(1).path(location_of(run))
    assert path.startswith("/locations/__repository__@%E5%BD%B1%E5%BA%93/jobs/video_history/playground/setup?config=")
    assert [location_of(dg.DagsterRun(job_name="douban_chain")), location_of(None)] == ["", ""]
