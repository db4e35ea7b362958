"""WebSub: subscribing at hubs, verifying what they ask, and storing what they push.

Polls go on as a backup at the slowest cadence while a hub delivers, and at the source's own if it does not: until its
first push, after its lease, and from a poll that found what it should have pushed until it pushes again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import GateClosed, SourceError
from douban_pipeline.core.http_answers import HttpExchange
from douban_pipeline.feeds.budget_plan import MAX_GAP
from douban_pipeline.feeds.cadence import RSS_CADENCE_INTERVALS
from douban_pipeline.feeds.clients.hubs import is_signed
from douban_pipeline.feeds.clients.syndication import parse_feed
from douban_pipeline.feeds.failures import FeedRefused
from douban_pipeline.feeds.scheduler import PlannedCheck
from douban_pipeline.feeds.services import MAX_ENTRIES, FeedsServices
from douban_pipeline.feeds.store import entries, hubs, sources, stats
from douban_pipeline.feeds.store.hubs import HubState, Subscription
from douban_pipeline.feeds.types import Entry, FetchedFeed, HubFigures, Source, SourceKind, SourceState

PATH = "/feeds/websub"
"""Where the service receives pushes, below its public address; the token follows."""
LEASE = 7 * 86_400
"""Seconds of a lease that hubs are asked for; many grant ten days at most."""
LONGEST_LEASE = 30 * 86_400
"""A hub that grants more is asked again after this time nevertheless."""
LEAST_LEASE = 300
"""A shorter lease would cost more requests than polls do: it counts as refused."""
RENEWED_AT = 0.75
"""Share of a lease after which it is renewed, so that a hub that is down for a while loses nothing."""
LATE = 15 * 60
"""Seconds after publication from which an entry that a poll finds counts as one that the hub did not push."""
_MOST_ASKED = 20
_FIRST_WAIT, _LONGEST_WAIT = 900, 86_400
_THIN_EVERY = 60
_VERIFIED_WITHIN = 900

logger = logging.getLogger(__name__)


def callback_of(services: FeedsServices, token: str) -> str:
    """Return the address at which a hub pushes; empty without a public address."""
    public = services.settings.public_url.rstrip("/")
    return f"{public}{PATH}/{token}" if public else ""


def learn(
    connection: Connection, source: Source, fetched: FetchedFeed, new: Sequence[Entry], now: int
) -> Subscription | None:
    """Note what a poll says of a source's hub, and return the subscription; None if there is none.

    The hub is noted if the feed names it, but not for a source with credentials: what is pushed passes a third party.
    New entries that the hub had the time to push, and did not, show that it no longer delivers.
    """
    if source.kind is not SourceKind.RSS:
        return None
    if fetched.hub is not None:
        hubs.note(connection, source.source_id, "" if source.credential else fetched.hub, fetched.topic, now)
    known = hubs.of_source(connection, source.source_id)
    if known is None or not known.serves(now):
        return known
    times = [each.published_at for each in new if each.published_at is not None]
    late = sum(known.last_push_at < moment < now - LATE for moment in times)
    if late:
        hubs.write(connection, source.source_id, {"missed": late}, now)
        logger.warning("the hub of source %s did not push %d entries: it is polled again", source.source_id, late)
        return replace(known, missed=late)
    return known


@dataclass(frozen=True, slots=True)
class HubPlanner:
    """The next poll of a source that a hub serves: the backup, within the lease; a `scheduler.CheckPlanner`."""

    subscription: Subscription

    def next_check(self, conn: Connection, stats: dict[str, Any], now: int, floor: int) -> PlannedCheck:
        """Return the latest poll that is allowed."""
        at = max(min(now + MAX_GAP, self.subscription.lease_until + 60), now + 60, floor)
        return PlannedCheck(at, {"profile": "websub", "bound": "hub", "lease_until": self.subscription.lease_until})


def figures(connection: Connection, now: int) -> HubFigures:
    """Return what hubs do, and what it saves."""
    found = hubs.figures(connection, now)
    backup = 86_400 / MAX_GAP
    saved = sum(
        count * max(86_400 / RSS_CADENCE_INTERVALS.get(cadence, MAX_GAP) - backup, 0.0)
        for cadence, count in hubs.served_cadences(connection, now).items()
    )
    counts = {name: found[f"hub_{name}"] for name in ("subscriptions", "served", "pushes", "entries")}
    return HubFigures(**counts, saved=round(saved))


def renew(services: FeedsServices) -> int:
    """Ask hubs to subscribe, or to renew a lease, where it is time; return how many accepted. 20 at most a call."""
    if not services.settings.public_url:
        return 0
    with reading(services.engine) as connection:
        waiting = hubs.to_ask(connection, services.now(), _MOST_ASKED)
    return sum(_ask(services, each) for each in waiting)


def _ask(services: FeedsServices, given: Subscription) -> bool:
    now = services.now()
    wait = min(_FIRST_WAIT * 2 ** min(given.attempts, 10), _LONGEST_WAIT)
    asked = HubState.ACTIVE if given.state is HubState.ACTIVE and given.lease_until > now else HubState.ASKED
    # Before the request: the hub may verify while it answers. Without a verification it is asked again.
    before = {"state": asked.value, "attempts": given.attempts + 1, "asked_at": now, "ask_at": now + wait}
    run_transaction(services.engine, lambda connection: hubs.write(connection, given.source_id, before, now))
    form = {"hub.mode": "subscribe", "hub.topic": given.topic, "hub.callback": callback_of(services, given.token)}
    form |= {"hub.secret": given.secret, "hub.lease_seconds": str(LEASE)}

    def accepted(answer: HttpExchange) -> None:
        if not 200 <= answer.status < 300:
            raise FeedRefused("hub", f"HTTP {answer.status}", answer.status)

    try:
        hub = Source(given.source_id, SourceKind.RSS, given.hub)
        with services.web_fetcher(hub) as fetcher:
            fetcher.log_in(given.hub, form, accepted, key=f"hub of {given.source_id}")
    except SourceError as error:
        reason = error.reason[:500]
        failed = {"reason": reason} | ({"attempts": given.attempts} if isinstance(error, GateClosed) else {})
        run_transaction(services.engine, lambda connection: hubs.write(connection, given.source_id, failed, now))
        return False
    return True


def verify(services: FeedsServices, token: str, query: Mapping[str, str]) -> str | None:
    """Return the challenge by which a hub's question is confirmed (section 5.3); None to refuse it.

    A subscription is confirmed if this system asked for it within the last 15 minutes; that it ends is never confirmed,
    since this system does not ask for it. A denial (section 5.2) is noted.
    """
    mode, topic, now = query.get("hub.mode", ""), query.get("hub.topic", ""), services.now()

    def answer(connection: Connection) -> str | None:
        known = hubs.of_token(connection, token)
        if known is None or known.topic != topic:
            return None
        if mode == "denied":
            values = {"state": HubState.DENIED.value, "ask_at": now + 7 * _LONGEST_WAIT}
            values |= {"reason": query.get("hub.reason", "")[:500], "lease_until": 0}
            hubs.write(connection, known.source_id, values, now)
            _due_now(connection, known.source_id, now)
            return ""
        lease, challenge = query.get("hub.lease_seconds", ""), query.get("hub.challenge", "")
        if mode != "subscribe" or not challenge or not lease.isascii() or not lease.isdigit():
            return None
        seconds = min(int(lease[:12]), LONGEST_LEASE)
        if seconds < LEAST_LEASE or now - known.asked_at > _VERIFIED_WITHIN:
            return None
        values = {"state": HubState.ACTIVE.value, "reason": "", "attempts": 0, "lease_until": now + seconds}
        hubs.write(connection, known.source_id, {**values, "ask_at": now + int(RENEWED_AT * seconds)}, now)
        return challenge

    return run_transaction(services.engine, answer)


def subscription_of(services: FeedsServices, token: str) -> Subscription | None:
    """Return the subscription whose hub may push to a token now; None if there is none."""
    with reading(services.engine) as connection:
        known = hubs.of_token(connection, token)
    return (
        known if known is not None and known.state is HubState.ACTIVE and known.lease_until > services.now() else None
    )


def receive(services: FeedsServices, token: str, body: bytes, content_type: str, signature: str) -> bool:
    """Store what a hub pushes; return whether there is such a subscription.

    What is not signed with the subscription's secret is ignored. A push only adds entries that are new, so that one
    that is repeated or late changes nothing; the source is polled at once if a push is thin (without entries), cannot
    be read, or has other contents of known entries.
    """
    now, known = services.now(), subscription_of(services, token)
    if known is None:
        return False
    if not is_signed(body, signature, known.secret):
        logger.warning("a push for source %s is not signed by its hub, and was ignored", known.source_id)
        return True
    found: list[Entry] = []
    try:
        zone, host = services.settings.zone, "hub"
        found = list(parse_feed(host, body, content_type, known.topic, now=now, zone=zone, most=MAX_ENTRIES).entries)
    except SourceError as error:
        logger.info("a push for source %s holds no feed (%s): it is polled", known.source_id, error.reason)
    run_transaction(services.engine, lambda connection: _store(connection, known, found, now))
    return True


def _store(connection: Connection, known: Subscription, found: list[Entry], now: int) -> None:
    source_id = known.source_id
    source = sources.read_sources(connection, [source_id]).get(source_id)
    row = stats.lock_stats(connection, source_id)
    if source is None or source.state is not SourceState.ACTIVE or row is None:
        return
    own, _ = entries.with_own_guids(connection, source_id, found)
    added, rest = entries.add_new(connection, source_id, own, now)
    hubs.count_push(connection, source_id, added, now)
    if added:
        newest = min(stats.newest_publication(connection, source_id), now)
        stats.write_stats(connection, source_id, {"last_article_at": max(row["last_article_at"] or 0, newest)})
    if (rest or not found) and now - (row["last_check_at"] or 0) >= _THIN_EVERY:
        _due_now(connection, source_id, now)


def _due_now(connection: Connection, source_id: str, now: int) -> None:
    row = stats.lock_stats(connection, source_id)
    # A back-off and a pause hold, whoever pushes.
    if row is not None and (row["backoff_until"] or 0) <= now and row["next_due_at"] < stats.NEVER_DUE:
        stats.write_stats(connection, source_id, {"next_due_at": min(row["next_due_at"], now)})
