"""What the operators' commands ask of the core system: the CMS, the least rights in it, sources, intros, restores."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import URL, Engine, select, update
from sqlalchemy.sql.dml import UpdateBase

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.core.check_results import CheckResult, State
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.grants import grant, missing_rights, quoted_name, quoted_text
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import Operations, SiteQuestion
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings, variable
from douban_pipeline.douban.site_questions import site_questions
from douban_pipeline.douban.source_checks import asked_results, reached_results
from douban_pipeline.douban.upkeep.expiry import TERM, overdue
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

LOW_DISK_MB, FULL_DISK_MB = 2_000, 200
"""Free space, in 10⁶ bytes, under which HOME is low, and under which it counts as full."""


class DoubanOperations(Operations):
    """The core system in the operators' commands."""

    def mode(self, services: Services) -> str:
        """Return whether the CMS is written to."""
        dry = terminal_text("dry run: nothing is written to the CMS")
        return dry if services.settings.dry_run else terminal_text("live", "douban")

    def place(self, services: Services) -> CheckResult:
        """Check that the database contains the CMS's tables."""
        cms, count = services.cms, len(services.categories)
        message = terminal_text("{shown_url}: {vod} and {type}, {count} categories").format(
            shown_url=services.shown_url, vod=cms.vod.name, type=cms.type.name, count=count
        )
        return CheckResult("database", "ok", message)

    def checks(self, services: Services) -> Iterator[CheckResult]:
        """Check the profile of matching and the age of TMDB's facts."""
        yield profile_result(services)
        if services.settings.evidence_from_tmdb:
            yield tmdb_facts_result(services)

    def outside_checks(self, services: Services, *, ask: bool, usable: bool) -> Iterator[CheckResult]:
        """Check the folder of files, the sources, and what is known of intros."""
        yield home_result(services.settings.home)
        yield from asked_results(services, usable=usable) if ask else reached_results(services, usable=usable)
        yield from intro_results(services.settings)

    def missing_rights(self, services: Services) -> list[str]:
        """Return the columns of the CMS's that may not be written."""
        return missing_cms_grants(services.engine, services.settings, services.cms)

    def grants(self, services: Services, user: str, host: str) -> Iterator[str]:
        """Yield the privileges on the CMS's tables."""
        yield from cms_grants(services.settings, services.engine.url, user=user, host=host)

    def introduction(self, services: Services) -> Iterator[str]:
        """Yield what was found of the CMS."""
        cms, count = services.cms, len(services.categories)
        yield f"CMS        {services.shown_url}{terminal_text(', {count} categories').format(count=count)}"
        with_bin = terminal_text("recycle bin: yes")
        without = terminal_text("recycle bin: no (release before 2026)")
        yield f"           {with_bin if cms.has_recycle_bin else without}"
        practice = terminal_text("dry run: nothing is written to the CMS")
        yield f"{terminal_text('mode')}       {practice if services.settings.dry_run else terminal_text('live')}"

    def next_steps(self, _services: Services) -> Iterator[str]:
        """Yield the command that takes in the library."""
        config = json.dumps({"ops": {"initialise": {"config": {"dry_run": False}}}})
        dg = Path(sys.executable).parent / "dg"
        command = f"{dg} launch -m douban_pipeline.definitions --job initialise_library --config-json '{config}'"
        yield terminal_text("Next: take in the library, then start Dagster: {command}").format(command=command)

    def questions(self, services: Services) -> Iterator[SiteQuestion]:
        """Yield what is asked about categories and the collector."""
        yield from site_questions(services)

    def first_look(self, services: Services, most: int, report: Callable[[str], None]) -> str | None:
        """Judge some videos in a dry run."""
        from douban_pipeline.douban.trial import judge_some  # loads Dagster

        return judge_some(services, most, report)

    def after_upgrade(self, services: Services) -> Iterator[CheckResult]:
        """Report the profile of matching."""
        yield profile_result(services)


OPERATIONS = DoubanOperations()
"""The core system's."""


def tmdb_facts_result(services: Services) -> CheckResult:
    """Look for columns with facts of TMDB that are older than its terms allow."""
    with reading(services.engine) as connection:
        found = overdue(services, connection)
    days = TERM.days
    if not found:
        kept = terminal_text("no column of TMDB's is older than {days} days").format(days=days)
        return CheckResult("tmdb_facts", "ok", kept)
    places = terminal_text(", ").join(
        terminal_text("{rows} rows of {column}").format(rows=each.rows, column=each.column) for each in found
    )
    return CheckResult(
        "tmdb_facts",
        "warn",
        terminal_text("older than {days} days, which TMDB's terms do not allow: {places}").format(
            days=days, places=places
        ),
        terminal_text("launch the job prune_history in Dagster"),
    )


