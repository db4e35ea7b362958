"""Telling people of sources that want a login: once each time one begins to, at the alerts' webhook if there is one."""

from __future__ import annotations

from sqlalchemy import Connection, select

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.messages.alerts import post_alert
from douban_pipeline.core.messages.types import DeliveryError, Message
from douban_pipeline.feeds.failures import UNAUTHORISED
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import polls
from douban_pipeline.feeds.store.tables import source, stats

NAME = "alerted"
ALERTED_FROM = 3
"""Failures in a row from which people are told."""
_MOST_NAMED = 20


def alert_unauthorised(services: FeedsServices) -> list[str]:
    """Tell people of sources that answered 401 three times in a row and of which they were not told; return sentences.

    A source that answers again is forgotten, so that the next time is told anew. What cannot be sent is tried again.
    """
    with reading(services.engine) as connection:
        ill = _unauthorised(connection)
        told = set((polls.read_plan(connection, NAME) or {}).get("sources", []))
    fresh = {each: name for each, name in ill.items() if each not in told}
    sentences = [f"来源 {name} 需要登录或凭据已失效（401），每 15 分钟或更久才试一次" for name in fresh.values()]
    if fresh and not _send(services, sentences):
        fresh = {}
    known = sorted((told & set(ill)) | set(fresh))
    if known != sorted(told):
        now = services.now()
        run_transaction(services.engine, lambda connection: polls.write_plan(connection, NAME, {"sources": known}, now))
    return sentences


def _unauthorised(connection: Connection) -> dict[str, str]:
    query = (
        select(source.c.source_id, source.c.title, source.c.url)
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(stats.c.error_kind == UNAUTHORISED, stats.c.fail_count >= ALERTED_FROM)
    )
    return {row.source_id: row.title or row.url for row in connection.execute(query)}


def _send(services: FeedsServices, sentences: list[str]) -> bool:
    settings = services.settings
    url = settings.alert_webhook_url.get_secret_value()
    if not url:
        return True
    message = Message(
        title=f"{len(sentences)} 个来源需要登录",
        text="\n".join(sentences[:_MOST_NAMED]),
        kind="feeds",
        cause="feeds: unauthorised",
        at=services.clock.now(),
    )
    secret = settings.alert_webhook_secret.get_secret_value()
    try:
        post_alert(settings.alert_webhook_kind, url, secret, message, now=services.clock.now())
    except DeliveryError:
        return False
    return True
