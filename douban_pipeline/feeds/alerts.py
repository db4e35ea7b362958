"""Alerts about problems of sources that need a person, sent to the alerts' webhook once per occurrence of a problem.

Problems ("causes") are searched in the database after polls and every hour. Those already reported are stored in
`feed_plan`; a resolved one is removed there, so that it is reported again if it returns. A message that
cannot be sent is retried at the next call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, case, func, or_, select

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.messages.robots import post_alert
from douban_pipeline.core.messages.types import DeliveryError, Message
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.failures import UNAUTHORISED, canonical_of_status
from douban_pipeline.feeds.guards import starved
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import polls
from douban_pipeline.feeds.store.sources import gaps
from douban_pipeline.feeds.store.tables import source, stats
from douban_pipeline.feeds.types import SourceState

NAME = "alerted"
ALERTED_FROM = 3
"""Failures in a row from which a problem is reported."""
LEAST_OF_HOST = 0.5
"""Share of a host's sources that must be refused for the host to count as having banned us."""
LEAST_OF_ALL, FEWEST = 0.5, 10
"""Our own connection is suspected if at least this share of all sources, and at least this many, did not answer."""
_MOST_NAMED = 20
_MOST_GAPS = 200
_REFUSALS = (canonical_of_status(429), canonical_of_status(403))
_SILENT = ("no connection", "no answer in time")
TITLES = {
    "login": "{} 个来源需要登录",
    "banned": "{} 台主机拒绝我们抓取",
    "starved": "有来源没有按时抓取",
    "offline": "多数来源没有应答",
    "gap": "{} 个来源有没读到的更新",
}
"""Title of a message about problems of a kind, with their number."""


@dataclass(frozen=True, slots=True)
class FeedCause:
    """A problem that needs a person: its kind, a name that stays the same while it lasts, and a sentence."""

    kind: str
    name: str
    sentence: str


@dataclass(slots=True)
class FeedAlerts:
    """Result of a call: all current problems, those reported now, and why the others were not."""

    lasting: list[FeedCause] = field(default_factory=list)
    reported: list[FeedCause] = field(default_factory=list)
    problem: str = ""


def report_causes(services: FeedsServices) -> FeedAlerts:
    """Report the problems that were not reported before; return the current and the newly reported ones.

    Without a webhook the problems are only shown in Dagster, and count as reported.
    """
    with reading(services.engine) as connection:
        found = FeedAlerts(list(causes(services, connection)))
        known = set((polls.read_plan(connection, NAME) or {}).get("causes", []))
    fresh = [each for each in found.lasting if each.name not in known]
    for kind in TITLES:
        of_kind = [each for each in fresh if each.kind == kind]
        if not of_kind:
            continue
        found.problem = _send(services, kind, of_kind)
        if found.problem:
            break
        found.reported += of_kind
    names = sorted({each.name for each in found.lasting} & known | {each.name for each in found.reported})
    if names != sorted(known):
        now = services.now()
        run_transaction(services.engine, lambda connection: polls.write_plan(connection, NAME, {"causes": names}, now))
    return found


def causes(services: FeedsServices, connection: Connection) -> Iterator[FeedCause]:
    """Yield the current problems that need a person."""
    yield from _wants_login(connection)
    yield from _banned(services, connection)
    late = [breach.source for breach in starved(services, connection)]
    if late:
        shown = "、".join(late[:_MOST_NAMED])
        yield FeedCause(
            "starved", "starved", f"{len(late)} 个来源早该抓取：{shown}。看 due_feeds_sensor 和抓取运行是否正常"
        )
    yield from _offline(connection)
    for source_id, title, _, gap in gaps(connection, _MOST_GAPS):
        sentence = f"来源 {title}：{wording.gap_text(gap, services.settings.zone)}"
        yield FeedCause("gap", f"gap {source_id} {gap.at}", sentence)


def _wants_login(connection: Connection) -> Iterator[FeedCause]:
    query = (
        select(source.c.source_id, source.c.title, source.c.url)
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(
            source.c.state == SourceState.ACTIVE.value,
            stats.c.error_kind == UNAUTHORISED,
            stats.c.fail_count >= ALERTED_FROM,
        )
        .order_by(source.c.source_id)
    )
    for row in connection.execute(query):
        sentence = f"来源 {row.title or row.url} 需要登录或凭据已失效（401），每 15 分钟或更久才试一次"
        yield FeedCause("login", f"login {row.source_id}", sentence)


def _banned(services: FeedsServices, connection: Connection) -> Iterator[FeedCause]:
    """Yield hosts that refuse most of their sources, by 429 or 403: at least two sources, or one again and again."""
    refuses = case((stats.c.error_kind.in_(_REFUSALS) & (stats.c.backoff_until > services.now()), 1), else_=0)
    refused = func.sum(refuses).label("refused")
    failures = func.max(case((refuses == 1, stats.c.fail_count), else_=0))
    query = (
        select(source.c.host, func.count().label("sources"), refused, func.max(stats.c.backoff_until).label("until"))
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(source.c.state == SourceState.ACTIVE.value)
        .group_by(source.c.host)
        .having(refused >= LEAST_OF_HOST * func.count(), or_(refused > 1, failures >= ALERTED_FROM))
        .order_by(source.c.host)
    )
    for row in connection.execute(query):
        hours = max(row.until - services.now(), 0) / 3600
        whom = (
            f"{row.sources} 个来源中的 {row.refused} 个" if row.sources > 1 else f"它唯一的来源至少 {ALERTED_FROM} 次"
        )
        sentence = f"主机 {row.host} 拒绝了{whom}（429 或 403），最多还停 {hours:.1f} 小时"
        yield FeedCause("banned", f"banned {row.host}", sentence)


def _offline(connection: Connection) -> Iterator[FeedCause]:
    silent = func.sum(case((stats.c.error_kind.in_(_SILENT) & (stats.c.fail_count > 0), 1), else_=0))
    hosts = func.count(source.c.host.distinct())
    query = (
        select(func.count(), silent, hosts)
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(source.c.state == SourceState.ACTIVE.value, stats.c.check_count > 0)
    )
    polled, failed, many_hosts = (int(value or 0) for value in connection.execute(query).one())
    if many_hosts > 1 and polled >= FEWEST and failed >= LEAST_OF_ALL * polled:
        yield FeedCause(
            "offline", "offline", f"{polled} 个来源中有 {failed} 个连接不上或不应答：先看本机的网络、DNS 和代理"
        )


def _send(services: FeedsServices, kind: str, fresh: list[FeedCause]) -> str:
    """Send one message with problems of one kind; return why it was not accepted, or an empty text."""
    settings = services.settings
    url = settings.alert_webhook_url.get_secret_value()
    if not url:
        return ""
    more = f"\n……共 {len(fresh)} 项" if len(fresh) > _MOST_NAMED else ""
    message = Message(
        title=TITLES[kind].format(len(fresh)),
        text="\n".join(each.sentence for each in fresh[:_MOST_NAMED]) + more,
        kind="feeds",
        cause=f"feeds: {kind}",
        at=services.clock.now(),
    )
    secret = settings.alert_webhook_secret.get_secret_value()
    try:
        post_alert(settings.alert_webhook_kind, url, secret, message, now=services.clock.now())
    except DeliveryError as error:
        return str(error)
    return ""
