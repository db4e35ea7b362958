"""The command line in Chinese or English: which it is, what it says, and that help waits for nothing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from douban_pipeline.core.language import locale_language
from douban_pipeline.ops import cli
from douban_pipeline_tests.harness.messages import has_chinese

LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG", "DOUBAN_PIPELINE_LANGUAGE")
OPS = Path(cli.__file__).parent
DEMO = ("cli", "commands", "comments", "dev", "digest", "douban", "feeds", "outcomes", "run", "talk", "tmdb")
OF_SYSTEMS = ("commands", "terminal", "operations", "source_checks", "grants", "troubleshooting")
SPEAKERS = sorted(
    {
        *OPS.rglob("*.py"),
        *(OPS.parent / "demo" / f"{name}.py" for name in DEMO),
        *(path for name in OF_SYSTEMS for path in OPS.parent.rglob(f"{name}.py")),
    }
    - {OPS.parent / "douban/quality/terminal.py"}  # an evaluation's report, in English like the files it writes
)
OTHERS = (
    "core/database",
    "core/migrations",
    "cms/maccms",
    "demo/embedded_servers",
    "tmdb/services",
    "tmdb/store/postgres",
    "douban/setting_values",
)
REFUSERS = sorted(
    {
        *(OPS.parent / f"{name}.py" for name in OTHERS),
        *OPS.parent.rglob("*settings.py"),
        *OPS.parent.rglob("settings_base.py"),
    }
)
"""Modules that refuse a setting or a database, which the command line prints."""
HEAVY = ("dagster", "sqlalchemy", "pandas", "pydantic", "numpy", "jinja2")
LOADED = f"""
import json, sys
from douban_pipeline.__main__ import main
sys.argv = ["douban-pipeline", "--help"]
try:
    main()
except SystemExit:
    print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


def spoken(folder: Path, *words: str, program: str = "", **variables: str) -> str:
    """Return what a command prints in an environment that has no language but the one given."""
    clean = {name: value for name, value in os.environ.items() if name not in LOCALES}
    command = ["-c", program] if program else ["-m", "douban_pipeline", *words]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        env={**clean, "PYTHONUTF8": "1", "COLUMNS": "200", **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
    ],
)
def test_the_locale_names_the_language(variables: dict[str, str], language: str) -> None:
    assert locale_language(variables) == language


def test_help_is_in_the_language_of_the_locale_unless_the_setting_says_otherwise(tmp_path: Path) -> None:
    chinese = spoken(tmp_path, "check", "--help", LANG="zh_CN.UTF-8")
    assert all(text in chinese for text in ("选项", "检查所需的一切是否就绪", "输出 JSON，供监控使用。", "显示本帮助"))
    assert "Check everything" not in chinese
    english = spoken(tmp_path, "check", "--help", LANG="zh_CN.UTF-8", DOUBAN_PIPELINE_LANGUAGE="en")
    assert "Check everything" in english
    assert not has_chinese(english)
    (tmp_path / ".env").write_text("DOUBAN_PIPELINE_LANGUAGE=zh\n", encoding="utf-8")
    assert "检查所需的一切" in spoken(tmp_path, "check", "--help", LANG="C.UTF-8")


def test_messages_are_in_it_too_and_near_misses_are_suggested(tmp_path: Path) -> None:
    wrong = spoken(tmp_path, "settings", LANG="zh_CN.UTF-8", DOUBAN_PIPELINE_BATCH_SIZ="9")
    assert "错误：" in wrong
    assert "DOUBAN_PIPELINE_BATCH_SIZE" in wrong
    assert "'check'" in spoken(tmp_path, "chek", LANG="zh_CN.UTF-8")


@pytest.mark.parametrize("locale", ["C.UTF-8", "zh_CN.UTF-8"])
def test_help_loads_nothing_heavy(tmp_path: Path, locale: str) -> None:
    printed = spoken(tmp_path, program=LOADED, LANG=locale)
    assert json.loads(printed.splitlines()[-1]) == []


