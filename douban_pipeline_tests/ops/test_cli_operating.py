"""Checks, upgrades and grants by the command line."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from dagster import DagsterInstance, build_sensor_context
from sqlalchemy.exc import OperationalError

from douban_pipeline import __version__
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.dagster_kit.runs import set_pool_limits
from douban_pipeline.demo.sample import load_subjects
from douban_pipeline.douban.chain.due.jobs import take_in_changes
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.mounts import mounts
from douban_pipeline.douban.operations import missing_cms_grants, written_columns
from douban_pipeline.douban.resources import POOL_LIMITS
from douban_pipeline.douban.sensors import intake_sensor
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.harness.fixtures.calling import caller  # noqa: F401 (a fixture)
from douban_pipeline_tests.harness.fixtures.client_programs import client_program
from douban_pipeline_tests.harness.fixtures.library import GivenSettings, Library, build_library, video
from douban_pipeline_tests.stand_ins.replay import ReplayServer

HEAD = migrations.tree_of("mac_").head

_FOR_REAL = {"ops": {"take_in": {"config": {"dry_run": False}}}}


def ddl(engine: sa.Engine, prefix: str) -> dict[str, list[str]]:
    """Return how our tables are, line by line, without their prefix, and the version that is noted."""
    with engine.connect() as connection:
        names = [name for name in sa.inspect(connection).get_table_names() if name.startswith(f"{prefix}douban_")]
        made = {name: connection.exec_driver_sql(f"SHOW CREATE TABLE {name}").one()[1] for name in names}
    shape = {
        name.removeprefix(prefix): sorted(line.strip(", ") for line in text.replace(prefix, "").splitlines())
        for name, text in made.items()
    }
    return shape | {"version": [str(migrations.tree_of(prefix).current(engine))]}


# --- upgrade ----------------------------------------------------------------------------------------------------------


@pytest.mark.mariadb
def test_the_printed_sql_run_by_hand_does_what_an_upgrade_does(mariadb_url, call):
    engine = open_engine(mariadb_url)
    settings = {"DOUBAN_PIPELINE_DATABASE_URL": mariadb_url, "DOUBAN_PIPELINE_TABLE_PREFIX": "b_"}
    own_tables("b_").video.create(engine)  # left by an upgrade that was cut off
    head, _, sql = call("upgrade", "--plan", **settings).said.partition("\n")
    assert f"version none → {HEAD}" in head
    assert ddl(engine, "b_")["version"] == ["None"], "nothing was changed"
    with client_program(engine.url, "mariadb", "mysql") as client:
        subprocess.run([*client, str(engine.url.database)], input=sql.encode(), check=True)
    assert migrations.tree_of("a_").upgrade(engine) == (None, HEAD)
    assert ddl(engine, "b_") == ddl(engine, "a_")
    said = call("upgrade", **settings).said
    assert "-- nothing to do" in said
    assert "ok   profile   matches are scored by the profile calibrated, the default" in said
    engine.dispose()


@pytest.mark.parametrize("arguments", [("upgrade",), ("upgrade", "--plan"), ("setup",)])
def test_tables_of_a_newer_release_are_left_alone(arguments, sqlite_url, tmp_path, call):
    with build_library(sqlite_url, [video(1)]) as library:
        library.execute("UPDATE mac_douban_version SET version_num = '9999'")
        result = call(*arguments, DOUBAN_PIPELINE_DATABASE_URL=sqlite_url, DAGSTER_HOME=str(tmp_path))
        assert result.status == 2
        said = " ".join(result.said.split())
        assert (
            f"version 9999, made by a newer release; the newest version of this release, {__version__}, is {HEAD}"
            in said
        )
        assert library.query("SELECT version_num FROM mac_douban_version") == [{"version_num": "9999"}]


# --- grants -----------------------------------------------------------------------------------------------------------


@contextmanager
def account(url: str, call, **settings: str):
    """An account with just the rights that the command prints, and the library as that account opens it."""
    user, owner = f"dt_{uuid.uuid4().hex[:10]}", open_engine(url)
    result = call("grants", "--user", user, "--host", "%", DOUBAN_PIPELINE_DATABASE_URL=url, **settings)
    assert result.status == 0, result.said
    try:
        with owner.connect() as connection:
            connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'password'", (user,))
            for line in result.said.splitlines():
                if not line.startswith("--"):
                    connection.exec_driver_sql(line.rstrip(";").replace("%", "%%"))
        restricted = owner.url.set(username=user, password="password")
        with Library(restricted.render_as_string(hide_password=False), clock=SystemClock()) as library:
            yield library
    finally:
        with owner.connect() as connection:
            connection.exec_driver_sql("DROP USER IF EXISTS %s@'%%'", (user,))
        owner.dispose()


@pytest.mark.mariadb
def test_the_account_of_one_system_is_never_refused_the_tables_of_another(mariadb_url, call):
    """MariaDB refuses to say whether a table exists that an account may not read: intake must not ask then."""
    with build_library(mariadb_url, [video(1)]) as owned:
        owned.intake.initialise(spread=False)
    with account(mariadb_url, call) as library, DagsterInstance.ephemeral() as instance:
        context = build_sensor_context(instance=instance, resources={"services": library.services})
        skipped = intake_sensor(context)
        assert skipped.skip_message == "CMS 没有新增或改动的影片"
        done = take_in_changes.execute_in_process(
            _FOR_REAL,
            instance=instance,
            resources={"services": library.services},
        )
        [event] = [each for each in done.all_events if each.event_type_value == "STEP_OUTPUT"]
        assert "newcomers_problem" not in event.step_output_data.metadata


@pytest.mark.mariadb
def test_the_grants_suffice_for_every_write_and_for_nothing_else(mariadb_url, call):
    with build_library(mariadb_url, [video(1)]) as owned:
        for table in (*owned.tables.metadata.sorted_tables, sa.table("mac_douban_version")):
            owned.execute(f"DROP TABLE {table.name}")
        policies = "vod_pic=never,vod_score=overwrite"
        with account(mariadb_url, call, DOUBAN_PIPELINE_FIELD_POLICIES=policies) as library:
            migrations.tree_of("mac_").upgrade(library.engine)
            library.intake.initialise(spread=False)
            settings = GivenSettings(field_policies={"vod_pic": "never", "vod_score": "overwrite"})
            written = written_columns(settings)
            row = library.row(1)
            values = {name: row[name] for name in written}
            [outcome] = library.change_log().write([Change(1, "sync", values, values)])
            assert outcome.state is ChangeState.APPLIED
            assert missing_cms_grants(library.engine, settings, library.cms) == []
            denied = ["vod_pic", "vod_name", "vod_status", "vod_time", "vod_lock"]
            for column in denied:
                with pytest.raises(OperationalError, match="denied"):
                    library.set_cms(1, **{column: row[column]})
            for forbidden in ("DELETE FROM mac_vod", "DELETE FROM mac_type", "DROP TABLE mac_vod"):
                with pytest.raises(OperationalError, match="denied"):
                    library.execute(forbidden)
            # The same rights under the default policies: one column more is wanted, and a check says which.
            assert missing_cms_grants(library.engine, GivenSettings(), library.cms) == ["UPDATE (vod_pic) ON mac_vod"]
            result = call("check", "--no-dagster", DOUBAN_PIPELINE_DATABASE_URL=library.url)
            assert result.status == 1
            assert "fail grants    this account lacks UPDATE (vod_pic) ON mac_vod" in result.said
            assert "password" not in result.said


def test_grants_hold_no_password_and_follow_the_settings(call):
    url = "mysql+pymysql://root:geheim@db/cms`x"
    result = call("grants", DOUBAN_PIPELINE_DATABASE_URL=url, DOUBAN_PIPELINE_FIELD_POLICIES="vod_content=never")
    assert "geheim" not in result.said
    assert result.said.startswith("-- CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '<password>';\n"), "of the URL"
    assert "ON `cms``x`.`mac_douban_log` TO" in result.said
    [columns] = [line for line in result.said.splitlines() if "UPDATE (" in line]
    assert "`vod_douban_id`" in columns
    assert "vod_content" not in columns
    intros = {"DOUBAN_PIPELINE_AI_INTROS": "true", "OPENROUTER_API_KEY": "k"}
    assert "`vod_content`" in call("grants", DOUBAN_PIPELINE_DATABASE_URL=url, **intros).said


# --- check ------------------------------------------------------------------------------------------------------------


def findings(reported) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in json.loads(reported.said)["findings"]}


@pytest.fixture(scope="module")
def upstream():
    """Sources that answer, and the settings that name them."""
    with ReplayServer(load_subjects()) as replay:
        yield replay


def asking(upstream) -> dict[str, str]:
    return {"DOUBAN_PIPELINE_DOUBAN_URL": upstream.douban_url, "DOUBAN_PIPELINE_SEARCH_URL": upstream.search_url}


WORST = re.compile(r"\w+: (ok|warn|fail)(, \w+: (ok|warn|fail))*")


def lines(result) -> dict[str, str]:
    """Return what was said, by what was looked at: a line a finding, then perhaps the worst of each system in one."""
    findings = [line for line in result.said.splitlines() if not WORST.fullmatch(line)]
    assert all(line.split()[0] in ("ok", "warn", "fail") for line in findings), result.said
    return {line.split()[1]: line for line in findings}


def test_a_check_names_what_is_amiss_with_its_remedy(database_url, tmp_path, call, upstream):
    home = {"DOUBAN_PIPELINE_HOME": str(tmp_path), **asking(upstream)}
    with build_library(database_url, [video(1)], clock=SystemClock()) as library:
        well = call("check", "--no-dagster", "--json", DOUBAN_PIPELINE_DATABASE_URL=database_url, **home)
        assert well.status == 0, well.said
        assert {finding["state"] for finding in findings(well).values()} == {"ok"}
        library.execute("DROP TABLE mac_douban_version")
        old = call("check", "--no-dagster", "--json", DOUBAN_PIPELINE_DATABASE_URL=database_url, **home)
        assert old.status == 1
        assert findings(old)["tables"]["remedy"] == "run `douban-pipeline setup`"
        migrations.tree_of("b_").upgrade(library.engine)
        library.execute("ALTER TABLE b_douban_version RENAME TO mac_douban_version")
        library.execute("UPDATE mac_douban_version SET version_num = '9999'")
        new = call("check", "--no-dagster", DOUBAN_PIPELINE_DATABASE_URL=database_url, **home)
        assert "fail tables    our tables are at version 9999, made by a newer release" in new.said


def test_a_closed_gate_fails_the_check_and_is_in_the_health(sqlite_url, tmp_path, call, upstream, monkeypatch):
    settings = {
        "DOUBAN_PIPELINE_DATABASE_URL": sqlite_url,
        "DOUBAN_PIPELINE_HOME": str(tmp_path),
        "DOUBAN_PIPELINE_SYSTEMS": "douban",
        **asking(upstream),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with build_library(sqlite_url, [video(1)], clock=SystemClock()) as library:
        gate, now = library.services.gate, library.clock.now()
        [health] = [each for each in mounts(GuessGuard(Counters(SystemClock()))) if each.name == "review"]

        def found() -> tuple[int, str, str, str | None]:
            checked = call("check", "--no-dagster", "--json", **settings)
            said = findings(checked)["douban"]
            return checked.status, said["state"], said["told"], health.worry()

        status, state, told, worry = found()
        assert (status, state, "answers" in told, worry) == (0, "ok", True, None)
        gate.open("douban", now + timedelta(minutes=30), "验证码页面")
        closed = "its gate takes no calls: 验证码页面"
        assert found() == (1, "fail", closed, "gates closed: douban")
        gate.open("douban", now + timedelta(minutes=30), "验证码页面", by="小王")
        assert found()[:2] == (0, "warn"), "a person knows"
        gate.open("douban", now - timedelta(minutes=1), "验证码页面")
        assert found()[:2] == (1, "fail"), "nobody has asked since"
        gate.open("douban", now + timedelta(seconds=60), "429")
        assert found()[:2] == (0, "warn"), "it passes by itself"
        assert health.problem() is None
    monkeypatch.setenv("DOUBAN_PIPELINE_DATABASE_URL", "mysql+pymysql://site@127.0.0.1:1/maccms")
    [dead] = [each for each in mounts(GuessGuard(Counters(SystemClock()))) if each.name == "review"]
    assert dead.problem() == "OperationalError"


def test_a_library_judged_by_the_old_default_is_told_before_another_profile_judges(sqlite_url, tmp_path, call):
    settings = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}

    def found(**given: str) -> tuple[str, str]:
        profile = findings(call("check", "--no-dagster", "--json", **settings, **given))["profile"]
        return profile["state"], f"{profile['told']} → {profile['remedy']}"

    own = "DOUBAN_PIPELINE_MATCH_PROFILE"
    with build_library(sqlite_url, [video(1)], clock=SystemClock()) as library:
        assert found() == ("ok", f"matches are scored by the profile calibrated, the default: {own} is not set → ")
        judged = {"task_id": 1, "verdict": "REVIEW", "douban_id": 0, "complete": True, "source_healthy": True}
        judged |= {"explanation": "", "rule_version": "rules-2", "state": "applied", "run_id": "", "fingerprint": ""}
        row = {"vod_id": 1, "shard": 1, "created_at": library.clock.now(), **judged}
        library.execute(sa.insert(library.tables.verdict).values({**row, "profile": "plan"}))
        state, told = found()
        assert state == "warn"
        assert "this library was judged by plan before" in told
        assert f"set {own}=plan to go on as before, or {own}=calibrated to have chosen" in told
        assert "judged by plan before" in call("upgrade", **settings).said.replace("\n", " ")
        # Who chose is not asked again, whatever it was.
        for name in ("plan", "calibrated"):
            assert found(**{own: name}) == ("ok", f"matches are scored by the profile {name}, as {own} says → ")
        # The first verdict says what the library began with.
        library.execute(sa.update(library.tables.verdict).values(profile="calibrated"))
        library.execute(sa.insert(library.tables.verdict).values({**row, "profile": "plan"}))
        assert found()[0] == "ok"


def test_a_check_says_what_share_of_invented_intros_gets_through(sqlite_url, tmp_path, call):
    settings = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}

    def found(**given: str) -> dict[str, dict[str, str]]:
        return findings(call("check", "--no-dagster", "--json", **settings, **given))

    on = {"DOUBAN_PIPELINE_AI_INTROS": "true", "OPENROUTER_API_KEY": "k"}
    with build_library(sqlite_url, [video(1)], clock=SystemClock()):
        assert "intros" not in found()
        read = found(**on)["intros"]
        assert (read["state"], read["remedy"]) == ("ok", "")
        assert f"of {second_reading.INVENTIONS} with one each" in read["told"]
        assert f"{second_reading.MEASURED['careless'].written} if it only sees what is false on purpose" in read["told"]


def test_a_check_goes_on_where_it_can_and_tells_no_secret(tmp_path, call):
    url = "mysql+pymysql://site:geheim@127.0.0.1:1/maccms"
    missing = tmp_path / "missing"
    result = call("check", DOUBAN_PIPELINE_DATABASE_URL=url, DOUBAN_PIPELINE_HOME=str(missing))
    assert result.status == 1
    assert "geheim" not in result.said
    states = [line.split(maxsplit=2)[:2] for line in result.said.splitlines()]
    nobody = [["fail", "douban"], ["fail", "searxng"]]
    looked_at = [["ok", "settings"], ["fail", "database"], ["fail", "home"], *nobody, ["fail", "instance"]]
    assert states == [*looked_at, ["douban:", "fail,"]]
    assert result.said.count("check DOUBAN_PIPELINE_DATABASE_URL") == 1, "a remedy is said once"
    wrong = call("check", DOUBAN_PIPELINE_TOP_N="0")
    assert wrong.status == 1
    assert "DOUBAN_PIPELINE_TOP_N = '0' is not allowed" in wrong.said


def test_a_check_sees_dead_daemons_and_pools_without_limits(sqlite_url, tmp_path, call):
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    settings = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    with build_library(sqlite_url, [video(1)]):
        before = findings(call("check", "--json", DAGSTER_HOME=str(tmp_path), **settings))
        with DagsterInstance.from_config(str(tmp_path)) as instance:
            set_pool_limits(instance, POOL_LIMITS)
        after = findings(call("check", "--json", DAGSTER_HOME=str(tmp_path), **settings))
    assert before["daemon"]["state"] == after["daemon"]["state"] == "fail"
    assert "SENSOR never" in after["daemon"]["told"]
    assert (before["pools"]["state"], after["pools"]["state"]) == ("fail", "ok")
    assert before["pools"]["remedy"] == "run `douban-pipeline setup`"


DEAD = "mysql+pymysql://site:geheim@127.0.0.1:1/maccms"
POSTGRES = {"USERNAME": "u", "PASSWORD": "geheim", "HOST": "127.0.0.1", "PORT": "1", "DB": "runs"}
POSTGRES = {f"DAGSTER_PG_{name}": value for name, value in POSTGRES.items()}
DEPLOYED = Path(__file__).parents[2] / "deploy" / "dagster.yaml"


@pytest.fixture
def dagster_home(tmp_path):
    """A home with the dagster.yaml of production, and one that cannot be read."""
    (tmp_path / "dagster.yaml").write_text(DEPLOYED.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "dagster.yaml").write_text("storage: [", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", ["check", "setup"])
@pytest.mark.parametrize(
    ("changed", "name", "words"),
    [
        ({"DAGSTER_PG_PORT": "1"}, "instance", ["u@127.0.0.1:1/runs", "refused", "check that PostgreSQL runs"]),
        ({"DAGSTER_PG_PASSWORD": None}, "instance", ["DAGSTER_PG_PASSWORD is not set", "dagster.yaml names it"]),
        ({"DAGSTER_HOME": "relative"}, "instance", ["DAGSTER_HOME = relative is not an absolute path"]),
        ({"DAGSTER_HOME": "/nowhere"}, "instance", ["DAGSTER_HOME = /nowhere is not a folder"]),
        ({"DAGSTER_HOME": "broken"}, "instance", ["dagster.yaml cannot be read", "deploy/dagster.yaml"]),
        ({"DATABASE_URL": DEAD}, "database", ["site:***@127.0.0.1:1/maccms", "refused", "that the server runs"]),
        (
            {"DATABASE_URL": "mysql+aiodb://u:geheim@h/d"},
            "database",
            ["mysql+aiodb://u:***@h/d", "write mysql+pymysql://"],
        ),
        ({"DATABASE_URL": "mysql+pymysql://u:geheim@h:x/d"}, "settings", ["DATABASE_URL is not usable"]),
        ({"TABLE_PREFIX": "cms_"}, "database", ["DOUBAN_PIPELINE_TABLE_PREFIX = 'cms_'", "there is 'mac_'"]),
        ({"TOP_N": "0"}, "settings", ["DOUBAN_PIPELINE_TOP_N = '0' is not allowed"]),
        ({"DRYRUN": "true"}, "settings", ["did you mean DOUBAN_PIPELINE_DRY_RUN?"]),
    ],
)
def test_a_mistake_is_one_line_and_never_a_trace(
    sqlite_url, dagster_home, call, upstream, command, changed, name, words
):
    if changed.get("DAGSTER_HOME") == "broken":
        changed = {"DAGSTER_HOME": str(dagster_home / "broken")}
    given = {key if key.startswith("DAGSTER") else f"DOUBAN_PIPELINE_{key}": value for key, value in changed.items()}
    plain = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(dagster_home), **asking(upstream)}
    with build_library(sqlite_url, [video(1)]):
        variables = {**plain, "DAGSTER_HOME": str(dagster_home), **POSTGRES, **given}
        # Dagster tries its database for ten seconds; `setup` ends before it does.
        options = ["--no-dagster"] if command == "check" and name != "instance" else []
        result = call(command, *options, **{key: value for key, value in variables.items() if value is not None})
    assert result.status == (1 if command == "check" else 2)
    assert "Traceback" not in result.said
    assert "geheim" not in result.said
    found = lines(result)
    assert found[name].startswith("fail")
    assert [word for word in words if word not in found[name]] == []
    assert " → " in found[name]


def test_a_dead_address_does_not_pass(sqlite_url, tmp_path, call):
    nobody = {"DOUBAN_PIPELINE_DOUBAN_URL": "http://u:geheim@127.0.0.1:1/douban.php?key=geheim"}
    nowhere = {"DOUBAN_PIPELINE_SEARCH_URL": "http://no-such-host.invalid/search"}
    home = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path), "no_proxy": "*"}
    with build_library(sqlite_url, [video(1)]):
        result = call("check", "--no-dagster", **nobody, **nowhere, **home)
    assert result.status == 1
    assert "geheim" not in result.said
    found = lines(result)
    assert found["douban"].startswith(
        "fail douban    DOUBAN_PIPELINE_DOUBAN_URL = http://127.0.0.1:1/douban.php cannot"
    )
    assert "DOUBAN_PIPELINE_SEARCH_URL = http://no-such-host.invalid/search" in found["searxng"]


def test_each_source_is_asked_once_and_what_came_is_shown(sqlite_url, tmp_path, call, upstream):
    home = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path), **asking(upstream)}
    chain = f"searxng={upstream.search_url},douban_suggest={upstream.suggest_url},bocha={upstream.bocha_url}"
    home |= {"DOUBAN_PIPELINE_SEARCH_PROVIDER": "chain", "DOUBAN_PIPELINE_SEARCH_CHAIN": chain, "BOCHA_API_KEY": "k"}
    with build_library(sqlite_url, [video(1)]):
        upstream.requests.clear()
        well = call("check", "--no-dagster", "--sources", **home)
        assert well.status == 0, well.said
        assert [upstream.requests.count(endpoint) for endpoint in ("douban", "search", "suggest", "bocha")] == [1] * 4
        assert "subject 1292052 is 《肖申克的救赎》 (1994)" in lines(well)["douban"]
        assert "subjects for “" in lines(well)["searxng"]
        assert "the first 《" in lines(well)["douban_suggest"]
        upstream.faults.add("douban", "wrong_page")
        upstream.faults.add("search", "captcha")
        upstream.faults.add("suggest", "empty")
        ailing = call("check", "--no-dagster", "--sources", **home)
        upstream.faults.clear()
    assert ailing.status == 1
    found = lines(ailing)
    assert "an HTML page instead of JSON" in found["douban"]
    assert "no engine answered: bing: CAPTCHA" in found["searxng"]
    assert "0 subjects for “" in found["douban_suggest"]
    assert found["bocha"].startswith("ok")


def test_sources_are_asked_before_setup_and_again_once_a_mistake_is_mended(sqlite_url, tmp_path, call, upstream):
    home = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path), **asking(upstream)}

    def asked():
        upstream.requests.clear()
        found = lines(call("check", "--no-dagster", "--sources", **home))
        assert [upstream.requests.count(endpoint) for endpoint in ("douban", "search")] == [1, 1]
        return [found[source][:4].strip() for source in ("douban", "searxng")]

    assert asked() == ["ok", "ok"]
    with build_library(sqlite_url, [video(1)]) as library:
        for endpoint in ("douban", "search"):
            upstream.faults.add(endpoint, "captcha" if endpoint == "douban" else "forbidden")
        for _ in range(3):
            assert asked() == ["fail", "fail"]
        upstream.faults.clear()
        assert asked() == ["ok", "ok"]
        assert library.query("SELECT * FROM mac_douban_gate") == [], "the question leaves no trace"
        assert library.query("SELECT * FROM mac_douban_snapshot") == []
