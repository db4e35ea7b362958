"""Delivery status of messages, for checks, pages and people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection

from douban_pipeline.digest.push.outbox import Notification, select_notifications
from douban_pipeline.digest.push.rules import PushState, PushType


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
