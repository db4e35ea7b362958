"""A system that is added as CONTRIBUTING says has everything that the others have, without a line elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import typer
from typer.testing import CliRunner

import douban_pipeline
from douban_pipeline import locations
from douban_pipeline.core import environment
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.system import system_named
from douban_pipeline.dagster_kit import worker_host
from douban_pipeline.demo.setup import pool_limits
from douban_pipeline.ops.cli import add_commands_of_systems
from douban_pipeline.serve import server
from douban_pipeline_tests.harness.fixtures.calling import (
    Caller,
    caller,  # noqa: F401 (a fixture)
    url_setting,
)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The toy's package beside the others, and its name in the list; it alone is installed."""
    beside = Path(__file__).parent / "toy_system"
    monkeypatch.setattr(douban_pipeline, "__path__", [*douban_pipeline.__path__, str(beside)])
    monkeypatch.setattr(locations, "__path__", [*locations.__path__, str(beside / "locations")])
    monkeypatch.setattr(environment, "SYSTEMS", (*environment.SYSTEMS, "toy"))
    monkeypatch.setenv("DOUBAN_PIPELINE_SYSTEMS", "toy")
    monkeypatch.setenv("DOUBAN_PIPELINE_HOME", str(tmp_path))


def test_its_tables_are_set_up_checked_granted_and_saved(any_database_url, tmp_path, call: Caller):
    given = {url_setting("toy"): any_database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    given["DOUBAN_PIPELINE_SYSTEMS"] = "toy"
    assert call("check", "--no-dagster", **given).status == 1
    assert "version none → 0001" in call("setup", **given).said
    engine = open_engine(any_database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO toy_note (text) VALUES ('第一')"))
    checked = call("check", "--no-dagster", "--json", **given)
    assert checked.status == 0, checked.said
    [found] = [each for each in json.loads(checked.said)["findings"] if each["name"] == "toy.notes"]
    assert found["told"] == "1 notes"
    granted = call("grants", **given).said
    assert "GRANT SELECT ON cms.mac_vod" in granted
    assert ("`toy_note`" in granted) == (engine.dialect.name in ("mysql", "mariadb"))
    assert url_setting("toy") in call("settings", **given).said
    assert call("backup", str(tmp_path / "saved"), **given).status == 0
    [saved] = (tmp_path / "saved").glob("toy-*.sql.gz")
    assert "第一" in gzip.decompress(saved.read_bytes()).decode()
    engine.dispose()


def test_its_commands_are_on_the_command_line():
    app = typer.Typer()
    add_commands_of_systems(app)
    assert CliRunner().invoke(app, ["toy", "greet"]).output == "hello\n"


def test_its_pages_its_definitions_and_its_pools_are_there():
    async def asked(path: str) -> Any:
        transport = httpx.ASGITransport(server.application())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get(path)).json()

    assert asyncio.run(asked("/toy/")) == "hello"
    assert asyncio.run(asked("/healthz"))["systems"]["toy"] == "ok"
    assert worker_host.locations() == ["douban_pipeline.locations.toy"]
    repository = import_module(system_named("toy").location).defs.get_repository_def()
    assert [key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()] == ["toy_notes"]
    assert pool_limits()["toy_notes"] == 1
