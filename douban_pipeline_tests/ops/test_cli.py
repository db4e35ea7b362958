"""The command line as a person uses it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import typer.main

from douban_pipeline import __version__
from douban_pipeline.__main__ import app, main
from douban_pipeline.demo.setup import demo_environment
from douban_pipeline.douban.settings import PREFIX, Settings, load_settings, variable
from douban_pipeline.douban.store import migrations
from douban_pipeline.ops.workspace import project_folder
from douban_pipeline_tests.harness.fixtures.library import build_library, processes, video
from douban_pipeline_tests.stand_ins.replay import ReplayServer


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path, fresh: bool = False, **variables: str) -> Ended:
    """Run the command in a process of its own: a fork that spares it most imports, or a ``fresh`` interpreter."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", PREFIX))}
    environment = inherited | {"COLUMNS": "300"} | variables
    if fresh:
        command = [sys.executable, "-m", "douban_pipeline", *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
        return Ended(done.returncode, done.stdout, done.stderr)
    with TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("stdout", "stderr")]
        process = processes().Process(target=command_line, args=(arguments, cwd, environment, streams))
        process.start()
        process.join(120)
        assert process.exitcode is not None, "the command does not end"
        return Ended(process.exitcode, *(path.read_text(encoding="utf-8") for path in streams))


def command_line(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], streams: Sequence[Path]) -> None:
    """Be the command: what a fork of `run` does."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["douban-pipeline", *arguments]
    main()


COMMANDS = sorted(typer.main.get_command(app).commands)
LOADED_BY = """
import sys
from douban_pipeline.__main__ import main
for arguments in {calls!r}:
    sys.argv = ["douban-pipeline", *arguments]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
