"""The files of `deploy/` as the tests read them."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from douban_pipeline_tests.harness.rig.dagster_stack import PROJECT

DEPLOY = PROJECT / "deploy"
UNITS = DEPLOY / "systemd"
COMMON = UNITS / "douban-pipeline-.service.d" / "common.conf"
LOCATIONS = ("code", "feeds", "digest", "tmdb", "comments")
SERVICES = (*LOCATIONS, "comment-worker", "serve", "webserver", "viewer", "daemon", "backup", "check")
INSTALLED = "/opt/douban_pipeline"
"""Where the guide installs the checkout."""


def text_of(path: str) -> str:
    """Return a file of `deploy/`."""
    return (DEPLOY / path).read_text(encoding="utf-8")


def unit(name: str) -> configparser.RawConfigParser:
    """Return a service as systemd sees it: the common part, and its own over it. Of repeated keys the last is kept."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read([COMMON, UNITS / f"douban-pipeline-{name}.service"], encoding="utf-8")
    return parser


def environment() -> dict[str, str]:
    """Return the variables of `env.example`."""
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", text_of("env.example"), re.MULTILINE))


def installed_at(text: str, project: Path = PROJECT) -> str:
    """Return ``text`` with the checkout where it is in place of where the guide puts it."""
    return text.replace(INSTALLED, str(project))
