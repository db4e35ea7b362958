"""What every system of the registry gets from the commands of operators: one test for all of them."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from dagster import DagsterInstance

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.settings_base import SYSTEMS
from douban_pipeline.ops.systems.registry import MODULES, system_named
from douban_pipeline_tests.harness.fixtures.calling import (
    Called,
    caller,  # noqa: F401 (a fixture)
)

NAMES = tuple(MODULES)


def url_setting(name: str) -> str:
    return f"DOUBAN_PIPELINE_{name.upper()}_DATABASE_URL"


def findings(reported: Called) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in json.loads(reported.said)["findings"]}


def test_every_system_is_one_that_the_setting_may_name():
    assert set(NAMES) <= set(SYSTEMS)
    assert [system_named(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_system_is_set_up_checked_and_upgraded_alone(name, database_url, tmp_path, call):
    given = {url_setting(name): database_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    asked = ("check", "--system", name, "--no-dagster", "--json")
    before = call(*asked, **given)
    assert before.status == 1
    assert findings(before)[f"{name}.tables"]["remedy"] == f"run `douban-pipeline setup --system {name}`"

    plan = call("upgrade", "--system", name, "--dry-run", **given)
    assert "CREATE TABLE" in plan.said
    assert findings(call(*asked, **given))[f"{name}.tables"]["state"] == "fail", "a dry run changes nothing"

    done = call("setup", "--system", name, **given)
    assert done.status == 0, done.said
    assert "version none → " in done.said
    well = findings(call(*asked, **given))
    assert {found["state"] for found in well.values()} == {"ok"}
    assert {f"{name}.{what}" for what in ("settings", "tables", "grants", "clock")} <= set(well)

    tree = system_named(name).tree
    engine = open_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {tree.version_table} SET version_num = '9999'"))
    engine.dispose()
    newer = call("check", "--system", name, "--no-dagster", **given)
    assert "this release knows none after" in newer.said
    assert call("upgrade", "--system", name, **given).status == 2


@pytest.mark.mariadb
@pytest.mark.parametrize("name", NAMES)
def test_the_grants_of_a_system_suffice(name, mariadb_url, tmp_path, call):
    owner = open_engine(mariadb_url)
    user = f"dt_{tmp_path.name[-20:]}".replace("-", "_")[:30]
    account = owner.url.set(username=user, password="p").render_as_string(hide_password=False)
    given = {url_setting(name): account, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    asked = ("check", "--system", name, "--no-dagster")
    with owner.begin() as connection:
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'", (user,))
    try:
        said = call("grants", "--system", name, "--user", user, "--host", "%", **given).said
        statements = [line for line in said.splitlines() if line.startswith("GRANT")]
        assert "cannot be reached" not in call(*asked, **given).said
        with owner.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement.replace("%", "%%"))
        assert call("setup", "--system", name, **given).status == 0
        well = call(*asked, **given)
        assert well.status == 0, well.said
        with owner.begin() as connection:
            first = system_named(name).tree.metadata.sorted_tables[0].name
            connection.exec_driver_sql(f"REVOKE ALL ON {first} FROM %s@'%%'", (user,))
            connection.exec_driver_sql(f"GRANT SELECT ON {first} TO %s@'%%'", (user,))
        assert f"this account lacks INSERT ON {first}, UPDATE ON {first}" in call(*asked, **given).said
    finally:
        with owner.begin() as connection:
            connection.exec_driver_sql("DROP USER %s@'%%'", (user,))
        owner.dispose()


def test_where_accounts_do_not_matter_there_is_nothing_to_grant(tmp_path, call):
    said = call("grants", "--system", "feeds", DOUBAN_PIPELINE_HOME=str(tmp_path)).said
    assert said.startswith("-- feeds: sqlite:///")


def test_the_setting_says_which_systems_are_served(tmp_path, call):
    given = {"DOUBAN_PIPELINE_SYSTEMS": "feeds", "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    assert call("setup", **given).status == 0
    names = {name.partition(".")[0] for name in findings(call("check", "--no-dagster", "--json", **given))}
    assert names == {"feeds"}
    shown = call("settings", **given, COLUMNS="300").said
    assert "DOUBAN_PIPELINE_FEEDS_PROFILE" in shown
    assert "DOUBAN_PIPELINE_TOP_N" not in shown
    assert "there is no system 'nix'" in call("check", "--system", "nix", **given).said


def test_a_system_s_wrong_setting_is_a_finding_beside_the_others(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DOUBAN_PIPELINE_FEEDS_WORKERS": "0"}
    reported = findings(call("check", "--system", "feeds", "--no-dagster", "--json", **given))
    assert "DOUBAN_PIPELINE_FEEDS_WORKERS = '0' is not allowed" in reported["feeds.settings"]["told"]


def test_the_pools_of_the_systems_served_are_looked_at(tmp_path, call):
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path), "DAGSTER_HOME": str(tmp_path), "DOUBAN_PIPELINE_SYSTEMS": "feeds"}
    pools = [*system_named("feeds").pool_limits()]
    before = findings(call("check", "--json", **given))["pools"]
    assert before["state"] == "fail"
    assert all(pool in before["told"] for pool in pools)
    assert "feeds_web 2" in call("setup", **given).said
    assert findings(call("check", "--json", **given))["pools"]["state"] == "ok"
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        assert {limit.name for limit in instance.event_log_storage.get_pool_limits()} == set(pools)


def test_accounts_without_werss_are_told(tmp_path, call):
    given = {"DOUBAN_PIPELINE_HOME": str(tmp_path)}
    call("setup", "--system", "feeds", **given)
    added = call("feeds", "add", "MP_WXS_1", "--kind", "werss", DOUBAN_PIPELINE_FEEDS_WERSS_URL="http://werss", **given)
    assert added.status == 0, added.said
    reported = findings(call("check", "--system", "feeds", "--no-dagster", "--json", **given))
    assert "FEEDS_WERSS_URL is not set" in reported["feeds.werss"]["told"]
