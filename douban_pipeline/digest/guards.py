"""Predicates for the checks of the digest; each queries the database and returns what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Connection

from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.werss import SOURCE as WERSS
from douban_pipeline.digest.push.outbox import Notification, select_notifications
from douban_pipeline.digest.push.rules import PushState, PushType
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import LATEST_PUSH, SlotKey
from douban_pipeline.digest.store import analyses, items, slots
from douban_pipeline.digest.types import SlotStatus

STALE_HOURS = 36
"""Hours without a sync after which an account is stale: WeRSS syncs at least daily."""

SLOT_LATE = timedelta(hours=1)
"""How long after its scheduled time a slot must have ended."""
REPORT_LATE = timedelta(minutes=45)
"""How long after its scheduled time the day's report must have been delivered."""
_DAYS = 2
_IN_A_ROW = 2


@dataclass(frozen=True, slots=True)
class DigestBreach:
    """A violation of a rule: day, slot or account, and the problem."""

    day: str
    what: str
    problem: str


def undone_slots(services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield today's slots that should have succeeded by now and did not."""
    settings, now = services.settings, services.now()
    today = now.astimezone(settings.zone).date()
    known = {row.slot: row for row in slots.of_day(connection, today)}
    first = slots.first_moment(connection)
    for slot in settings.schedule_slots:
        due = SlotKey(today, slot).scheduled_at(settings.zone)
        if due + SLOT_LATE > now or first is None or due < first:
            continue
        row = known.get(slot)
        if row is None:
            yield DigestBreach(str(today), slot, "没有运行")
        elif row.status is not SlotStatus.SUCCESS:
            yield DigestBreach(str(today), slot, f"{row.status.value}：{row.error or '没有结束'}")


def undelivered_reports(services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield overdue reports of the last days that were delivered to no channel."""
    settings, now = services.settings, services.now()
    if not settings.channels:
        return
    today = now.astimezone(settings.zone).date()
    first = slots.first_moment(connection)
    for back in range(_DAYS):
        day = today - timedelta(days=back)
        due = SlotKey(day, settings.report_slot).scheduled_at(settings.zone)
        row = slots.find(connection, day, settings.report_slot)
        if due + REPORT_LATE > now or first is None or due < first:
            continue
        if (row is None and due + LATEST_PUSH < now) or (row is not None and not row.pushes):
            continue
        pushed = status(connection, day, settings.report_slot)
        if not pushed.rows:
            yield DigestBreach(str(day), settings.report_slot, "日报没有进入发送队列")
        elif not pushed.reached_somebody:
            yield DigestBreach(str(day), settings.report_slot, f"日报没有送达：{'；'.join(pushed.problems())[:300]}")


def unsettled_pushes(services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield messages of the last days that may not have arrived and are not retried."""
    since = services.now().astimezone(services.settings.zone).date() - timedelta(days=_DAYS - 1)
    for message in unsettled(connection, since):
        told = "不知是否送达，不会重发" if message.state is PushState.UNKNOWN else "多次发送失败，已放弃"
        yield DigestBreach(
            str(message.report_date),
            f"{message.slot} {message.channel}",
            f"{message.title}：{told}。{message.error or ''} 要再发一次，请启动 resend_notifications".strip(),
        )


def stale_accounts(services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield accounts that WeRSS has not synced for a long time: its authorisation at WeChat may have expired."""
    settings, now = services.settings, services.now()
    longest = timedelta(hours=STALE_HOURS)
    for row in items.all_followed(connection):
        if row.kind != WERSS:
            continue
        if row.synced_at is not None and now - row.synced_at > longest:
            since = local_time(row.synced_at, settings.zone)
            yield DigestBreach(since, row.name or row.mp_id, f"上次同步 {since}，WeRSS 的微信授权可能已失效")
        elif row.last_error and (row.last_good_at is None or now - row.last_good_at > longest):
            yield DigestBreach("", row.name or row.mp_id, f"读取失败：{row.last_error}")


def empty_slots(_services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield the last two slots if both found nothing new although WeRSS answered."""
    last = slots.last_ended(connection, _IN_A_ROW)
    if len(last) < _IN_A_ROW:
        return
    if all(row.counters.get("werss_well") and not row.counters.get("articles_new") for row in last):
        for row in last:
            yield DigestBreach(str(row.run_date), row.slot, "没有新文章，而 WeRSS 正常：可能授权停摆")


def throttled_slots(_services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield the last two slots if the model throttled calls in both."""
    last = slots.last_ended(connection, _IN_A_ROW)
    if len(last) == _IN_A_ROW and all(row.counters.get("throttled") for row in last):
        for row in last:
            count = row.counters["throttled"]
            yield DigestBreach(
                str(row.run_date), row.slot, f"{count} 次 429：并发已自动减半，仍不够时请调低每分钟请求数"
            )


def suspicious_articles(services: DigestServices, connection: Connection) -> Iterator[DigestBreach]:
    """Yield today's articles whose texts may have influenced the model; see `analysis`."""
    today = services.now().astimezone(services.settings.zone).date()
    for row in analyses.of_day(connection, today):
        if row.suspicions:
            yield DigestBreach(str(today), row.title, f"{row.score} 分，{'、'.join(row.suspicions)}")


@dataclass(frozen=True, slots=True)
class PushStatus:
    """Status of one push on all its channels.

    Attributes:
        rows: Its messages, one per channel.
        missing: Configured channels without a message.
    """

    rows: Sequence[Notification]
    missing: Sequence[str] = ()

    @property
    def delivered(self) -> bool:
        """Whether there is at least one channel, and every channel accepted the message."""
        return bool(self.rows) and not self.missing and all(row.state is PushState.SENT for row in self.rows)

    @property
    def reached_somebody(self) -> bool:
        """Whether at least one channel accepted it."""
        return any(row.state is PushState.SENT for row in self.rows)

    @property
    def sent_at(self) -> datetime | None:
        """When the last channel accepted it; None if none did."""
        return max((row.sent_at for row in self.rows if row.sent_at is not None), default=None)

    def problems(self) -> list[str]:
        """Return a sentence for each channel that did not accept it, in Chinese and without secrets."""
        words = {
            PushState.PENDING: "还没有发送",
            PushState.SENDING: "正在发送",
            PushState.FAILED: "发送失败，会再试",
            PushState.UNKNOWN: "不知是否送达",
            PushState.DEAD: "已放弃",
        }
        found = [
            f"{row.channel}：{words[row.state]}（第 {row.attempts} 次）{row.error}".strip()
            for row in self.rows
            if row.state is not PushState.SENT
        ]
        return found + [f"{channel}：没有消息" for channel in self.missing]


def status(
    connection: Connection,
    report_date: date,
    slot: str,
    *,
    push_type: str = PushType.REPORT,
    channels: Sequence[str] = (),
) -> PushStatus:
    """Return the status of a push.

    Args:
        connection: Connection to the digest's tables.
        report_date: Day of the push.
        slot: Slot of the push, ``22:00`` for the report.
        push_type: A value of `PushType`.
        channels: The configured channels, to report those without a message.
    """
    rows = select_notifications(connection, report_date=report_date, slot=slot, push_type=push_type)
    have = {row.channel for row in rows}
    return PushStatus(rows, [channel for channel in channels if channel not in have])


def unsettled(connection: Connection, since: date, most: int = 200) -> list[Notification]:
    """Return messages since a day that may not have arrived and are not retried: UNKNOWN and DEAD."""
    states = (PushState.UNKNOWN.value, PushState.DEAD.value)
    return [row for row in select_notifications(connection, states=states, most=most) if row.report_date >= since]
