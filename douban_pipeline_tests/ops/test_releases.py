"""Releases: each migration names the release that brings it, and what names a release agrees with the tables."""

from __future__ import annotations

from importlib import import_module

import pytest
from packaging.version import Version

from douban_pipeline import __version__
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.system import System, every_system, release_line, tables_versions
from douban_pipeline_tests.documents import text_of


def tree_of(system: System) -> MigrationTree:
    """Return the migrations of a system without opening it, which would start servers."""
    migrations = import_module(f"douban_pipeline.{system.name}.store.migrations")
    return migrations.tree_of("mac_") if system.is_base else migrations.TREE


SYSTEMS = [pytest.param(system, id=system.name) for system in every_system()]


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_migration_names_its_release(system: System):
    tree = tree_of(system)
    releases = [Version(tree.release_of(version)) for version in tree.versions]
    assert releases == sorted(releases), "a later migration comes with the same release or a later one"
    assert releases[-1] <= Version(__version__)
    assert system.tables_version == tree.head


def test_the_changelog_has_each_release():
    written = text_of("CHANGELOG.md")
    for system in every_system():
        tree = tree_of(system)
        for version in tree.versions:
            assert f"## [{tree.release_of(version)}]" in written


def test_the_line_of_a_release_names_every_system_s_tables():
    assert set(tables_versions()) == {system.name for system in every_system()}
    for name, version in tables_versions().items():
        assert f"{name} {version}" in release_line()
