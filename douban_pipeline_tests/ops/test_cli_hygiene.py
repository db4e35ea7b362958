"""What people meet in a terminal beside the work itself: errors of databases, permissions, small and old terminals."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console
from sqlalchemy import make_url

from douban_pipeline.core.terminal_table import Table
from douban_pipeline_tests.harness.fixtures.calling import caller  # noqa: F401 (a fixture)

AWAY = "mysql+pymysql://u:secret@127.0.0.1:1/x"


@pytest.mark.parametrize("words", [("backup", "saved"), ("upgrade",)])
def test_a_database_that_does_not_answer_is_a_sentence_with_setting_value_and_remedy(words, tmp_path, call):
    given = {"DOUBAN_PIPELINE_DATABASE_URL": AWAY, "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    result = call(*words, **given)
    assert result.status == 2
    said = " ".join(result.said.split())
    assert "DOUBAN_PIPELINE_DATABASE_URL = mysql+pymysql://u:***@127.0.0.1:1/x: the server does not answer (" in said
    assert said.endswith("check DOUBAN_PIPELINE_DATABASE_URL and that the server runs")
    assert "secret" not in said
    assert "sqlalche.me" not in said


@pytest.mark.mariadb
def test_a_wrong_password_and_a_wrong_name_are_told_apart(mariadb_url, tmp_path, call):
    url = make_url(mariadb_url)
    for wrong, problem, remedy in (
        (url.set(username="nobody", password="secret"), "the server refuses the account", "correct user and password"),
        (url.set(database="not_there"), "there is no such database", "create it, or correct its name"),
        (url, "", "the tables of douban do not exist"),
    ):
        given = {"DOUBAN_PIPELINE_DATABASE_URL": wrong.render_as_string(hide_password=False)}
        result = call("backup", str(tmp_path / "x"), **given, DOUBAN_PIPELINE_HOME=str(tmp_path))
        assert result.status == 2
        assert problem in result.said
        assert remedy in result.said
        assert "secret" not in result.said


@pytest.fixture
def usual_mask() -> Iterator[None]:
    """The mask of a login, with which files are readable by everybody."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_mask")
def test_what_commands_make_is_for_their_user_alone_and_a_readable_env_is_warned_of(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    home, env = tmp_path / "home", tmp_path / ".env"
    env.write_text(f"DOUBAN_PIPELINE_HOME={home}\nDOUBAN_PIPELINE_SYSTEMS=feeds\n")
    assert call("setup").status == 0
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "feeds.sqlite").stat().st_mode & 0o777 == 0o600
    checked = call("check", "--no-dagster").said
    assert "holds secrets and others may read it (mode 644) → `chmod 600 " in checked
    env.chmod(0o600)
    assert "secrets" not in call("check", "--no-dagster").said


TEN = "DOUBAN_PIPELINE_DOUBAN_REQUESTS_PER_MINUTE"


@pytest.mark.parametrize("width", [40, 59])
def test_a_table_is_readable_in_a_small_terminal(width):
    table = Table("variable", "value", "meaning", title="Settings")
    table.add_row(TEN, "20", "Requests a minute to [bold]douban.php[/bold], all processes together.")
    table.add_row("DOUBAN_PIPELINE_X", "", "豆瓣每分钟请求数")
    wide, small = (
        Console(file=io.StringIO(), width=each, force_terminal=True, color_system=None) for each in (120, width)
    )
    wide.print(table)
    small.print(table)
    lines = small.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "  value: 20" in [line.rstrip() for line in lines]
    assert "".join(line.strip() for line in lines).count(TEN) == 1
    assert not any("│" in line for line in lines)
    assert TEN in next(line for line in wide.file.getvalue().splitlines() if "│" in line and "20" in line)


def process(*words: str, code: str = "", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line, or some code, in a process of its own."""
    command = [sys.executable, *(("-c", code) if code else ("-m", "douban_pipeline", *words))]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("DOUBAN_PIPELINE", "LC_", "LANG"))
    }
    return subprocess.run(command, env={**kept, **variables}, capture_output=True, timeout=120)


@pytest.mark.parametrize(
    ("encoding", "words", "shown"),
    [
        ("ascii", ("check", "--no-dagster"), "DOUBAN_PIPELINE_OWNER = '\\u5f71"),
        ("gbk", ("check", "--no-dagster"), "DOUBAN_PIPELINE_OWNER = '影片\\U0001f600' 不允许"),
        ("ascii", ("--help",), "Keeps the metadata"),
        ("gbk", ("--help",), "备份"),
    ],
)
def test_an_output_that_is_not_utf_8_is_no_crash(encoding, words, shown, tmp_path):
    given = {"DOUBAN_PIPELINE_OWNER": "影片😀", "DOUBAN_PIPELINE_HOME": str(tmp_path)}
    done = process(*words, LANG="zh_CN.UTF-8", PYTHONIOENCODING=encoding, COLUMNS="300", **given)
    assert (done.returncode, b"Traceback" in done.stderr) == (0 if "--help" in words else 1, False), done.stderr
    assert shown in done.stdout.decode("utf-8" if encoding == "ascii" else encoding)


INTERRUPTED = """
import os, signal, sys
class Press:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
sys.argv = ["douban-pipeline", "--help"]
from douban_pipeline.__main__ import main
main()
print("it went on")
"""


@pytest.mark.parametrize(
    ("module", "status"), [("douban_pipeline.ops.cli", -signal.SIGINT), ("douban_pipeline.core.console", 130)]
)
def test_ctrl_c_while_a_command_is_loading_prints_nothing(module, status):
    done = process(code=INTERRUPTED.format(module=module))
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
