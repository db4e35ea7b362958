"""Whether an installation is fit to work, looked at from outside: one finding a question, each with its remedy."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.markup import escape
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.clock_skew import SLIGHT_SKEW, clock_skew, skew_text
from douban_pipeline.core.database import DatabaseError
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.douban.store import migrations
from douban_pipeline.ops.console import console, plain, silence_beta_warnings
from douban_pipeline.ops.grants import missing_grants

State = Literal["ok", "warn", "fail"]

LOW_DISK_MB, FULL_DISK_MB = 2_000, 200
"""Free space under which HOME is low, and under which it counts as full; 10⁶ bytes."""
_NAMED = 4


_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer to one question: what was found, and what to do about it if it is not well.

    Attributes:
        name: What was looked at, in one word.
        state: Whether it is well.
        message: What was found.
        remedy: What to do about it; empty if it is well.
    """

    name: str
    state: State
    message: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it as monitors read it: the key ``told`` is older than the name ``message``."""
        return {"name": self.name, "state": self.state, "told": self.message, "remedy": self.remedy}


def check(*, dagster: bool, as_json: bool) -> bool:
    """Check everything the pipeline needs, print it, and return whether nothing failed. It changes nothing.

    Args:
        dagster: Look at Dagster's instance too.
        as_json: Print JSON.
    """
    results = list(_results(dagster))
    passed = all(result.state != "fail" for result in results)
    if as_json:
        plain(json.dumps({"ok": passed, "findings": [result.to_json() for result in results]}, ensure_ascii=False))
    else:
        for result in results:
            _print(result)
    return passed


def _results(dagster: bool) -> Iterator[CheckResult]:
    try:
        services = open_services(load_settings())
    except SettingsError as error:
        yield CheckResult("settings", "fail", str(error), "mend the variables named, in the environment or in .env")
        return
    mode = "dry run: nothing is written to the CMS" if services.settings.dry_run else "live"
    yield CheckResult("settings", "ok", mode)
    yield from database_results(services)
    services.close()
    if dagster:
        # Dagster and our code location take longer to load than everything else: a monitor may do without.
        silence_beta_warnings()
        from douban_pipeline.ops.dagster_checks import dagster_results

        yield from dagster_results(SystemClock().now())


def _print(result: CheckResult) -> None:
    state = f"[{_COLOURS[result.state]}]{result.state:<4}[/]"
    remedy = f" → {result.remedy}" if result.remedy else ""
    console.print(f"{state} {result.name:<9} {escape(result.message + remedy)}", highlight=False, soft_wrap=True)


def look(name: str, question: Callable[[], CheckResult], remedy: str) -> CheckResult:
    """Ask, and make what the question raises a result too, so that the other questions are still asked."""
    try:
        return question()
    except (DatabaseError, SQLAlchemyError, OSError) as error:
        # SQLAlchemy's own text goes on with the statement and a link.
        return CheckResult(name, "fail", str(getattr(error, "orig", None) or error), remedy)


def database_results(services: Services) -> Iterator[CheckResult]:
    """Look at the CMS's database and at HOME. The first failure of the database ends the questions to it."""
    questions: list[tuple[str, Callable[[], CheckResult], str]] = [
        ("database", lambda: _cms(services), "check DOUBAN_PIPELINE_DATABASE_URL and that the server runs"),
        ("tables", lambda: _version(services), "run `douban-pipeline upgrade`"),
        ("grants", lambda: _grants(services), "run what `douban-pipeline grants` prints, as the database's owner"),
        ("clock", lambda: _clock(services), "keep the clocks of all machines in step, with NTP"),
    ]
    for name, question, remedy in questions:
        result = look(name, question, remedy)
        yield result
        if result.state == "fail":
            break
    yield look("home", lambda: _home(services.settings.home), "make DOUBAN_PIPELINE_HOME a folder that can be written")


def _cms(services: Services) -> CheckResult:
    cms = services.cms
    message = f"{services.settings.shown_library_url}: {cms.vod.name} and {cms.type.name}"
    return CheckResult("database", "ok", f"{message}, {len(services.categories)} categories")


def _version(services: Services) -> CheckResult:
    prefix = services.settings.table_prefix
    found, wanted = migrations.current(services.engine, prefix), migrations.head(prefix)
    if found == wanted:
        return CheckResult("tables", "ok", f"our tables are at version {found}")
    if found is None:
        return CheckResult("tables", "fail", "our tables do not exist", "run `douban-pipeline setup`")
    migrations.known(found, prefix)
    message = f"our tables are at version {found}, this release needs {wanted}"
    return CheckResult("tables", "fail", message, "stop Dagster and run `douban-pipeline upgrade`")


def _grants(services: Services) -> CheckResult:
    if services.engine.dialect.name == "sqlite":
        return CheckResult("grants", "ok", "SQLite knows no accounts")
    missing = missing_grants(services.engine, services.settings, services.tables, services.cms)
    if not missing:
        return CheckResult("grants", "ok", "this account may do what it needs")
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    message = f"this account lacks {', '.join(missing[:_NAMED])}{more}"
    return CheckResult("grants", "fail", message, "run what `douban-pipeline grants` prints, as the database's owner")


def _clock(services: Services) -> CheckResult:
    if services.engine.dialect.name == "sqlite":
        return CheckResult("clock", "ok", "SQLite has no clock of its own")
    skew = clock_skew(services.engine, services.clock)
    if abs(skew) >= SLIGHT_SKEW:
        message = f"this machine's clock is {skew_text(skew)}"
        return CheckResult("clock", "warn", message, "keep the clocks of all machines in step, with NTP")
    return CheckResult("clock", "ok", "the database's clock agrees with this machine's")


def _home(home: Path) -> CheckResult:
    folder = home.absolute()
    if not folder.is_dir():
        return CheckResult("home", "fail", f"{folder} is no folder", "make it, or set DOUBAN_PIPELINE_HOME to one")
    if not os.access(folder, os.W_OK | os.X_OK):
        return CheckResult("home", "fail", f"{folder} cannot be written", "give it to the user that runs the pipeline")
    free = shutil.disk_usage(folder).free / 1e6
    state: State = "fail" if free < FULL_DISK_MB else "warn" if free < LOW_DISK_MB else "ok"
    remedy = "" if state == "ok" else "make room: reports, backups and logs are written there"
    return CheckResult("home", state, f"{folder}: {free / 1000:,.1f} GB free", remedy)
