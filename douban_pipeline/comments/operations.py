"""What the operators' commands ask of the comment system."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy import URL, Engine, make_url, select

from douban_pipeline.comments import films
from douban_pipeline.comments.cms_export import COLUMN
from douban_pipeline.comments.identity import USER_COLUMNS
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.events import oldest_pending
from douban_pipeline.comments.store.moderator_tables import address
from douban_pipeline.comments.store.shards import working
from douban_pipeline.comments.store.tables import event
from douban_pipeline.comments.types import EventKind, Rank
from douban_pipeline.core.check_results import CheckResult, reached
from douban_pipeline.core.database import reading
from douban_pipeline.core.grants import MYSQL, grant, server_grant
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import Operations
from douban_pipeline.core.settings_base import BASE_PREFIX

_BEAT = timedelta(seconds=10)
"""Age from which a worker's heartbeat is ignored."""
_RECENT, _MANY = 50, 5
"""How many of the latest comments are looked at; visitors of whom it is unlikely that they share an address."""
_LONGEST_WAIT = timedelta(minutes=1)


class CommentsOperations(Operations):
    """The comment system in the operators' commands."""

    def checks(self, services: CommentsServices) -> Iterator[CheckResult]:
        """Check that workers process waiting events, that Redis, if configured, answers, and that anybody may write."""
        settings, engine = services.settings, services.engine
        now = services.clock.now()
        with reading(engine) as connection:
            workers = working(connection, now - _BEAT)
            since = oldest_pending(connection)
        age = (now - since).total_seconds() if since is not None else 0.0
        waits = terminal_text("the oldest event waits {age:.0f} s").format(age=age)
        at_work = terminal_text("{workers} at work, ").format(workers=workers)
        if age > _LONGEST_WAIT.total_seconds():
            command = "`douban-pipeline comment-worker`"
            more = terminal_text("start {command}, or one more of them").format(command=command)
            none = terminal_text("no worker runs: start {command}").format(command=command)
            remedy = more if workers else none
            yield CheckResult("worker", "warn", at_work + waits, remedy)
        else:
            yield CheckResult("worker", "ok", at_work + (terminal_text("nothing waits") if since is None else waits))
        url = settings.redis_url.get_secret_value()
        if url and not url.startswith("unix:"):
            yield reached("redis", settings.variable("redis_url"), url)
        elif not url:
            yield CheckResult("redis", "ok", settings.without_redis)
        ways = {
            terminal_text("tokens"): bool(settings.token_secret.get_secret_value()),
            terminal_text("the CMS's login"): settings.cms_login,
            terminal_text("guests"): settings.guests,
        }
        known = ", ".join(name for name, there in ways.items() if there)
        if known:
            yield CheckResult(
                "visitors", "ok", terminal_text("visitors are identified by: {known}").format(known=known)
            )
        else:
            variables = ", ".join(map(settings.variable, ("token_secret", "cms_login", "guests")))
            remedy = terminal_text("set one of {variables}").format(variables=variables)
            yield CheckResult("visitors", "warn", terminal_text("nobody may write"), remedy)
        yield from _addresses(engine)

    def grants(self, services: CommentsServices, user: str, host: str) -> Iterator[str]:
        """Yield the privileges that the settings require: CMS comments, users and videos, the binary log."""
        settings = services.settings
        own, library = make_url(settings.tables_url), settings.library_url.get_secret_value()
        prefix = settings.table_prefix
        if own.get_backend_name() in MYSQL:
            if settings.cms_login and library and _place(own) == _place(make_url(library)):
                columns = ", ".join(USER_COLUMNS)
                yield grant(f"SELECT ({columns})", own.database or "", f"{prefix}user", user=user, host=host)
            if settings.follow == "binlog":
                # MariaDB also accepts this older name of BINLOG MONITOR.
                yield server_grant("REPLICATION SLAVE, REPLICATION CLIENT", user=user, host=host)
        if library and make_url(library).get_backend_name() in MYSQL:
            rights = ["SELECT"] if settings.import_batch or settings.export else []
            rights += [f"UPDATE ({COLUMN})"] if settings.export else []
            database = make_url(library).database or ""
            if rights:
                yield grant(", ".join(rights), database, f"{prefix}comment", user=user, host=host)
            columns = ", ".join(films.COLUMNS)
            yield grant(f"SELECT ({columns})", database, f"{prefix}vod", user=user, host=host)


OPERATIONS = CommentsOperations()
"""The comment system's."""


def _addresses(engine: Engine) -> Iterator[CheckResult]:
    """Check that visitors' comments do not all come from one address, as they seem to behind a proxy nobody named."""
    recent = select(address.c.comment_id, address.c.address).order_by(address.c.comment_id.desc()).limit(_RECENT)
    a = recent.subquery().c
    sent = (event.c.comment_id == a.comment_id, event.c.kind == EventKind.PUBLISH, event.c.actor_rank < Rank.OPERATOR)
    with reading(engine) as connection:
        rows = connection.execute(select(event.c.actor, a.address).where(*sent)).all()
    visitors, found = {row.actor for row in rows}, {row.address for row in rows}
    if len(visitors) >= _MANY and len(found) == 1:
        problem = terminal_text("the last comments of {visitors} visitors all came from {address}").format(
            visitors=len(visitors), address=found.pop()
        )
        variable = f"{BASE_PREFIX}SERVE_PROXIES"
        remedy = terminal_text("if that is your proxy, name it in {variable}").format(variable=variable)
        yield CheckResult("addresses", "warn", problem, remedy)


def _place(url: URL) -> tuple[str | None, int | None, str | None]:
    return url.host, url.port or 3306, url.database
