"""`init`: from a database's address to the first proposals, every step repeatable, and nothing asked for in vain."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import uuid
from collections.abc import Iterator

import pytest
import typer

from douban_pipeline.comments.cms_export import COLUMN
from douban_pipeline.comments.identity import USER_COLUMNS
from douban_pipeline.core import server_version
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.demo.cms_schema import default_types
from douban_pipeline.demo.library import create_library
from douban_pipeline.demo.sample import cms_columns, load_subjects, load_videos
from douban_pipeline.ops.init import dialogue
from douban_pipeline.ops.init.env_file import read_env, write_env
from douban_pipeline.ops.init.site_files import SitePaths, write_site_files
from douban_pipeline.ops.workspace import project_folder
from douban_pipeline_tests.harness.fixtures.calling import caller  # noqa: F401 (a fixture)
from douban_pipeline_tests.stand_ins.replay import ReplayServer

POLICIES, KINDS = "DOUBAN_PIPELINE_FIELD_POLICIES", "DOUBAN_PIPELINE_CATEGORY_KINDS"


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """`init` lets its process run with the environment that it writes."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def fill(url: str) -> None:
    """Put the sample's first videos into a new CMS whose categories have the names that the CMS ships with."""
    engine = open_engine(url)
    kinds = [{**each, "type_name": f"分类{each['type_id']}"} for each in default_types()]
    create_library(engine, [cms_columns(each) for each in load_videos()[:20]], kinds)
    engine.dispose()


@pytest.mark.long
def test_a_site_gets_from_its_databases_address_to_a_page_and_may_repeat_every_step(tmp_path, sqlite_url, call):
    fill(sqlite_url)
    home, env = tmp_path / "home", tmp_path / "home" / "site" / "env"
    with ReplayServer(load_subjects()) as upstream:
        options = ["--database-url", sqlite_url, "--home", str(home), "--videos", "4"]
        options += ["--answer", f"douban-url={upstream.douban_url}", "--answer", f"search-url={upstream.search_url}"]
        options += [f"--set=DOUBAN_PIPELINE_{name}_REQUESTS_PER_MINUTE=60000" for name in ("SEARCH", "DOUBAN")]
        first = call("init", *options)
        assert first.status == 0, first.said
        assert "1  分类1 → not known" in first.said
        assert "4 of 4 judged" in first.said
        assert "shows why, and what would be written: /lists/verdicts" in first.said
        assert stat.S_IMODE(env.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        known = read_env(env)
        # What the collector compares is not filled unless somebody says that it compares nothing; no kind is guessed.
        assert (known[POLICIES], known[KINDS]) == ("vod_actor=never,vod_director=never", "")
        assert known["DOUBAN_PIPELINE_DRY_RUN"] == "true"
        env.write_text(env.read_text(encoding="utf-8") + "# a word of mine\nOWN=1\n", encoding="utf-8")

        again = call("init", "--home", str(home), "--videos", "1")
        assert again.status == 0, again.said
        assert "nothing changed" in again.said
        assert read_env(env) == {**known, "OWN": "1"}

        said = call("init", "--home", str(home), "--videos", "1", "--answer", "category-kinds=1=film,2=series")
        assert "1  分类1 → not known" in said.said, "what was known before it was said"
        assert f"{env}: {KINDS}\n" in said.said
        assert read_env(env) == {**known, "OWN": "1", KINDS: "1=film,2=series"}
        assert "# a word of mine" in env.read_text(encoding="utf-8")
        shown = call("init", "--home", str(home), "--videos", "1").said
        assert "1  分类1 → film (as you said)" in shown
        assert "6    分类6 → film" in shown, "children follow their parents"
    engine = open_engine(sqlite_url)
    with engine.connect() as connection:
        written = connection.exec_driver_sql("SELECT COUNT(*) FROM mac_douban_log").scalar_one()
    engine.dispose()
    assert written == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--database-url: an answer is needed"),
        (["--database-url", "nonsense"], "--database-url is not an SQLAlchemy URL"),
        (["--database-url", "postgresql://h/d"], "--database-url names 'postgresql'"),
        (["--database-url", "mysql://x:y@127.0.0.1:1/z"], "check host and port, and that the server runs"),
        (["--systems", "douban,nix"], "--systems: there is no system 'nix'"),
        (["--set", "DRY_RUN"], "--set 'DRY_RUN': expected NAME=VALUE"),
        (["--home", str(project_folder() / "mine")], "is in the checkout: name a folder outside it"),
        (["--answer", "category-kinds=1=opera"], "--answer category-kinds: expected category=kind pairs"),
        (["--answer", "category-kinds=77=film"], "there is no category 77"),
        (["--answer", "collector-compares=actors"], "unknown: actors; to choose from: name, type, year"),
        (["--answer", "douban-url=example"], "not an http:// or https:// address"),
    ],
)
def test_what_cannot_be_is_a_sentence_and_leaves_no_environment(options, said, tmp_path, sqlite_url, call):
    if "--answer" in options:
        fill(sqlite_url)
        options = ["--database-url", sqlite_url, *options]
    home = [] if "--home" in options else ["--home", str(tmp_path / "home")]
    result = call("init", *home, *options)
    assert result.status == 2
    assert said in result.said
    assert "Traceback" not in result.said
    assert not list(tmp_path.rglob("env"))


