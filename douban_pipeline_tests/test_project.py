"""What stands around the package: the top level, the pins, the commands, and what is shipped."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from douban_pipeline import __version__
from douban_pipeline.douban.settings import PREFIX, Settings
from douban_pipeline_tests.conftest import NOT_QUICK, QUICK, SERVERS, TESTS, is_quick
from douban_pipeline_tests.documents import targets, text_of
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.reference import PROJECT

TOP_LEVEL = {
    "douban_pipeline",
    "douban_pipeline_tests",
    "setup.py",
    "workspace.yaml",
    "dagster.yaml",
    "deploy",
    "docs",
    "README.md",
    "README.zh-CN.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    ".ci",
    ".gitignore",
}
BOUNDS = {
    "dagster": ">=1.13,<1.14",
    "dagster-webserver": ">=1.13,<1.14",
    "dagster-dg-cli": ">=1.13,<1.14",
    "dagster-postgres": ">=0.29,<0.30",
    "sqlalchemy": ">=2.0,<2.1",
}


# --- the top level ----------------------------------------------------------------------------------------------------


def test_the_top_level_holds_exactly_what_it_should():
    ignored = [line.rstrip("/") for line in text_of(".gitignore").split()]
    present = {path.name for path in PROJECT.iterdir()}
    strangers = {name for name in present - TOP_LEVEL if not any(fnmatch.fnmatch(name, item) for item in ignored)}
    assert present >= TOP_LEVEL
    # Hidden ones may be an editor's or git's own.
    assert {name for name in strangers if not name.startswith(".")} == set()


def test_the_licence_is_the_one_that_is_declared():
    licence = text_of("LICENSE")
    assert "Apache License" in licence
    assert "Copyright 2026 the douban_pipeline authors" in licence
    assert project()["license"] == {"text": "Apache-2.0"}


def test_the_changelog_knows_this_version():
    assert f"## [{Version(__version__).base_version}]" in text_of("CHANGELOG.md")
    assert project()["dynamic"] == ["version"], "douban_pipeline.__version__ is the one place"


def test_the_deployed_instance_is_the_root_one_with_postgres():
    root, deployed = (yaml.safe_load(text_of(path)) for path in ("dagster.yaml", "deploy/dagster.yaml"))
    storage = deployed.pop("storage")
    assert deployed == root
    assert storage["postgres"]["postgres_db"]["scheme"] == "postgresql+psycopg2"


def project() -> dict[str, Any]:
    return dict(tomllib.loads(text_of("pyproject.toml"))["project"])


# --- dependencies -----------------------------------------------------------------------------------------------------


def declared() -> list[Requirement]:
    lists = [project()["dependencies"], *project()["optional-dependencies"].values()]
    found = [Requirement(line) for lines in lists for line in lines]
    return [requirement for requirement in found if requirement.name != project()["name"]]


def pins() -> dict[str, str]:
    lines = [line for line in text_of(".ci/constraints.txt").splitlines() if not line.startswith("#")]
    matches = [re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s@]+)", line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if match is None]
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


@pytest.mark.parametrize(("name", "bounds"), BOUNDS.items())
def test_versions_that_must_move_together_are_bounded(name: str, bounds: str):
    [requirement] = [item for item in declared() if item.name == name]
    assert requirement.specifier == Requirement(name + bounds).specifier


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_every_declared_dependency_is_pinned_within_its_bounds(requirement: Requirement):
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


def test_whatever_they_bring_in_is_pinned_too():
    environment = {"python_version": "3.11", "python_full_version": "3.11.0", "sys_platform": "linux"}
    known, waiting, unpinned = set(), declared(), set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in pins():
            unpinned.add(name)
        if (name, frozenset(requirement.extras)) in known:
            continue
        known.add((name, frozenset(requirement.extras)))
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue  # not on this platform; its own needs cannot be asked
        for line in lines:
            needed = Requirement(line)
            extras = [{"extra": extra} for extra in (*requirement.extras, "")]
            if needed.marker is None or any(needed.marker.evaluate({**environment, **extra}) for extra in extras):
                waiting.append(needed)
    assert not unpinned


# --- commands ---------------------------------------------------------------------------------------------------------


def test_every_target_has_a_recipe_and_a_line_of_help():
    makefile = text_of("Makefile")
    recipes = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    helped = set(re.findall(r'^\t@echo "make ([a-z-]+) ', makefile, re.MULTILINE))
    assert recipes == targets()
    assert helped | {"help"} == targets()


@pytest.mark.parametrize(
    ("interpreter", "said"),
    [("old", "Python 3.11 or newer is needed"), ("missing", "is not there")],
)
def test_the_makefile_says_what_python_it_needs(interpreter: str, said: str, tmp_path: Path):
    shutil.copyfile(PROJECT / "Makefile", tmp_path / "Makefile")
    for name in ("setup.py", "pyproject.toml"):
        shutil.copyfile(PROJECT / name, tmp_path / name)
    shutil.copytree(PROJECT / ".ci", tmp_path / ".ci")
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.10.1" || exit 1\n', encoding="utf-8")
    old.chmod(0o755)
    command = ["make", "-C", str(tmp_path), "install", f"PYTHON={tmp_path / interpreter}"]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "VENV")}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode != 0
    assert said in result.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("status", [0, 1])
def test_installing_shows_how_far_it_is_and_what_went_wrong(status: int, tmp_path: Path):
    shutil.copyfile(PROJECT / "Makefile", tmp_path / "Makefile")
    for name in ("setup.py", "pyproject.toml"):
        shutil.copyfile(PROJECT / name, tmp_path / name)
    shutil.copytree(PROJECT / ".ci", tmp_path / ".ci")
    pip = tmp_path / "pip"
    lines = [*(f"Collecting name{number}" for number in range(60)), "Installing collected packages: name0 name1"]
    said = "\n".join(lines) if status == 0 else "Collecting nothing"
    pip.write_text(f"#!/bin/sh\necho '{said}'\n[ {status} = 0 ] || echo 'ERROR: no such thing' >&2\nexit {status}\n")
    interpreter = tmp_path / "interpreter"
    interpreter.write_text('#!/bin/sh\n[ "$2" != venv ] || { mkdir -p "$3/bin"; cp pip "$3/bin/python"; }\n')
    for path in (pip, interpreter):
        path.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "VENV")}
    command = ["make", "-C", str(tmp_path), "--no-print-directory", "install", f"PYTHON={interpreter}"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (result.returncode == 0) == (status == 0)
    assert (tmp_path / ".venv" / ".installed-dev").exists() == (status == 0)
    progress = ["  25 packages found", "  50 packages found", "  60 packages found; unpacking them"]
    assert result.stdout.splitlines()[1:] == (progress if status == 0 else [])
    assert ("ERROR: no such thing" in result.stderr) == (status != 0)


def test_ci_runs_without_a_terminal_and_asks_for_every_server():
    script = PROJECT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True).returncode == 0
    text = script.read_text(encoding="utf-8")
    for name, default in SERVERS.values():
        assert f'{name}="${{{name}:-{default}}}"' in text
    assert f"DOUBAN_TEST_REQUIRE={','.join(SERVERS)}" in text


@pytest.mark.parametrize(
    ("command", "status"),
    [("echo fine", 0), ("echo 'Traceback (most recent call last):' >&2", 1), ("echo fine; exit 3", 3)],
)
def test_a_traceback_in_what_a_step_of_ci_prints_fails_it(command: str, status: int) -> None:
    script = text_of(".ci/run")
    attempt = script[script.index("attempt() {") : script.index("# step NAME")]
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'{attempt}\nattempt some 9 bash -c "$1"', "run", command],
        capture_output=True,
        text=True,
    )
    assert run.returncode == status
    assert (command.split("'")[1] if "'" in command else "fine") in run.stdout


def test_the_quick_tests_are_rules_and_storage_without_any_server():
    for place in (*QUICK, *NOT_QUICK):
        assert (TESTS / place).exists(), place
    quick = {path for path in TESTS.rglob("test_*.py") if is_quick(path)}
    packages = {path.relative_to(TESTS).parts[0] for path in quick}
    assert packages == {"cms", "core", "douban", "matching", "test_project.py", "test_project_pages.py"}
    assert TESTS / "douban" / "test_definitions.py" in quick
    assert not any(path.parts[-2] in ("reports", "review", "undo") for path in quick)
    rules = TESTS / "matching" / "test_titles.py"
    assert is_quick(rules)
    assert not any(is_quick(rules, {mark}) for mark in (*SERVERS, "browser", "long"))


def test_what_is_no_module_is_shipped_with_the_package():
    packages = tomllib.loads(text_of("pyproject.toml"))["tool"]["setuptools"]["package-data"]
    declared = {(name, pattern) for name, patterns in packages.items() for pattern in patterns}
    shipped = {file for name, pattern in declared for file in PROJECT.joinpath(*name.split(".")).glob(pattern)}
    present = {
        path
        for path in (PROJECT / "douban_pipeline").rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    assert present == shipped


def test_the_environment_file_is_accepted():
    lines = text_of("deploy/env.example").splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    ours = {name.removeprefix(PREFIX).lower(): value for name, value in given.items() if name.startswith(PREFIX)}
    assert set(ours) <= set(Settings.model_fields)
    settings = GivenSettings(**ours)
    assert settings.dry_run
    assert settings.included_type_ids == {6}
