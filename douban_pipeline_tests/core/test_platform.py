"""What one process opened is closed with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Table

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import SourceLimits, SourcePlatform
from douban_pipeline.core.settings_base import SystemSettings
from douban_pipeline.douban.store.migrations import tree_of
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

TABLES = own_tables("mac_")


class Site(SourcePlatform):
    """A system with two sources."""

    @property
    def tree(self) -> MigrationTree:
        return tree_of("mac_")

    @property
    def archive_table(self) -> Table:
        return TABLES.snapshot

    @property
    def gate_table(self) -> Table:
        return TABLES.gate

    @property
    def longest_call(self) -> timedelta:
        return timedelta(seconds=20)

    def source_limits(self) -> dict[str, SourceLimits]:
        return {"feed": SourceLimits(30, 2, requests_per_day=1000), "model": SourceLimits(20, 1, tokens_per_day=500)}


@pytest.fixture
def site(sqlite_url: str) -> Site:
    site = Site(open_engine(sqlite_url), FakeClock(), SystemSettings())
    TABLES.metadata.create_all(site.engine)
    return site


def test_the_gate_knows_the_limits_of_every_source(site: Site) -> None:
    found = {status.source: status for status in site.gate.status()}
    assert set(found) == {"feed", "model"}
    assert (found["feed"].requests_per_minute, found["feed"].requests_per_day) == (30, 1000)
    assert found["model"].tokens_per_day == 500
    site.close()


def test_closing_closes_the_http_clients_and_may_be_repeated(site: Site) -> None:
    fetchers = [site.fetcher("feed", seconds=5), site.fetcher("model", seconds=90, headers={"Authorization": "k"})]
    assert not any(fetcher.closed for fetcher in fetchers)
    site.close()
    assert all(fetcher.closed for fetcher in fetchers)
    site.close()
