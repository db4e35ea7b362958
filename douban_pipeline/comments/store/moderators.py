"""Reads and writes what moderators set: levels of trust, words, and the rules of trust."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    delete,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)

from douban_pipeline.comments.store.actions import note
from douban_pipeline.comments.store.moderator_tables import option, trust, word
from douban_pipeline.comments.store.tables import comment
from douban_pipeline.comments.trust import ADDRESS, USER, CurrentLevel, TrustLevel, TrustRules, subjects_of
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import chunks, upsert
from douban_pipeline.core.errors import ProblemsError

MASK, REVIEW = "mask", "review"
"""Consequences of a word."""
MOST_WORDS = 20_000
_TRUST, _WORDS = "trust", "words"
_AUTHORS = 32
_WORST_FIRST = list(TrustLevel)


def _in_force(now: datetime) -> ColumnElement[bool]:
    return trust.c.ended_at.is_(None) & or_(trust.c.until.is_(None), trust.c.until > now)


def levels_of(
    connection: Connection, visitors: Collection[tuple[int, str]], now: datetime
) -> dict[tuple[int, str], CurrentLevel]:
    """Return the level of each visitor, a user's id (0 for a guest) and an address; who has none is missing.

    A user's own level goes before that of the address: somebody trusted may write from a network that is banned.
    """
    subjects = {(ADDRESS, each) for _, given in visitors for each in subjects_of(given)}
    subjects |= {(USER, str(user)) for user, _ in visitors if user}
    found: dict[tuple[str, str], CurrentLevel] = {}
    for part in chunks(sorted({subject for _, subject in subjects})):
        query = select(trust).where(trust.c.subject.in_(part), _in_force(now)).order_by(trust.c.trust_id)
        for row in connection.execute(query):
            found[row.kind, row.subject] = CurrentLevel(TrustLevel(row.level), row.reason, row.until)
    levels = {}
    for user, given in visitors:
        own = found.get((USER, str(user)))
        around = [found[ADDRESS, each] for each in subjects_of(given) if (ADDRESS, each) in found]
        level = own or min(around, key=lambda each: _WORST_FIRST.index(each.level), default=None)
        if level is not None:
            levels[user, given] = level
    return levels


def list_levels(connection: Connection, now: datetime, most: int = 500) -> list[RowMapping]:
    """Return the levels in force, the latest first."""
    query = select(trust).where(_in_force(now)).order_by(trust.c.trust_id.desc()).limit(most)
    return list(connection.execute(query).mappings())


def set_level(
    connection: Connection,
    kind: str,
    subject: str,
    level: TrustLevel,
    reason: str,
    author: str,
    now: datetime,
    until: datetime | None = None,
) -> int:
    """Set a level in place of the one that a user or an address has; return its id."""
    earlier = update(trust).where(trust.c.kind == kind, trust.c.subject == subject, trust.c.ended_at.is_(None))
    connection.execute(earlier.values(ended_at=now, ended_by=author))
    row = {"kind": kind, "subject": subject, "level": level.value, "reason": reason, "author": author}
    done = connection.execute(insert(trust).values(**row, created_at=now, until=until))
    detail = {"level": level.value, "until": until.isoformat() if until else None}
    note(connection, author, "trust", f"{kind}:{subject}", now, detail, reason)
    assert done.inserted_primary_key is not None
    return int(done.inserted_primary_key[0])


def end_level(connection: Connection, trust_id: int, author: str, now: datetime) -> bool:
    """End a level; return whether it was in force."""
    row = connection.execute(select(trust).where(trust.c.trust_id == trust_id, _in_force(now))).one_or_none()
    if row is None:
        return False
    connection.execute(update(trust).where(trust.c.trust_id == trust_id).values(ended_at=now, ended_by=author))
    note(connection, author, "end_trust", f"{row.kind}:{row.subject}", now, {"level": row.level})
    return True


def with_shown(connection: Connection, users: Iterable[int], number: int) -> set[int]:
    """Return those of the users who have at least so many comments whose own status is NORMAL; ``number`` is not 0."""
    c, found = comment.c, set()
    for part in chunks(sorted(set(users)), _AUTHORS):
        some: list[Select[Any]] = []
        for user in part:
            shown = select(c.comment_id).where(c.publisher_id == user, c.status == CommentStatus.NORMAL)
            last = shown.order_by(c.comment_id).offset(number - 1).limit(1).subquery()
            some.append(select(literal(user).label("publisher_id")).select_from(last))
        found |= set(connection.execute(union_all(*some)).scalars())
    return found


def read_options(connection: Connection) -> tuple[TrustRules, int]:
    """Return the rules of trust, and the revision of the words, which every change of them increases."""
    rows = {row.name: row for row in connection.execute(select(option))}
    rules = TrustRules.of(rows[_TRUST].value if _TRUST in rows else {})
    return rules, int(rows[_WORDS].value["revision"]) if _WORDS in rows else 0


def set_rules(connection: Connection, rules: TrustRules, author: str, now: datetime) -> None:
    """Set the rules of trust."""
    before, _ = read_options(connection)
    _set(connection, _TRUST, asdict(rules), author, now)
    note(connection, author, "trust_rules", "trust", now, {"from": asdict(before), "to": asdict(rules)})


def read_words(connection: Connection) -> dict[str, list[str]]:
    """Return the words by consequence."""
    found: dict[str, list[str]] = {MASK: [], REVIEW: []}
    for row in connection.execute(select(word.c.word, word.c.consequence).order_by(word.c.word)):
        found[row.consequence].append(row.word)
    return found


def change_words(
    connection: Connection,
    consequence: str,
    added: Collection[str],
    removed: Collection[str],
    author: str,
    now: datetime,
) -> None:
    """Add words with a consequence, and remove others; workers read the words again for the next comment.

    Raises:
        ProblemsError: There would be too many.
    """
    for part in chunks(sorted(removed)):
        connection.execute(delete(word).where(word.c.word.in_(part)))
    rows: list[Mapping[str, Any]] = [
        {"word": each, "consequence": consequence, "author": author[:40], "created_at": now} for each in sorted(added)
    ]
    upsert(connection, word, rows, keys=["word"], changes=["consequence", "author", "created_at"])
    if len(connection.execute(select(word.c.word).limit(MOST_WORDS + 1)).all()) > MOST_WORDS:
        raise ProblemsError([f"词表最多 {MOST_WORDS} 个词"])
    _, revision = read_options(connection)
    _set(connection, _WORDS, {"revision": revision + 1}, author, now)
    detail = {"added": sorted(added)[:100], "removed": sorted(removed)[:100], "consequence": consequence}
    note(connection, author, "words", "words", now, detail)


def _set(connection: Connection, name: str, value: Mapping[str, Any], author: str, now: datetime) -> None:
    row = {"name": name, "value": dict(value), "author": author[:40], "changed_at": now}
    upsert(connection, option, [row], keys=["name"], changes=["value", "author", "changed_at"])
