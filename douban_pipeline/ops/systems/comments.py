"""The comment system, as the command line serves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from sqlalchemy import URL, Connection, Engine, make_url, select

from douban_pipeline.comments.exporting import COLUMNS
from douban_pipeline.comments.identity import USER_COLUMNS
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.events import oldest_pending
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.shards import working
from douban_pipeline.comments.store.tables import shard
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import reading
from douban_pipeline.ops.grants import grant, server_grant
from douban_pipeline.ops.results import CheckResult
from douban_pipeline.ops.source_checks import reached
from douban_pipeline.ops.systems.registry import MYSQL, System

_BEAT = timedelta(seconds=10)
"""Age from which a worker's note counts for nothing."""
_LONGEST_WAIT = timedelta(minutes=1)
_START = "no worker runs: start `douban-pipeline comment-worker`"


def _checks(settings: CommentsSettings, engine: Engine) -> Iterator[CheckResult]:
    """Look whether workers apply what waits, Redis answers where one is named, and anybody may write."""
    now = SystemClock().now()
    with reading(engine) as connection:
        workers = working(connection, now - _BEAT)
        since = oldest_pending(connection)
    age = (now - since).total_seconds() if since is not None else 0.0
    message = f"{workers} at work, " + ("nothing waits" if since is None else f"the oldest event waits {age:.0f} s")
    if age > _LONGEST_WAIT.total_seconds():
        remedy = "start `douban-pipeline comment-worker`, or one more of them" if workers else _START
        yield CheckResult("worker", "warn", message, remedy)
    else:
        yield CheckResult("worker", "ok", message)
    url = settings.redis_url.get_secret_value()
    if url and not url.startswith("unix:"):
        yield reached("redis", settings.variable("redis_url"), url)
    elif not url:
        yield CheckResult("redis", "ok", f"{settings.variable('redis_url')} names none: the database answers")
    ways = {
        "tokens": bool(settings.token_secret.get_secret_value()),
        "the CMS's login": settings.cms_login,
        "guests": settings.guests,
    }
    known = ", ".join(name for name, there in ways.items() if there)
    if known:
        yield CheckResult("visitors", "ok", f"who writes is told by: {known}")
    else:
        remedy = f"set one of {', '.join(map(settings.variable, ('token_secret', 'cms_login', 'guests')))}"
        yield CheckResult("visitors", "warn", "nobody may write", remedy)


def _grants(settings: CommentsSettings, user: str, host: str) -> Iterator[str]:
    """Yield the rights that settings ask for: on the CMS's comments and users, and to read the binary log."""
    own, library = make_url(settings.tables_url), settings.library_url.get_secret_value()
    prefix = settings.table_prefix
    if own.get_backend_name() in MYSQL:
        if settings.cms_login and library and _place(own) == _place(make_url(library)):
            columns = ", ".join(USER_COLUMNS)
            yield grant(f"SELECT ({columns})", own.database or "", f"{prefix}user", user=user, host=host)
        if settings.follow == "binlog":
            # MariaDB's BINLOG MONITOR goes by this older name too.
            yield server_grant("REPLICATION SLAVE, REPLICATION CLIENT", user=user, host=host)
    if library and make_url(library).get_backend_name() in MYSQL:
        rights = ["SELECT"] if settings.import_batch or settings.export else []
        rights += [f"UPDATE ({', '.join(COLUMNS)})"] if settings.export else []
        if rights:
            database = make_url(library).database or ""
            yield grant(", ".join(rights), database, f"{prefix}comment", user=user, host=host)


def _place(url: URL) -> tuple[str | None, int | None, str | None]:
    return url.host, url.port or 3306, url.database


def _leased_by(connection: Connection) -> list[str]:
    held = (shard.c.lease_until > SystemClock().now()) & (shard.c.owner != "")
    return sorted(connection.execute(select(shard.c.owner.distinct()).where(held)).scalars())


def _pool_limits() -> Mapping[str, int]:
    from douban_pipeline.comments.resources import POOL_LIMITS  # loads Dagster

    return POOL_LIMITS


SYSTEM = System(
    name="comments",
    settings=CommentsSettings,
    tree=TREE,
    pool_limits=_pool_limits,
    location="douban_pipeline.locations.comments",
    checks=_checks,
    grants=_grants,
    leased_by=_leased_by,
)
