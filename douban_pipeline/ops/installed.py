"""The systems that a command serves: those of an installation whose libraries are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import ALL, System, chosen


def installed(names: Sequence[str] | None) -> list[System]:
    """Return the systems with these names, by default those in ``DOUBAN_PIPELINE_SYSTEMS``.

    One whose libraries are not installed is left out with a word on the error stream, unless it was asked for by name.

    Raises:
        ProblemsError: There is no such system, or a library is missing of one that was named.
        SettingsError: The systems' setting is wrong.
    """
    return list(_installed(chosen(names), by_name=bool(names) and ALL not in (names or ())))


def library_result(system: System) -> CheckResult | None:
    """Return the result of a check for a system one of whose libraries is not installed; None if they all are."""
    library = system.absent_library
    if library is None:
        return None
    remedy = terminal_text("or take {name} out of DOUBAN_PIPELINE_SYSTEMS").format(name=system.name)
    return CheckResult("libraries", "fail", missing_library(library, system.name), remedy)


def _installed(systems: Sequence[System], *, by_name: bool) -> Iterator[System]:
    for system in systems:
        library = system.absent_library
        if library is None:
            yield system
            continue
        missing = missing_library(library, system.name)
        if by_name:
            raise ProblemsError([missing])
        typer.echo(f"{system.name}: {terminal_text('left out: ')}{missing}", err=True)
