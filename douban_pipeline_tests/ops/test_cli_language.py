"""The command line in Chinese or English: which it is, what it says, and that help waits for nothing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from douban_pipeline.core.ui.language import has_chinese, locale_language
from douban_pipeline.ops import cli
from douban_pipeline.ops.cli import app
from douban_pipeline.ops.help_in_chinese import HELP

LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG", "DOUBAN_PIPELINE_LANGUAGE")
OPS = Path(cli.__file__).parent
SPEAKERS = sorted({*OPS.rglob("*.py"), *(OPS.parent / "demo" / f"{name}.py" for name in ("commands", "dev", "run"))})
HEAVY = ("dagster", "sqlalchemy", "pandas", "pydantic", "numpy", "jinja2")
LOADED = f"""
import json, sys
from douban_pipeline.ops.cli import main
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
    assert "Check that everything" not in chinese
    english = spoken(tmp_path, "check", "--help", LANG="zh_CN.UTF-8", DOUBAN_PIPELINE_LANGUAGE="en")
    assert "Check that everything" in english
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


def help_texts(command: Any) -> set[str]:
    """Return every text of help below a command."""
    found = {command.help, *(getattr(each, "help", None) for each in command.params)}
    for inner in getattr(command, "commands", {}).values():
        found |= help_texts(inner)
    return {text for text in found if text}


def test_every_help_text_has_its_translation() -> None:
    texts = help_texts(typer.main.get_command(app)) | {"Show this message and exit."}
    assert sorted(texts - HELP.keys()) == []
    assert sorted(HELP.keys() - texts) == []
    assert all(has_chinese(text) or text.startswith(("rss", "plan")) for text in HELP.values())


SPEAKING = ("print", "plain", "CheckResult", "Finding", "ProblemsError", "BadParameter")
ENGLISH = re.compile("[a-z]{2,} [a-z]{2,}")


def unsaid(node: ast.AST) -> Iterator[str]:
    """Yield the texts below a node that stand in one language only."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "said":
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENGLISH.search(node.value):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from unsaid(child)


@pytest.mark.parametrize("module", SPEAKERS, ids=lambda module: module.stem)
def test_what_a_command_prints_is_said_in_both_languages(module: Path) -> None:
    found = [
        text
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in SPEAKING
        for text in unsaid(ast.Module(body=[ast.Expr(each) for each in node.args], type_ignores=[]))
        if text != "werss login" and not text.startswith(": pip install")  # a name, and what is typed
    ]
    assert not found
