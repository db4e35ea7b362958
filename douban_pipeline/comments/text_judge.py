"""Reviews the texts of a batch of events, with what the database knows of their authors and what moderators set."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, func, select

from douban_pipeline.comments.event_handlers.state import Findings, PendingEvent
from douban_pipeline.comments.ids import first_of
from douban_pipeline.comments.review import GUESTS_WITHIN, CommentDraft, SafetyReview
from douban_pipeline.comments.store import batches, moderators, tables
from douban_pipeline.comments.trust import TrustRules
from douban_pipeline.comments.types import EventKind, Rank
from douban_pipeline.comments.word_forms import clean
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading
from douban_pipeline.core.guesses import household


class TextJudge:
    """Reviews texts before the transaction that publishes them begins, because a review may be slow.

    Args:
        review: The review with the words of the CMS's files; those that moderators set are added.
    """

    def __init__(self, engine: Engine, clock: Clock, review: SafetyReview) -> None:
        self._engine, self._clock = engine, clock
        self._given = self._review = review
        self._revision = 0

    def findings(self, found: Sequence[PendingEvent]) -> dict[int, Findings]:
        """Return by event the result of the review, for those that publish or edit."""
        publishing = [event for event in found if event.kind in (EventKind.PUBLISH, EventKind.EDIT)]
        if not publishing:
            return {}
        # Operators' comments and imported ones are not reviewed, so nothing is looked up for them.
        judged = [event for event in publishing if event.actor_rank < Rank.OPERATOR]
        of_users = [event for event in judged if event.user_id]
        users = sorted({event.user_id for event in of_users})
        now = self._clock.now()
        with reading(self._engine) as connection:
            rules = self._current(connection)
            hashes = batches.recent_hashes(connection, {(event.user_id, event.section_id) for event in of_users})
            guests = {
                (household(_address(event)), event.section_id)
                for event in judged
                if not event.user_id and _address(event)
            }
            hashes_of_guests = batches.recent_hashes_of_guests(connection, guests, now) if guests else {}
            lately: dict[int, int] = {}
            if self._review.per_minute:
                lately = _published_lately(connection, users, now - timedelta(minutes=1))
            of_guests = _guests_lately(connection, {section for _, section in guests}, now) if guests else {}
            waits = _sections_that_wait(connection, sorted({event.section_id for event in publishing}))
            levels = moderators.levels_of(connection, {(event.user_id, _address(event)) for event in judged}, now)
            settled = moderators.with_shown(connection, users, rules.newcomers) if rules.newcomers else set(users)
            linking = {event.user_id for event in of_users if self._review.has_links(str(event.payload["content"]))}
            after = rules.trusted_after
            known = moderators.with_shown(connection, linking, after) if after and linking else set()
        findings = {}
        for event in publishing:
            text = str(event.payload["content"])
            mark = batches.text_hash(clean(text))
            if event.user_id:
                texts = hashes.get((event.user_id, event.section_id), set())
            else:
                texts = hashes_of_guests.get((household(_address(event)), event.section_id), set())
            first = event.kind == EventKind.PUBLISH and event.user_id not in settled
            draft = CommentDraft(
                text,
                event.actor,
                ip=_address(event),
                trusted=event.actor_rank >= Rank.OPERATOR,
                waits_anyway=event.section_id in waits,
                lately=lately.get(event.user_id, 0) if event.user_id else 0,
                of_guests=of_guests.get(event.section_id, 0) if not event.user_id else 0,
                guest=not event.user_id,
                double=mark in texts and event.kind == EventKind.PUBLISH,
                level=levels.get((event.user_id, _address(event))),
                waits_as_new=rules.newcomers if first else 0,
                known=event.user_id in known,
            )
            result = findings[event.event_id] = self._review.judge(draft)
            if result.refusal:
                continue
            texts.add(mark)
            if event.kind == EventKind.PUBLISH:
                counts, whose = (lately, event.user_id) if event.user_id else (of_guests, event.section_id)
                counts[whose] = counts.get(whose, 0) + 1
        return findings

    def _current(self, connection: Connection) -> TrustRules:
        """Return the rules of trust, and read the words again where moderators have changed them."""
        rules, revision = moderators.read_options(connection)
        if revision != self._revision:
            words = moderators.read_words(connection)
            added = self._given.words.plus(words[moderators.MASK], words[moderators.REVIEW])
            self._review, self._revision = replace(self._given, words=added), revision
        return rules


def _address(event: PendingEvent) -> str:
    return str(event.payload.get("ip", ""))


def _published_lately(connection: Connection, users: Sequence[int], since: datetime) -> dict[int, int]:
    if not users:
        return {}
    query = (
        select(tables.comment.c.publisher_id, func.count().label("number"))
        .where(tables.comment.c.publisher_id.in_(users), tables.comment.c.created_at > since)
        .group_by(tables.comment.c.publisher_id)
    )
    return {row.publisher_id: row.number for row in connection.execute(query)}


def _guests_lately(connection: Connection, sections: Collection[int], now: datetime) -> dict[int, int]:
    """Return by section how many comments guests wrote within `GUESTS_WITHIN`, shown or not."""
    c, since = tables.comment.c, now - GUESTS_WITHIN
    query = (
        select(c.section_id, func.count().label("number"))
        .where(c.publisher_id == 0, c.comment_id >= first_of(since), c.created_at > since, c.section_id.in_(sections))
        .group_by(c.section_id)
    )
    return {row.section_id: row.number for row in connection.execute(query)}


def _sections_that_wait(connection: Connection, sections: Sequence[int]) -> set[int]:
    query = select(tables.section.c.section_id, tables.section.c.settings).where(
        tables.section.c.section_id.in_(sections)
    )
    return {row.section_id for row in connection.execute(query) if row.settings.get("review_first")}
