"""A run gets services of its own, configured by nothing that a launchpad could show, and they are closed after it."""

from __future__ import annotations

import dagster as dg
import pytest

from douban_pipeline.core.http import Fetcher
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, build_library


def test_each_run_opens_services_and_closes_them_with_their_http_clients(sqlite_url: str) -> None:
    opened: list[Services] = []
    fetchers: list[Fetcher] = []

    def open_once_more(run: dg.DagsterRun | None) -> Services:
        assert run is not None
        opened.append(open_services(GivenSettings(database_url=sqlite_url)))
        return opened[-1]

    @dg.op
    def use(services: dg.ResourceParam[Services]) -> None:
        assert services is opened[-1]
        fetcher = services.fetcher("any", seconds=1)
        fetchers.append(fetcher)
        assert not fetcher.closed

    @dg.job(resource_defs={"services": platform_resource(open_once_more).get_resource_definition()})
    def work() -> None:
        use()

    with build_library(sqlite_url, []):
        for _ in range(2):
            assert work.execute_in_process().success
    assert len(opened) == 2
    assert [fetcher.closed for fetcher in fetchers] == [True, True]


def test_the_resource_takes_no_config() -> None:
    job = build_defs(settings=GivenSettings()).get_repository_def().get_job("prune_history")
    with pytest.raises(dg.DagsterInvalidConfigError, match="database_url"):
        job.execute_in_process(run_config={"resources": {"services": {"config": {"database_url": "sqlite://"}}}})


def test_the_resource_can_be_replaced(sqlite_url: str) -> None:
    with build_library(sqlite_url, []) as library:
        definitions = build_defs(settings=GivenSettings(), resource_overrides={"services": library.services})
        assert definitions.get_repository_def().get_job("prune_history").execute_in_process().success
