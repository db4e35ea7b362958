"""Watching: whether an installation is fit to work."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import SettingsError, load_settings
from douban_pipeline.ops.checking import Finding, database_findings
from douban_pipeline.ops.commands.output import console, plain

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def check(
    dagster: Annotated[bool, typer.Option(help="Look at Dagster's instance too.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for monitors.")] = False,
) -> None:
    """Check that everything the pipeline needs is there; exit with 1 if something fails. It changes nothing."""
    findings = list(_findings(dagster))
    well = all(finding.state != "fail" for finding in findings)
    if as_json:
        plain(json.dumps({"ok": well, "findings": [asdict(finding) for finding in findings]}, ensure_ascii=False))
    else:
        for finding in findings:
            _show(finding)
    if not well:
        raise typer.Exit(1)


def _findings(dagster: bool) -> Iterator[Finding]:
    try:
        services = open_services(load_settings())
    except SettingsError as error:
        yield Finding("settings", "fail", str(error), "mend the variables named, in the environment or in .env")
        return
    mode = "dry run: nothing is written to the CMS" if services.settings.dry_run else "live"
    yield Finding("settings", "ok", mode)
    yield from database_findings(services)
    services.close()
    if dagster:
        from douban_pipeline.ops.dagster_checks import dagster_findings  # the whole code location

        yield from dagster_findings(SystemClock().now())


def _show(finding: Finding) -> None:
    state = f"[{_COLOURS[finding.state]}]{finding.state:<4}[/]"
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    console.print(f"{state} {finding.name:<9} {escape(finding.told + remedy)}", highlight=False, soft_wrap=True)