SPEAKING = (
    "print",
    "plain",
    "Table",
    "Outcome",
    "CheckResult",
    "ProblemsError",
    "BadParameter",
    "OperatingError",
    "DatabaseError",
)
ENGLISH = re.compile("[a-z]{2,} [a-z]{2,}")


def unsaid(node: ast.AST) -> Iterator[str]:
    """Yield the texts below a node that stand in one language only."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("terminal_text", "page_text"):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENGLISH.search(node.value):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from unsaid(child)


def in_one_language(module: Path, calls: Collection[str]) -> list[str]:
    """Return the texts given to ``calls`` in a module that stand in one language only."""
    return [
        text
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in calls
        for text in unsaid(ast.Module(body=[ast.Expr(each) for each in node.args], type_ignores=[]))
        if text != "werss login" and not text.startswith(": pip install")  # a name, and what is typed
    ]


@pytest.mark.parametrize("module", SPEAKERS, ids=lambda module: f"{module.parent.name}-{module.stem}")
def test_what_a_command_prints_is_said_in_both_languages(module: Path) -> None:
    assert not in_one_language(module, SPEAKING)


@pytest.mark.parametrize("module", REFUSERS, ids=lambda module: f"{module.parent.name}-{module.stem}")
def test_what_is_wrong_with_a_setting_or_a_database_is_said_in_both_languages(module: Path) -> None:
    assert not in_one_language(module, ("ValueError", "mistake", "DatabaseError"))


WRONG = {"TOP_N": "0", "OWNER": "nobody", "SITE_TIMEZONE": "Mars", "MATCH_PROFILE": "x", "BATCH_SIZ": "9"}


def test_wrong_settings_are_a_line_each_in_chinese(tmp_path: Path) -> None:
    given = {f"DOUBAN_PIPELINE_{name}": value for name, value in WRONG.items()}
    printed = spoken(tmp_path, "settings", LANG="zh_CN.UTF-8", **given)
    first, *lines = printed.strip().splitlines()
    assert first == "错误： 设置有误："
    assert sorted(line.strip() for line in lines) == [
        "DOUBAN_PIPELINE_MATCH_PROFILE = 'x' 不允许：应为 plan 或 calibrated",
        "DOUBAN_PIPELINE_OWNER = 'nobody' 不允许：既不是电子邮箱，也不是 team:名字；"
        "应为 电子邮箱，或 team:名字，例如 team:site",
        "DOUBAN_PIPELINE_SITE_TIMEZONE = 'Mars' 不允许：没有这个时区；应为 IANA 时区，例如 Asia/Shanghai",
        "DOUBAN_PIPELINE_TOP_N = '0' 不允许：应为 整数，不小于 1，不大于 20",
        "没有 DOUBAN_PIPELINE_BATCH_SIZ 这个设置；是不是 DOUBAN_PIPELINE_BATCH_SIZE？",
    ]


@pytest.mark.parametrize("system", ["feeds", "digest", "tmdb", "comments"])
def test_a_wrong_setting_of_all_systems_is_named_as_it_was_set(tmp_path: Path, system: str) -> None:
    printed = spoken(tmp_path, "settings", "--system", system, LANG="C.UTF-8", DOUBAN_PIPELINE_OWNER="nobody")
    assert "DOUBAN_PIPELINE_OWNER = 'nobody' is not allowed" in printed
    assert "_OWNER = 'nobody'" not in printed.replace("DOUBAN_PIPELINE_OWNER = 'nobody'", "")


def test_a_database_that_cannot_be_used_is_told_in_chinese(tmp_path: Path) -> None:
    away = spoken(
        tmp_path, "grants", LANG="zh_CN.UTF-8", DOUBAN_PIPELINE_DATABASE_URL="oracle://someone@127.0.0.1/library"
    )
    assert "DOUBAN_PIPELINE_DATABASE_URL 不可用：这个 URL 写的是 'oracle'；应为 mysql+pymysql" in away