def profile_result(services: Services) -> CheckResult:
    """Report the profile of matching, and whether the first verdicts used another default."""
    name, own = services.settings.match_profile, variable("match_profile")
    if "match_profile" in services.settings.model_fields_set:
        set_by = terminal_text("matches are scored by the profile {name}, as {own} says").format(name=name, own=own)
        return CheckResult("profile", "ok", set_by)
    message = terminal_text("matches are scored by the profile {name}, the default: {own} is not set").format(
        name=name, own=own
    )
    verdict = services.tables.verdict
    with reading(services.engine) as connection:
        first = connection.execute(select(verdict.c.profile).order_by(verdict.c.verdict_id).limit(1)).scalar()
    if first in (None, name):
        return CheckResult("profile", "ok", message)
    message += terminal_text("; this library was judged by {first} before, which was the default then").format(
        first=first
    )
    remedy = terminal_text(
        "set {own}={first} to go on as before, or {own}={name} to have chosen; rescore_library shows what changes"
    ).format(own=own, first=first, name=name)
    return CheckResult("profile", "warn", message, remedy)


def intro_results(settings: Settings) -> Iterator[CheckResult]:
    """Say what share of inventions the checks of intros let through, where intros are written."""
    if not settings.ai_intros:
        return
    measured = second_reading.MEASURED
    through = terminal_text(
        "intros may still hold inventions: of {unseen} with one each, {honest} are written if the reading model judges "
        "as asked, {nearest} if it never objects, {careless} if it only sees what is false on purpose; look at samples"
    ).format(
        unseen=second_reading.INVENTIONS,
        honest=measured["honest"].written,
        nearest=measured["nearest"].written,
        careless=measured["careless"].written,
    )
    yield CheckResult("intros", "ok", through)


def home_result(home: Path) -> CheckResult:
    """Check that the folder of local files can be written, and that there is room."""
    folder = home.absolute()
    if not folder.is_dir():
        return CheckResult(
            "home",
            "fail",
            terminal_text("{folder} is not a folder").format(folder=folder),
            terminal_text("create it, or set DOUBAN_PIPELINE_HOME to a folder"),
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return CheckResult(
            "home",
            "fail",
            terminal_text("{folder} is not writable").format(folder=folder),
            terminal_text("make the user that runs the pipeline its owner"),
        )
    mode = folder.stat().st_mode & 0o777
    if mode & 0o007:
        shown = terminal_text("{folder} is open to everyone (mode {mode:o}): reports and backups are in it").format(
            folder=folder, mode=mode
        )
        return CheckResult("home", "warn", shown, f"`chmod o= {folder}`")
    free = shutil.disk_usage(folder).free / 1e6
    state: State = "fail" if free < FULL_DISK_MB else "warn" if free < LOW_DISK_MB else "ok"
    room = terminal_text("free some space: reports, backups and logs are written there")
    left = f"{free / 1000:,.1f} GB"
    message = terminal_text("{folder}: {left} free").format(folder=folder, left=left)
    return CheckResult("home", state, message, "" if state == "ok" else room)


def written_columns(settings: Settings) -> list[str]:
    """Return the columns of `mac_vod` that may be written under ``settings``, in a stable order."""
    policies = settings.policies
    intros = SYNOPSIS_COLUMNS if settings.ai_intros else ()
    return ["vod_douban_id", *(name for name in policies if policies[name] != "never" or name in intros)]


def cms_grants(settings: Settings, url: URL, *, user: str, host: str) -> Iterator[str]:
    """Yield the statements that create an account with exactly the privileges that it needs on the CMS's tables.

    Args:
        settings: Their field policies determine which columns may be written.
        url: The CMS's database.
        user, host: The account, as MySQL names it; the person who runs the statements must set its password.

    Raises:
        ProblemsError: No database is configured.
    """
    if not settings.database_url.get_secret_value():
        name = variable("database_url")
        raise ProblemsError(
            [terminal_text("{name} is not set: it names the database to grant rights in").format(name=name)]
        )
    prefix, database = settings.table_prefix, url.database or ""
    # A comment, so that running this unchanged does not create an account with a known password.
    yield f"-- CREATE USER {quoted_text(user)}@{quoted_text(host)} IDENTIFIED BY '<password>';"
    columns = ", ".join(map(quoted_name, written_columns(settings)))
    yield grant("SELECT", database, f"{prefix}type", user=user, host=host)
    yield grant(f"SELECT, UPDATE ({columns})", database, f"{prefix}vod", user=user, host=host)


def missing_cms_grants(engine: Engine, settings: Settings, cms: Cms) -> list[str]:
    """Return the columns that this account may not write, each as ``UPDATE (vod_year) ON mac_vod``."""
    wanted: list[tuple[str, UpdateBase]] = [
        (f"UPDATE ({column}) ON {cms.vod.name}", update(cms.vod).values({column: cms.vod.c[column]}))
        for column in written_columns(settings)
    ]
    return missing_rights(engine, wanted)
