"""An installation in the making: what was said on the command line, and its environment as it is to be."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from douban_pipeline.core.environment import BASE_PREFIX
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import System
from douban_pipeline.ops.init.dialogue import Dialogue
from douban_pipeline.ops.init.site_files import SitePaths

URL, PREFIX, SYSTEMS_SET = f"{BASE_PREFIX}DATABASE_URL", f"{BASE_PREFIX}TABLE_PREFIX", f"{BASE_PREFIX}SYSTEMS"
HOME, DRY_RUN = f"{BASE_PREFIX}HOME", f"{BASE_PREFIX}DRY_RUN"


@dataclass(frozen=True)
class InitOptions:
    """What was said on the command line; None for what was not.

    Attributes:
        folder: Where the files of the installation go; by default ``site`` in HOME.
        settings: Values of any settings, by variable.
        answers: Answers to the systems' questions, by option.
        storage_url: The PostgreSQL of Dagster's storage.
        videos: How many things the first look does.
        ask: Whether a person is asked.
    """

    database_url: str | None = None
    table_prefix: str | None = None
    systems: str | None = None
    home: Path | None = None
    folder: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    storage_url: str | None = None
    videos: int = 20
    ask: bool = True


@dataclass
class Installation:
    """An installation in the making.

    Attributes:
        options: What was said on the command line.
        dialogue: Where questions are asked.
        paths: Its files.
        values: Its environment as it is to be.
        systems: Its systems.
    """

    options: InitOptions
    dialogue: Dialogue
    paths: SitePaths
    values: dict[str, str]
    systems: list[System] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of its systems."""
        return [system.name for system in self.systems]

    def use(self) -> None:
        """Let this process run with its environment."""
        os.environ.update(self.values)


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """Return the ``NAME=VALUE`` pairs of an option that may be repeated.

    Raises:
        OperatingError: One is no such pair.
    """
    wrong = [each for each in given if "=" not in each]
    if wrong:
        problem = terminal_text("{option} {given!r}: expected NAME=VALUE")
        raise OperatingError(problem.format(option=option, given=wrong[0]))
    return dict(each.split("=", 1) for each in given)