def test_ctrl_c_says_where_it_was(tmp_path, sqlite_url, call, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise typer.Abort

    monkeypatch.setattr(dialogue.typer, "prompt", interrupted)
    result = call("init", "--home", str(tmp_path / "home"), "--database-url", sqlite_url, "--ask")
    assert result.status == 130
    assert "stopped in step 1: what was done is kept" in result.said


@pytest.mark.parametrize(
    ("answer", "before", "policies"),
    [
        ("actor,director", "", "vod_actor=never,vod_director=never"),
        ("f,g", "", "vod_actor=never,vod_director=never"),
        ("none", "vod_actor=never,vod_pic=overwrite", "vod_pic=overwrite"),
        ("name,year", "vod_year=overwrite,vod_area=overwrite", "vod_area=overwrite,vod_year=never"),
        ("a，h", "vod_name=fill", ""),
    ],
)
def test_nothing_is_filled_that_the_collector_compares(answer, before, policies, tmp_path, sqlite_url):
    from douban_pipeline.douban.services import open_services
    from douban_pipeline.douban.settings import load_settings
    from douban_pipeline.douban.site_questions import site_questions

    fill(sqlite_url)
    given = {"vod_" + pair[4:].split("=")[0]: pair.split("=")[1] for pair in before.split(",") if pair}
    services = open_services(load_settings(home=tmp_path, database_url=sqlite_url, field_policies=given))
    kinds, collector, *_ = site_questions(services)
    assert collector.setting(answer) == policies
    assert (kinds.proposed, kinds.unasked) == ("1=film,2=series,3=variety,4=animation", "none")
    services.close()


@pytest.mark.mariadb
@pytest.mark.parametrize("command", ["check", "init"])
def test_a_server_that_is_too_old_is_refused_in_a_sentence(command, tmp_path, mariadb_url, call, monkeypatch):
    monkeypatch.setattr(server_version, "OLDEST", {"MySQL": (99, 7), "MariaDB": (99, 3)})
    fill(mariadb_url)
    if command == "init":
        result = call("init", "--home", str(tmp_path / "home"), "--database-url", mariadb_url)
    else:
        given = {"DOUBAN_PIPELINE_DATABASE_URL": mariadb_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
        result = call("check", "--no-dagster", **given)
    assert result.status != 0
    assert re.search(r"(MariaDB|MySQL) \S+ is older than \1 99\.\d", result.said)
    assert "use MySQL 99.7 or MariaDB 99.3, or newer" in result.said
    assert "our tables" not in result.said, "nothing else is looked at"


@pytest.mark.mariadb
def test_the_accounts_grants_are_printed_before_any_table_is_there(tmp_path, mariadb_url, call):
    """An account without any right gets the statements for itself, and with them everything works."""
    fill(mariadb_url)
    user, owner = f"dt_{uuid.uuid4().hex[:10]}", open_engine(mariadb_url)
    account = owner.url.set(username=user, password="p", drivername="mysql").render_as_string(hide_password=False)
    options = ("init", "--home", str(tmp_path / "home"), "--systems", "douban,feeds,digest,comments")
    with owner.connect() as connection:
        connection.exec_driver_sql("CREATE USER %s@'%%' IDENTIFIED BY 'p'", (user,))
        for table, columns in (("mac_user", USER_COLUMNS), ("mac_comment", (COLUMN,))):
            connection.exec_driver_sql(f"CREATE TABLE {table} ({', '.join(f'{name} int' for name in columns)})")
    try:
        wrong = account.replace(":p@", ":q@")
        assert "the server refuses this user or password" in call(*options, "--database-url", wrong).said
        nowhere = account.replace(f"/{owner.url.database}", "/nix_nowhere")
        assert "the account has no rights in the database nix_nowhere" in call(*options, "--database-url", nowhere).said
        refused = call(*options, "--database-url", account)
        assert refused.status == 2
        assert "the account has no rights in the database" in refused.said
        grants = (tmp_path / "home" / "site" / "grants.sql").read_text(encoding="utf-8")
        host = re.search(rf"'{user}'@'([^']+)'", grants)[1]
        with owner.connect() as connection:
            for line in grants.replace(f"'{user}'@'{host}'", f"'{user}'@'%'").splitlines():
                if not line.startswith("--"):
                    connection.exec_driver_sql(line.rstrip(";").replace("%", "%%"))
            # The tests' own tables are made by statements that reading every table needs.
            connection.exec_driver_sql("GRANT SELECT ON mac_user TO %s@'%%'", (user,))
        stopped = call(*options, "--database-url", account, "--answer=douban-url=http://127.0.0.1:9/")
        assert "It has the rights it needs" in stopped.said, stopped.said
        granted = (tmp_path / "home" / "site" / "grants.sql").read_text(encoding="utf-8")
        assert f"`mac_type` TO '{user}'@'%';" in granted, "the account as the server knows it"
        assert "comments   tables in" in stopped.said
        assert "Correct what failed, and run `douban-pipeline init` again" in stopped.said
        assert stopped.status == 2
    finally:
        with owner.connect() as connection:
            connection.exec_driver_sql("DROP USER IF EXISTS %s@'%%'", (user,))
        owner.dispose()


def test_the_units_and_the_workspace_are_of_the_chosen_systems_and_places(tmp_path):
    from douban_pipeline.core.system import chosen

    paths, home = SitePaths(tmp_path / "site"), tmp_path / "home"
    write_site_files(paths, chosen(["douban", "comments"]), home, on_postgres=True)
    units = {path.name: path.read_text(encoding="utf-8") for path in paths.units.rglob("*") if path.is_file()}
    assert {f"douban-pipeline-{name}.service" for name in ("code", "comments", "comment-worker")} < set(units)
    assert "douban-pipeline-feeds.service" not in units
    everything = "".join(units.values())
    for place in ("/opt/", "/var/lib/", "=/etc/"):
        assert place not in everything.replace("/etc/douban_pipeline/env may", "")
    assert f"EnvironmentFile={paths.env}\n" in units["common.conf"]
    [wants] = re.findall(r"^Wants=(.*)$", units["douban-pipeline.target"], re.MULTILINE)
    assert set(wants.split()) <= set(units)
    assert "douban-pipeline-check.service" not in wants.split(), "its timer starts it"
    assert "DAGSTER_FEEDS_HOST" not in paths.workspace.read_text(encoding="utf-8")
    assert "postgres_db" in paths.dagster.read_text(encoding="utf-8")
    paths.dagster.write_text("storage: {postgres_db: mine}\n", encoding="utf-8")
    changed = write_site_files(paths, chosen(["douban"]), home, on_postgres=True)
    assert paths.dagster not in changed, "it is its owner's"
    assert not list(paths.units.glob("*comment*"))


def test_the_environment_is_read_back_by_a_shell_and_by_us(tmp_path):
    path, value = tmp_path / "env", "mysql+pymysql://u:p%20w@h/d?charset=utf8mb4&x=a b"
    assert write_env(path, {"A": value, "B": "1"}) == ["A", "B"]
    assert write_env(path, {"A": value}) == []
    command = ["sh", "-c", 'set -a; . "$0"; printf %s "$A"', str(path)]
    shell = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shell == read_env(path)["A"] == value
    with pytest.raises(OperatingError, match="holds a quote"):
        write_env(path, {"A": "it's"})
