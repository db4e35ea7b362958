"""The least privileges that the account needs on the CMS's tables, and those that it lacks."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import URL, Engine, update
from sqlalchemy.sql.dml import UpdateBase

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.grants import grant, missing_rights, quoted_name, quoted_text
from douban_pipeline.core.language import terminal_text
from douban_pipeline.douban.settings import Settings, variable
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS


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
