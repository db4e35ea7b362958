"""Whether an installation is fit to work, looked at from outside: one finding a question, each with its remedy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store import migrations
from douban_pipeline.ops.grants import missing_grants

State = Literal["ok", "warn", "fail"]

SKEW_SECONDS = 5.0
"""How far the database's clock may be from this machine's; leases and paces of several machines rest on one time."""
LOW_DISK_MB, FULL_DISK_MB = 2_000, 200
"""Free space under which HOME is low, and under which it counts as full; 10⁶ bytes."""
_NAMED = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question: what was found, and what to do about it if it is not well."""

    name: str
    state: State
    told: str
    remedy: str = ""


def look(name: str, question: Callable[[], Finding], remedy: str) -> Finding:
    """Ask, and make what the question raises a finding too: a check that dies tells nothing of the others."""
    try:
        return question()
    except (DatabaseError, SQLAlchemyError, OSError) as error:
        # SQLAlchemy's own text goes on with the statement and a link.
        return Finding(name, "fail", str(getattr(error, "orig", None) or error), remedy)


def database_findings(services: Services) -> Iterator[Finding]:
    """Look at the CMS's database and at HOME. The first failure of the database ends the questions to it."""
    questions: list[tuple[str, Callable[[], Finding], str]] = [
        ("database", lambda: _cms(services), "check DOUBAN_PIPELINE_DATABASE_URL and that the server runs"),
        ("tables", lambda: _version(services), "run `douban-pipeline upgrade`"),
        ("grants", lambda: _grants(services), "run what `douban-pipeline grants` prints, as the database's owner"),
        ("clock", lambda: _clock(services), "keep the clocks of all machines in step, with NTP"),
    ]
    for name, question, remedy in questions:
        finding = look(name, question, remedy)
        yield finding
        if finding.state == "fail":
            break
    yield look("home", lambda: _home(services.settings.home), "make DOUBAN_PIPELINE_HOME a folder that can be written")


def _cms(services: Services) -> Finding:
    cms = services.cms
    told = f"{services.settings.shown_library_url}: {cms.vod.name} and {cms.type.name}"
    return Finding("database", "ok", f"{told}, {len(services.categories)} categories")


def _version(services: Services) -> Finding:
    prefix = services.settings.table_prefix
    found, wanted = migrations.current(services.engine, prefix), migrations.head(prefix)
    if found == wanted:
        return Finding("tables", "ok", f"our tables are at version {found}")
    if found is None:
        return Finding("tables", "fail", "our tables do not exist", "run `douban-pipeline setup`")
    migrations.known(found, prefix)
    told = f"our tables are at version {found}, this release needs {wanted}"
    return Finding("tables", "fail", told, "stop Dagster and run `douban-pipeline upgrade`")


def _grants(services: Services) -> Finding:
    if services.engine.dialect.name == "sqlite":
        return Finding("grants", "ok", "SQLite knows no accounts")
    missing = missing_grants(services.engine, services.settings, services.tables, services.cms)
    if not missing:
        return Finding("grants", "ok", "this account may do what it needs")
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    told = f"this account lacks {', '.join(missing[:_NAMED])}{more}"
    return Finding("grants", "fail", told, "run what `douban-pipeline grants` prints, as the database's owner")


def _clock(services: Services) -> Finding:
    if services.engine.dialect.name == "sqlite":
        return Finding("clock", "ok", "SQLite has no clock of its own")
    with reading(services.engine) as connection:
        theirs: datetime = connection.execute(text("SELECT UTC_TIMESTAMP(6)")).scalar_one()
    skew = abs((services.clock.now().replace(tzinfo=None) - theirs).total_seconds())
    if skew > SKEW_SECONDS:
        told = f"the database's clock is {skew:.0f} s from this machine's"
        return Finding("clock", "warn", told, "keep the clocks of all machines in step, with NTP")
    return Finding("clock", "ok", "the database's clock agrees with this machine's")


def _home(home: Path) -> Finding:
    folder = home.absolute()
    if not folder.is_dir():
        return Finding("home", "fail", f"{folder} is no folder", "make it, or set DOUBAN_PIPELINE_HOME to one")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("home", "fail", f"{folder} cannot be written", "give it to the user that runs the pipeline")
    free = shutil.disk_usage(folder).free / 1e6
    state: State = "fail" if free < FULL_DISK_MB else "warn" if free < LOW_DISK_MB else "ok"
    remedy = "" if state == "ok" else "make room: reports, backups and logs are written there"
    return Finding("home", state, f"{folder}: {free / 1000:,.1f} GB free", remedy)
