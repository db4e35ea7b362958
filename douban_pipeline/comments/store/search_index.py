"""Bigram index of texts, which finds words of two characters as Chinese needs.

A row says that a bigram occurs in a comment. A text with all bigrams of a phrase need not contain the phrase, so
candidates are compared with the text; surplus rows do no harm. A text that is not indexed yet (``indexed`` is false) is
read instead, so search does not depend on the index being complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from sqlalchemy import Connection, Engine, Select, func, literal, select, union_all, update

from douban_pipeline.comments.store.tables import bigram, comment, content
from douban_pipeline.comments.word_forms import clean, normalise, without_marks
from douban_pipeline.core.database import chunks, reading, run_transaction, upsert

_PAIRS = 4
"""Maximum number of bigrams of a phrase that are looked up, rarest first: each costs a lookup, more exclude little."""
_COUNTED = 1000
"""A bigram in more comments than this counts as common."""
_ASKED = 40
"""Maximum number of bigrams of a phrase whose frequency is queried."""
_TEXTS = 500
"""Number of texts per transaction."""
_LETTER = 21
"""Bits that hold any Unicode character."""


def searched_form(text: str) -> str:
    """Return a text in the form used for comparison: without invisible characters, width and case folded."""
    return normalise(without_marks(clean(text)))


def bigrams_of(form: str) -> set[int]:
    """Return the bigrams of a form as numbers; those with whitespace are left out.

    Numbers, because no collation of a database can treat two of them as equal.
    """
    return {
        ord(first) << _LETTER | ord(second)
        for first, second in pairwise(form)
        if not (first.isspace() or second.isspace())
    }


def rarest(connection: Connection, form: str) -> list[int]:
    """Return the bigrams of a form that occur in the fewest comments, rarest first; empty if it has none."""
    pairs = sorted(bigrams_of(form))[:_ASKED]
    if len(pairs) < 2:
        return pairs
    counts = []
    for pair in pairs:
        some = select(bigram.c.comment_id).where(bigram.c.bigram == pair).limit(_COUNTED).subquery()
        counts.append(select(literal(pair).label("pair"), func.count().label("number")).select_from(some))
    found = connection.execute(union_all(*counts)).all()
    return [row.pair for row in sorted(found, key=lambda row: (row.number, row.pair))][:_PAIRS]


def comments_with(pairs: Sequence[int]) -> Select[tuple[int]]:
    """Return the query of comments that contain each of ``pairs``; ``pairs`` is not empty and has the rarest first."""
    first = bigram.alias()
    query = select(first.c.comment_id).where(first.c.bigram == pairs[0])
    for pair in pairs[1:]:
        other = bigram.alias()
        query = query.join(other, (other.c.comment_id == first.c.comment_id) & (other.c.bigram == pair))
    return query


def comments_waiting() -> Select[tuple[int]]:
    """Return the query of comments whose texts are not in the index yet."""
    return select(content.c.comment_id).where(~content.c.indexed)


def fill(engine: Engine, most: int) -> int:
    """Add up to ``most`` texts to the index, oldest first; return how many were added.

    Each transaction adds some hundred texts with their rows, so that an interruption loses nothing; adding a text twice
    changes nothing.
    """
    done = 0
    while done < most:
        query = select(content.c.comment_id, content.c.content).where(~content.c.indexed)
        with reading(engine) as connection:
            rows = connection.execute(query.order_by(content.c.comment_id).limit(min(_TEXTS, most - done))).all()
        if not rows:
            break
        texts = {row.comment_id: row.content for row in rows}
        run_transaction(engine, partial(_take_in, texts=texts))
        done += len(texts)
    return done


def _take_in(connection: Connection, texts: dict[int, str]) -> None:
    found = sorted((pair, number) for number, text in texts.items() for pair in bigrams_of(searched_form(text)))
    for part in chunks(found, 5000):
        rows = [{"bigram": pair, "comment_id": number} for pair, number in part]
        upsert(connection, bigram, rows, keys=["bigram", "comment_id"], changes=["comment_id"])
    for numbers in chunks(sorted(texts)):
        connection.execute(update(content).where(content.c.comment_id.in_(numbers)).values(indexed=True))


def count_texts(connection: Connection, section_id: int) -> tuple[int, int]:
    """Return the number of comments of a section, or of all if it is 0, and how many are not in the index."""
    query = select(func.count()).select_from(content)
    if section_id:
        query = query.join(comment, comment.c.comment_id == content.c.comment_id)
        query = query.where(comment.c.section_id == section_id)
    total, waiting = (connection.execute(each).scalar_one() for each in (query, query.where(~content.c.indexed)))
    return total, waiting


def forget(engine: Engine, section_id: int) -> int:
    """Mark the texts of a section, or all texts if it is 0, for reindexing; return how many.

    Until they are reindexed, searches read them.
    """
    done = last = 0
    while True:
        query = select(content.c.comment_id).where(content.c.comment_id > last)
        if section_id:
            query = query.join(comment, comment.c.comment_id == content.c.comment_id)
            query = query.where(comment.c.section_id == section_id)
        with reading(engine) as connection:
            numbers = list(connection.execute(query.order_by(content.c.comment_id).limit(_TEXTS)).scalars())
        if not numbers:
            return done
        run_transaction(engine, partial(_mark, numbers=numbers))
        done, last = done + len(numbers), numbers[-1]


def _mark(connection: Connection, numbers: Sequence[int]) -> None:
    connection.execute(update(content).where(content.c.comment_id.in_(numbers)).values(indexed=False))
