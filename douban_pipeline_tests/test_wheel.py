"""The wheel: what is in it, and that it works in an environment that has never seen the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from douban_pipeline import __version__
from douban_pipeline.core.system import release_line

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = "douban_pipeline"
SHARE = f"{PACKAGE}-{__version__}.data/data/share/{PACKAGE}"
SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "workspace.yaml", "dagster.yaml", "deploy", PACKAGE)


def files_below(folder: Path) -> set[str]:
    """Return the files of the checkout below ``folder``, relative to the checkout."""
    left_out = ("__pycache__", ".env", ".DS_Store")
    paths = (path for path in folder.rglob("*") if path.is_file() and not set(path.parts) & {*left_out})
    return {path.relative_to(PROJECT).as_posix() for path in paths}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the checkout in which somebody keeps secrets."""
    copy, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".env"))
        else:
            shutil.copyfile(PROJECT / name, copy / name)
    (copy / "deploy" / ".env").write_text("DOUBAN_PIPELINE_SERVE_TOKEN=secret", encoding="utf-8")
    (copy / ".env").write_text("DOUBAN_PIPELINE_SERVE_TOKEN=secret", encoding="utf-8")
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(out)], cwd=copy, check=True, capture_output=True)
    [path] = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_the_package_in_it_is_the_one_in_the_checkout(names: set[str]):
    assert {name for name in names if name.startswith(f"{PACKAGE}/")} == files_below(PROJECT / PACKAGE)


def test_the_files_of_an_installation_are_in_it_without_secrets(names: set[str]):
    shipped = {name.removeprefix(f"{SHARE}/") for name in names if name.startswith(f"{SHARE}/")}
    assert shipped == {"workspace.yaml", "dagster.yaml", *files_below(PROJECT / "deploy")}
    assert not any(Path(name).name == ".env" for name in names)


def test_nothing_else_is_in_it(names: set[str], wheel: Path):
    others = {name.split("/", 1)[0] for name in names} - {PACKAGE, SHARE.split("/", 1)[0]}
    assert others == {f"{PACKAGE}-{__version__}.dist-info"}
    assert wheel.stat().st_size < 4 * 2**20


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel in it, and with the dependencies of the one that runs the tests."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    [site] = (folder / "lib").glob("python*/site-packages")
    # A path in a .pth file: what is installed there in editable form, as the checkout is, does not come along.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*install, "--no-compile", str(wheel)], check=True, capture_output=True)
    yield folder
    shutil.rmtree(folder)


def run(environment: Path, *command: str, cwd: Path) -> str:
    """Run a command of ``environment`` in ``cwd``, away from the checkout; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DOUBAN_", "PYTHON", "DAGSTER"))}
    program = [str(environment / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, cwd=cwd, check=True, capture_output=True, text=True, env=kept).stdout


def test_its_command_works_without_the_checkout(elsewhere: Path, tmp_path: Path):
    assert run(elsewhere, "douban-pipeline", "--version", cwd=tmp_path).strip() == release_line()
    where = "import douban_pipeline; print(douban_pipeline.__file__)"
    assert run(elsewhere, "python", "-c", where, cwd=tmp_path).startswith(str(elsewhere))


def test_its_chinese_texts_are_there(elsewhere: Path, tmp_path: Path):
    (tmp_path / ".env").write_text("DOUBAN_PIPELINE_LANGUAGE=zh\n", encoding="utf-8")
    assert "检查所需的一切是否就绪" in run(elsewhere, "douban-pipeline", "check", "--help", cwd=tmp_path)


def test_the_demo_finds_dagsters_files_there(elsewhere: Path, tmp_path: Path):
    where = "from douban_pipeline.ops.workspace import project_folder; print(project_folder())"
    project = Path(run(elsewhere, "python", "-c", where, cwd=tmp_path).strip())
    assert project == elsewhere / "share" / PACKAGE
    for name in ("workspace.yaml", "dagster.yaml", "deploy/nginx.conf"):
        assert (project / name).read_bytes() == (PROJECT / name).read_bytes()
