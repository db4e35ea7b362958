"""A site over a real CMS, installed once for each process of the tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import dagster as dg
import pytest
from sqlalchemy import make_url

from douban_pipeline_tests.conftest import missing, server_url
from douban_pipeline_tests.harness.rig.live_cms import LiveCms, cms_refusal
from douban_pipeline_tests.live_cms.live_site import LiveSite, live_site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker("cms")
            item.add_marker("mariadb")


@pytest.fixture(scope="session")
def new_cms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCms]:
    """A CMS without videos."""
    server = make_url(server_url("mariadb"))
    refusal = cms_refusal(server)
    if refusal is not None:
        missing("cms", refusal)
    folder = tmp_path_factory.mktemp("cms") / "site"
    with LiveCms(folder, server, f"douban_test_{uuid.uuid4().hex[:12]}") as cms:
        yield cms


@pytest.fixture(scope="session")
def site(
    new_cms: LiveCms, dagster_instance: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSite]:
    """The site that all tests share; each has films of its own."""
    with live_site(new_cms, tmp_path_factory.mktemp("home"), dagster_instance) as site:
        yield site
