"""Erases texts with everything derived from them: earlier versions, the search index, the sender's address."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select, update

from douban_pipeline.comments.event_handlers.state import CommentState
from douban_pipeline.comments.store.moderator_tables import address
from douban_pipeline.comments.store.search_index import bigrams_of, searched_form
from douban_pipeline.comments.store.tables import bigram, comment, content, edit
from douban_pipeline.core.database import chunks


def erase_texts(connection: Connection, erased: Sequence[CommentState]) -> None:
    """Erase the texts of comments, and what the rows of the comments say of their authors."""
    ids = [each.comment_id for each in erased]
    for part in chunks(ids):
        texts = list(
            connection.execute(select(content.c.comment_id, content.c.content).where(content.c.comment_id.in_(part)))
        )
        texts += connection.execute(select(edit.c.comment_id, edit.c.content).where(edit.c.comment_id.in_(part)))
        for number, text in texts:
            for pairs in chunks(sorted(bigrams_of(searched_form(text)))):
                connection.execute(delete(bigram).where(bigram.c.bigram.in_(pairs), bigram.c.comment_id == number))
        connection.execute(delete(edit).where(edit.c.comment_id.in_(part)))
        connection.execute(delete(address).where(address.c.comment_id.in_(part)))
        empty = {"content": "", "content_hash": "", "indexed": True, "judged": True}
        connection.execute(update(content).where(content.c.comment_id.in_(part)).values(**empty))
    for part in chunks([each.comment_id for each in erased if not each.publisher_id]):
        gone = update(comment).where(comment.c.comment_id.in_(part))
        connection.execute(gone.values(publisher_id=0))
