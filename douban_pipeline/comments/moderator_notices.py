"""Tells moderators of comments that wait, where a site names channels: robots, webhooks, mail; see `core.messages`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection, func, select

from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.comment_search import SearchRequest
from douban_pipeline.comments.store.marks import Mark, read_mark, store_mark
from douban_pipeline.comments.store.tables import comment, content, section
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.messages.channels import read_channels
from douban_pipeline.core.messages.types import Channel, DeliveryError, Message

EVERY = timedelta(minutes=30)
"""Time between two messages to a channel: what waits is looked at in one go. A flood of guests is told of at once, and
again after this time."""
_SHOWN, _LETTERS = 5, 60
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class NoticeReport:
    """Result of a call.

    Attributes:
        problems: Why others were not, by channel.
    """

    waiting: int = 0
    told: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def tell_moderators(services: CommentsServices) -> NoticeReport:
    """Tell each channel of comments that wait, if any began to wait since it was told.

    A channel that does not accept the message is told at the next call; one that may have accepted it not
    twice.
    """
    now = services.clock.now()
    channels = read_channels(services.settings.moderator_channels.get_secret_value())
    with reading(services.engine) as connection:
        report = NoticeReport(_waiting(connection, _NEVER))
        marks = {name: read_mark(connection, _mark(name)) for name in channels}
    for name, channel in channels.items():
        known = marks[name]
        told = known.at if known is not None else None
        recently = told is not None and now - told < EVERY
        if recently and known is not None and known.number:
            continue
        with reading(services.engine) as connection:
            flood = _waiting(connection, told or _NEVER, "flood")
            if recently and not flood:
                continue
            fresh = _waiting(connection, told or _NEVER)
            latest = _latest(connection, told or _NEVER) if fresh else []
        if not fresh:
            continue
        try:
            _send(channel, _message(services, report.waiting, fresh, flood, latest, now), now)
        except DeliveryError as error:
            report.problems[name] = str(error)
            if not error.uncertain:
                continue
        else:
            report.told.append(name)
        run_transaction(services.engine, partial(store_mark, mark=Mark(_mark(name), at=now, number=flood)))
    return report


def _mark(channel: str) -> str:
    return f"told {channel}"


def _waiting(connection: Connection, since: datetime, reason: str = "") -> int:
    because = SearchRequest(status=CommentStatus.REVIEW, reason=reason).conditions()
    return connection.execute(select(func.count()).where(*because, comment.c.updated_at > since)).scalar_one()


def _latest(connection: Connection, since: datetime) -> list[str]:
    query = (
        select(section.c.title, content.c.content, comment.c.meta)
        .join_from(comment, content, content.c.comment_id == comment.c.comment_id)
        .join(section, section.c.section_id == comment.c.section_id)
        .where(comment.c.status == CommentStatus.REVIEW, comment.c.updated_at > since)
        .order_by(comment.c.comment_id.desc())
        .limit(_SHOWN)
    )
    lines = []
    for row in connection.execute(query):
        film = f"《{row.title}》" if row.title else ""
        why = f"（{'；'.join(row.meta['reasons'])}）" if row.meta.get("reasons") else ""
        lines.append(f"{film}{' '.join(row.content.split())[:_LETTERS]}{why}")
    return lines


def _message(
    services: CommentsServices, waiting: int, fresh: int, flood: int, latest: Sequence[str], now: datetime
) -> Message:
    more = [f"……新增共 {fresh} 条"] if fresh > len(latest) else []
    public = services.settings.public_url
    return Message(
        title=("游客发言突增：" if flood else "") + f"{waiting} 条评论等待审核，新增 {fresh} 条",
        text="\n".join([*latest, *more]),
        kind="comments",
        cause="comments waiting",
        at=now,
        url=f"{public.rstrip('/')}/comments/admin" if public else "",
        key=f"comments-{int(now.timestamp())}",
    )


def _send(channel: Channel, message: Message, now: datetime) -> None:
    for part in channel.parts(message):
        channel.send(part, now=now)
