"""The tables of articles and accounts: each article once, with its body and the claims for its analysis; which
accounts are followed, and when each was last read and synced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from douban_pipeline.core.database import chunks
from douban_pipeline.core.leases import Leases
from douban_pipeline.digest.articles import content_hash, url_hash
from douban_pipeline.digest.store.tables import account, analysis_result, content_item
from douban_pipeline.digest.types import AnalysedStatus, BodyState, FoundArticle, WaitingArticle

_LONGEST_REASON = 300

LEASES = Leases(content_item.c.content_item_id, content_item.c.claim_owner, content_item.c.claim_until)
"""Claims of articles for their analysis."""


def unknown(connection: Connection, articles: Sequence[FoundArticle]) -> list[FoundArticle]:
    """Return the articles that are not stored yet, judged by id and by address; without duplicates."""
    by_id: dict[str, FoundArticle] = {}
    for article in articles:
        by_id.setdefault(article.external_id, article)
    hashes = {article.external_id: url_hash(article.url) for article in by_id.values()}
    seen_ids: set[str] = set()
    seen_urls: set[str] = set()
    for some in chunks([*by_id]):
        query = select(content_item.c.external_id).where(content_item.c.external_id.in_(some))
        seen_ids |= set(connection.execute(query).scalars())
    for some in chunks([value for value in hashes.values() if value]):
        query = select(content_item.c.url_hash).where(content_item.c.url_hash.in_(some))
        seen_urls |= set(connection.execute(query).scalars())
    found: list[FoundArticle] = []
    for external_id, article in by_id.items():
        address = hashes[external_id]
        if external_id in seen_ids or (address is not None and address in seen_urls):
            continue
        if address is not None:
            seen_urls.add(address)
        found.append(article)
    return found


def insert_articles(connection: Connection, run_id: int, articles: Sequence[FoundArticle], now: datetime) -> int:
    """Store articles, each once; return how many are new."""
    new = 0
    for article in unknown(connection, articles):
        text = article.text
        row = {
            "external_id": article.external_id,
            "url_hash": url_hash(article.url),
            "mp_id": article.mp_id,
            "mp_name": article.mp_name[:300],
            "title": article.title[:500],
            "url": article.url,
            "description": article.description,
            "published_at": article.published_at,
            "body_state": BodyState.PENDING.value,
            "run_id": run_id,
            "created_at": now,
            "updated_at": now,
        }
        try:
            with connection.begin_nested():
                inserted = connection.execute(insert(content_item).values(**row))
        except IntegrityError:
            continue  # another process stored it at this moment
        new += 1
        assert inserted.inserted_primary_key is not None
        if text is not None:
            store_body(connection, int(inserted.inserted_primary_key[0]), text, now)
    return new


def waiting_bodies(connection: Connection, since: datetime, most: int) -> list[Row[Any]]:
    """Return key, external id and attempts of articles since a moment without a body, newest first."""
    query = (
        select(
            content_item.c.content_item_id,
            content_item.c.external_id,
            content_item.c.mp_id,
            content_item.c.published_at,
            content_item.c.body_attempts,
        )
        .where(content_item.c.body_state == BodyState.PENDING.value, content_item.c.published_at >= since)
        .order_by(content_item.c.published_at.desc(), content_item.c.content_item_id.desc())
        .limit(most)
    )
    return [*connection.execute(query)]


def store_body(connection: Connection, content_item_id: int, text: str, now: datetime) -> bool:
    """Store a text; return whether it is new: a duplicate of an earlier article is not analysed."""
    title = select(content_item.c.title).where(content_item.c.content_item_id == content_item_id)
    hashed = content_hash(connection.execute(title).scalar_one(), text)
    same = select(func.min(content_item.c.content_item_id)).where(
        content_item.c.content_hash == hashed, content_item.c.content_item_id != content_item_id
    )
    before = connection.execute(same).scalar()
    values: dict[str, Any] = {
        "content_text": text,
        "content_hash": hashed,
        "body_state": BodyState.READY.value,
        "body_reason": "",
        "body_checked_at": now,
        "updated_at": now,
    }
    if before is not None:
        values |= {"analyzed_status": AnalysedStatus.DOUBLE.value, "duplicate_of": before}
    waiting = and_(
        content_item.c.content_item_id == content_item_id, content_item.c.body_state == BodyState.PENDING.value
    )
    return bool(connection.execute(update(content_item).where(waiting).values(**values)).rowcount) and before is None


def note_missing_body(
    connection: Connection, content_item_id: int, reason: str, now: datetime, *, gone: bool = False
) -> None:
    """Record that a body is missing; with ``gone``, that it will never be available."""
    values: dict[str, Any] = {
        "body_reason": reason[:_LONGEST_REASON],
        "body_attempts": content_item.c.body_attempts + 1,
        "body_checked_at": now,
        "updated_at": now,
    }
    if gone:
        values |= {"body_state": BodyState.GONE.value, "analyzed_status": AnalysedStatus.NOTHING.value}
    connection.execute(update(content_item).where(content_item.c.content_item_id == content_item_id).values(**values))


def give_up_bodies(connection: Connection, before: datetime, now: datetime) -> int:
    """Give up bodies of articles that left the window: they are analysed by title and description, if available."""
    old = (content_item.c.body_state == BodyState.PENDING.value) & (content_item.c.published_at < before)
    nothing = AnalysedStatus.NOTHING.value
    status = case((content_item.c.description == "", nothing), else_=content_item.c.analyzed_status)
    values = {"body_state": BodyState.NONE.value, "analyzed_status": status, "updated_at": now}
    return connection.execute(update(content_item).where(old).values(**values)).rowcount


def claim_waiting(
    connection: Connection,
    *,
    most: int,
    most_failed: int,
    owner: str,
    now: datetime,
    lease: timedelta,
    until: datetime | None = None,
) -> list[WaitingArticle]:
    """Claim articles for analysis: the newest first, those that failed before last.

    Args:
        connection: A connection in a transaction.
        most: Maximum number of articles.
        most_failed: Maximum number of those that failed before.
        owner: Owner of the claims.
        now: The current time.
        lease: Duration of the claims.
        until: Articles published later, or at an unknown time, are left to a later slot; None takes all.
    """
    readable: ColumnElement[bool] = content_item.c.body_state.in_([BodyState.READY.value, BodyState.NONE.value])
    if until is not None:
        readable = and_(readable, content_item.c.published_at <= until)
    newest = [content_item.c.published_at.desc(), content_item.c.content_item_id.desc()]
    status = content_item.c.analyzed_status
    # What is under way is free, too, once its claim has ended.
    fresh = status.in_([AnalysedStatus.WAITING.value, AnalysedStatus.UNDER_WAY.value])
    rows: list[Row[Any]] = []
    for which, limit in ((fresh, most), (status == AnalysedStatus.FAILED.value, most_failed)):
        rows += LEASES.claim(
            connection,
            owner,
            now=now,
            until=now + lease,
            where=(which, readable, content_item.c.content_item_id.not_in([row.content_item_id for row in rows])),
            order_by=newest,
            limit=min(limit, most - len(rows)),
            values={"analyzed_status": AnalysedStatus.UNDER_WAY.value, "updated_at": now},
        )
    return [*map(_waiting, rows)]


def note_failure(
    connection: Connection, content_item_id: int, owner: str, error: str, most_attempts: int, now: datetime
) -> None:
    """Record that the analysis of an article failed; after ``most_attempts`` slots it is given up."""
    attempts = content_item.c.analysis_attempts + 1
    status = case((attempts >= most_attempts, AnalysedStatus.GIVEN_UP.value), else_=AnalysedStatus.FAILED.value)
    # The status is the first of these columns: MySQL uses a column's new value in later assignments.
    changed = {
        "analyzed_status": status,
        "analysis_attempts": attempts,
        "analysis_error": error[:500],
        "updated_at": now,
    }
    LEASES.finish(connection, content_item_id, owner, changed)


def release(connection: Connection, ids: Collection[int], owner: str, now: datetime) -> None:
    """Release claimed articles that were not sent to the model; does not count as an attempt."""
    status = case(
        (content_item.c.analysis_attempts > 0, AnalysedStatus.FAILED.value), else_=AnalysedStatus.WAITING.value
    )
    LEASES.put_back(connection, owner, ids, {"analyzed_status": status, "updated_at": now})


def release_all(connection: Connection, owner: str, now: datetime) -> None:
    """Release all claims of a dead owner."""
    release(connection, LEASES.held(connection, owner), owner, now)


def extend_claims(connection: Connection, ids: Collection[int], owner: str, until: datetime) -> None:
    """Extend claims."""
    LEASES.renew(connection, owner, ids, until)


def chosen(connection: Connection, ids: Collection[int]) -> list[WaitingArticle]:
    """Return articles by id in any state, for a repeated analysis; those without a text are left out."""
    found: list[WaitingArticle] = []
    for some in chunks([*ids]):
        readable = content_item.c.body_state.in_([BodyState.READY.value, BodyState.NONE.value])
        query = select(content_item).where(content_item.c.content_item_id.in_(some), readable)
        found += map(_waiting, connection.execute(query.order_by(content_item.c.content_item_id)))
    return found


def by_title(connection: Connection, words: str, most: int) -> list[Row[Any]]:
    """Return articles whose title contains ``words``, newest first."""
    query = (
        select(content_item, analysis_result.c.analysis_id, analysis_result.c.score, analysis_result.c.summary)
        .join_from(
            content_item,
            analysis_result,
            analysis_result.c.content_item_id == content_item.c.content_item_id,
            isouter=True,
        )
        .where(content_item.c.title.contains(words, autoescape=True))
        .order_by(content_item.c.content_item_id.desc())
        .limit(most)
    )
    return [*connection.execute(query)]


def _waiting(row: Row[Any]) -> WaitingArticle:
    return WaitingArticle(
        row.content_item_id,
        row.mp_name,
        row.title,
        row.url,
        row.description,
        row.content_text or "",
        row.published_at,
        row.analysis_attempts,
    )


def last_reads(connection: Connection) -> Mapping[str, datetime | None]:
    """Return when each account was last read successfully."""
    rows = connection.execute(select(account.c.mp_id, account.c.last_good_at))
    return {row.mp_id: row.last_good_at for row in rows}


def note_account(connection: Connection, mp_id: str, kind: str, now: datetime, **values: Any) -> None:
    """Store values of an account, creating its row if needed."""
    changed = update(account).where(account.c.mp_id == mp_id).values(kind=kind, updated_at=now, **values)
    if not connection.execute(changed).rowcount:
        known = connection.execute(select(account.c.mp_id).where(account.c.mp_id == mp_id)).first()
        if known is None:
            connection.execute(insert(account).values(mp_id=mp_id, kind=kind, updated_at=now, **values))


def set_followed(connection: Connection, kind: str, followed: Collection[str]) -> None:
    """Store which accounts of a kind are followed; all others are not followed any more."""
    rows = connection.execute(select(account.c.mp_id, account.c.followed).where(account.c.kind == kind)).all()
    for row in rows:
        if row.followed != (row.mp_id in followed):
            changed = update(account).where(account.c.mp_id == row.mp_id).values(followed=row.mp_id in followed)
            connection.execute(changed)


def all_followed(connection: Connection) -> list[Row[Any]]:
    """Return the rows of the followed accounts, by name."""
    query = select(account).where(account.c.followed.is_(True)).order_by(account.c.name, account.c.mp_id)
    return [*connection.execute(query)]
