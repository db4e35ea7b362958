"""Which files of a checkout are installed beside the package; everything else about it stands in ``pyproject.toml``."""

from pathlib import Path

from setuptools import setup

SHARED = "share/douban_pipeline"
"""Where the files of the top level and of `deploy` are installed, below the environment's own folder."""


def shared_files() -> list[tuple[str, list[str]]]:
    """Return what an installation without a checkout needs beside the package, by folder.

    Hidden files stay out: `deploy/.env` of a checkout that is in use holds secrets.
    """
    top = [(SHARED, [name for name in ("workspace.yaml", "dagster.yaml") if Path(name).exists()])]
    folders = [folder for folder in (Path("deploy"), *Path("deploy").rglob("*")) if folder.is_dir()]
    return top + [
        (
            f"{SHARED}/{folder.as_posix()}",
            sorted(file.as_posix() for file in folder.iterdir() if file.is_file() and file.name[0] != "."),
        )
        for folder in sorted(folders)
    ]


setup(data_files=shared_files())