print("loaded:", *sorted({packages!r} & sys.modules.keys()))
"""
# Of core, the two light modules that say in which language the help is are loaded; with the settings, all would be.
HEAVY = frozenset(
    {
        "alembic",
        "dagster",
        "httpx",
        "numpy",
        "opencc",
        "sqlalchemy",
        "douban_pipeline.core.settings_base",
    }
)


def loaded_by(*calls: tuple[str, ...], packages: frozenset[str], cwd: Path, **variables: str) -> str:
    """Return which of ``packages`` one process has imported after these calls of the command line."""
    script = LOADED_BY.format(calls=calls, packages=set(packages))
    environment = os.environ | variables
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()[-1].removeprefix("loaded:").strip()


def test_help_and_the_version_load_nothing_but_the_command_line(tmp_path: Path) -> None:
    calls = [("--help",), ("--version",), *((name, "--help") for name in COMMANDS)]
    assert loaded_by(*calls, packages=HEAVY, cwd=tmp_path) == ""


def test_a_look_at_the_settings_loads_little(tmp_path: Path) -> None:
    spared = HEAVY - {"douban_pipeline.core.settings_base"} | {"pymysql", "rapidfuzz"}
    assert loaded_by(("settings",), packages=spared, cwd=tmp_path, DOUBAN_PIPELINE_HOME=str(tmp_path)) == ""


def test_only_commands_that_ask_dagster_load_it(tmp_path: Path, sqlite_url: str) -> None:
    with build_library(sqlite_url, [video(1)]):
        pass
    calls = [("settings",), ("grants",), ("upgrade",), ("check", "--no-dagster")]
    given = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    with ReplayServer([]) as upstream:
        given |= {
            "DOUBAN_PIPELINE_DOUBAN_URL": upstream.douban_url,
            "DOUBAN_PIPELINE_SEARCH_URL": upstream.search_url,
        }
        assert loaded_by(*calls, packages=frozenset({"dagster", "opencc"}), cwd=tmp_path, **given) == "opencc"


WITHOUT = """
import sys
from douban_pipeline.__main__ import main
sys.modules[{library!r}] = None
sys.argv = ["douban-pipeline", *{words!r}]
main()
"""


@pytest.mark.parametrize(
    ("words", "library", "extra"),
    [(("tmdb", "ids", "movie", "x"), "psycopg", "tmdb"), (("comment-worker",), "ahocorasick", "comments")],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    words: tuple[str, ...], library: str, extra: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", WITHOUT.format(library=library, words=words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "")
    how = f"make -C {project_folder()} install EXTRAS={extra}"
    assert done.stdout == f"error: {library} is not installed; the extra {extra} brings it: {how}\n"


def test_the_version_is_printed(tmp_path: Path) -> None:
    shown = run("--version", cwd=tmp_path, fresh=True).stdout.strip()
    assert shown.startswith(f"douban_pipeline {__version__} (douban {migrations.tree_of('mac_').head}, feeds ")


def test_settings_are_shown_without_the_password(tmp_path: Path) -> None:
    url = "mysql+pymysql://site:geheim@127.0.0.1/maccms"
    result = run("settings", cwd=tmp_path, DOUBAN_PIPELINE_DATABASE_URL=url)
    assert result.returncode == 0, result.stderr
    assert "geheim" not in result.stdout
    assert "mysql+pymysql://site:***@127.0.0.1/maccms" in result.stdout
    for name in Settings.model_fields:
        assert variable(name) in result.stdout


def test_settings_are_shown_without_what_may_be_secret_in_an_address(tmp_path: Path) -> None:
    urls = {
        "SEARCH_URL": "http://me:geheim@search.example/search?engines=bing&api_key=geheim",
        "SEARCH_CHAIN": "searxng=http://me:geheim@127.0.0.1:8080/search,douban_suggest",
        "DOUBAN_URL": "http://php.example/douban.php?token=geheim",
    }
    result = run("settings", cwd=tmp_path, **{f"DOUBAN_PIPELINE_{name}": url for name, url in urls.items()})
    assert result.returncode == 0, result.stderr
    assert "geheim" not in result.stdout
    assert "http://***@search.example/search?engines=bing&***" in result.stdout
    assert "searxng=http://***@127.0.0.1:8080/search" in result.stdout


def test_settings_that_are_piped_on_have_a_line_each(tmp_path: Path) -> None:
    lines = run("settings", cwd=tmp_path, COLUMNS="40").stdout.splitlines()
    shown = {name: (value, meaning) for name, value, meaning in (line.split("\t") for line in lines)}
    assert shown[variable("site_timezone")] == ("Asia/Shanghai", "The site's time zone, in which times are shown.")
    assert set(shown) >= set(map(variable, Settings.model_fields))


def test_wrong_settings_are_reported_in_lines_without_a_trace(tmp_path: Path) -> None:
    result = run("setup", cwd=tmp_path, fresh=True, DOUBAN_PIPELINE_TOP_N="0", DOUBAN_PIPELINE_DRYRUN="true")
    assert result.returncode == 2
    assert "DOUBAN_PIPELINE_TOP_N = '0' is not allowed" in result.stdout
    assert "did you mean DOUBAN_PIPELINE_DRY_RUN?" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


def test_env_files_of_windows_are_read_or_reported(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DOUBAN_PIPELINE_OWNER=team:示例\n", encoding="utf-8-sig")
    assert "DOUBAN_PIPELINE_OWNER\tteam:示例\t" in run("settings", cwd=tmp_path).stdout
    (tmp_path / ".env").write_text("# 设置\nDOUBAN_PIPELINE_OWNER=team:示例\n", encoding="gbk")
    result = run("settings", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, "")
    assert ".env is not UTF-8: save it as UTF-8" in result.stdout


def test_a_narrow_terminal_cuts_no_variable_off(tmp_path: Path) -> None:
    result = run("settings", cwd=tmp_path, COLUMNS="80", FORCE_COLOR="1")
    assert [name for name in map(variable, Settings.model_fields) if f" {name} " not in result.stdout] == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql+pymysql://nobody@127.0.0.1:1/nowhere", "cannot be reached"),
        ("sqlite:///empty.sqlite", "there is no table mac_vod"),
    ],
)
def test_a_database_that_is_not_the_cms_is_reported_with_the_remedy(tmp_path: Path, url: str, message: str) -> None:
    result = run("setup", cwd=tmp_path, DOUBAN_PIPELINE_DATABASE_URL=url, DAGSTER_HOME=str(tmp_path))
    assert result.returncode == 2
    assert message in result.stdout
    assert "DOUBAN_PIPELINE_DATABASE_URL" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


def test_setup_does_not_advise_an_option_that_it_does_not_have(tmp_path: Path, sqlite_url: str) -> None:
    with build_library(sqlite_url, [video(1)]):
        refused = run("setup", cwd=tmp_path, DOUBAN_PIPELINE_DATABASE_URL=sqlite_url, DAGSTER_HOME="")
    assert (refused.returncode, "DAGSTER_HOME is not set" in refused.stdout) == (2, True), refused.stdout
    assert "--no-dagster" not in refused.stdout


def test_setup_prepares_the_database_and_says_what_is_next(tmp_path: Path, sqlite_url: str) -> None:
    with build_library(sqlite_url, [video(1)]) as library:
        for table in library.tables.metadata.sorted_tables:
            library.execute(f"DROP TABLE {table.name}")
        library.execute("DROP TABLE mac_douban_version")
    settings = {"DOUBAN_PIPELINE_DATABASE_URL": sqlite_url, "DAGSTER_HOME": str(tmp_path)}
    first, again = (run("setup", cwd=tmp_path, **settings) for _ in range(2))
    head = migrations.tree_of("mac_").head
    assert first.returncode == again.returncode == 0, first.stderr
    assert f"version none → {head}" in first.stdout
    assert f"version {head} → {head}" in again.stdout
    assert "dry run: nothing is written to the CMS" in first.stdout
    assert "initialise_library" in first.stdout


def test_the_demo_cannot_be_turned_on_a_real_cms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text(f"{PREFIX}DATABASE_URL=mysql+pymysql://root@127.0.0.1/maccms\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    environment = demo_environment(
        tmp_path / "demo",
        douban_url="http://127.0.0.1:1/",
        search_url="http://127.0.0.1:1/",
        llm_url="http://127.0.0.1:1/",
    )
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load_settings().library_url == f"sqlite:///{tmp_path / 'demo' / 'library.sqlite'}"
