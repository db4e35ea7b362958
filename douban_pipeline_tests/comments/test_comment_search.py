"""Searching comments by the index of pairs of characters, on MariaDB and SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, delete, insert, update

from douban_pipeline.comments.store import comment_search, search_index
from douban_pipeline.comments.store.comment_search import SearchRequest, search_comments
from douban_pipeline.comments.store.search_index import bigrams_of, searched_form
from douban_pipeline.comments.store.tables import bigram, comment
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline_tests.comments.sections import NOW, comment_tables, plant_comments, plant_section

TEXTS = ["这一集的配乐真好", "配音一般，乐队真好", "ＧＯＯＤ ending 👍👍", "好", "100%_真", "配\u200b乐！"]


@pytest.fixture
def engine(any_database_url: str) -> Iterator[Engine]:
    with comment_tables(any_database_url) as opened:
        plant_section(opened, 1)
        yield opened


def search(engine: Engine, most: int = 50, **asked: object) -> tuple[list[int], int | None]:
    with engine.connect() as connection:
        page = search_comments(connection, SearchRequest(**asked), most)
    return [view.comment_id for view in page.comments], page.before


FOUND = {
    "配乐": [5, 0],
    "乐真好": [0],
    "真好": [1, 0],
    "good": [2],
    "Good End": [2],
    "👍👍": [2],
    "好": [3, 1, 0],
    "0%_": [4],
    "d e": [2],
    "没有的": [],
    "": [5, 4, 3, 2, 1, 0],
}


@pytest.mark.parametrize("indexed", [0, 3, 6])
def test_what_is_found_is_what_the_texts_hold_indexed_or_not(indexed, engine):
    ids = plant_comments(engine, 1, [{"text": each} for each in TEXTS])
    assert search_index.fill(engine, indexed) == indexed
    found = {text: search(engine, text=text) for text in FOUND}
    assert found == {text: ([ids[place] for place in places], None) for text, places in FOUND.items()}


def test_pages_follow_each_other_by_id(engine):
    ids = plant_comments(engine, 1, [{"text": f"第 {number} 条好看"} for number in range(7)])
    search_index.fill(engine, 4)
    found, before = [], 0
    while before is not None:
        page, before = search(engine, 3, text="好看", before=before)
        found += page
    assert found == ids[::-1]


def test_live_fields_are_those_of_the_moment_and_hidden_comments_are_found(engine):
    first, second = plant_comments(engine, 1, [{"text": "加群领取"}, {"text": "加群", "publisher_id": 9}])
    search_index.fill(engine, 9)
    with engine.begin() as connection:
        hidden = update(comment).where(comment.c.comment_id == first)
        connection.execute(hidden.values(status=CommentStatus.DELETED, like_count=5))
        page = search_comments(connection, SearchRequest("加群", status=CommentStatus.DELETED), 9)
    assert [(view.comment_id, view.like_count, view.status) for view in page.comments] == [(first, 5, 2)]
    assert search(engine, text="加群", user_id=9) == ([second], None)
    assert search(engine, text="加群", section_id=2) == ([], None)


def test_rows_too_many_find_nothing_wrong_and_taking_in_again_changes_nothing(engine):
    [number] = plant_comments(engine, 1, [{"text": "好看"}])
    search_index.fill(engine, 9)
    [wrong] = bigrams_of("加群")
    with engine.begin() as connection:
        connection.execute(insert(bigram).values(bigram=wrong, comment_id=number))
        connection.execute(insert(bigram).values(bigram=wrong, comment_id=number + 1))
    assert search(engine, text="加群") == ([], None)
    with engine.begin() as connection:
        connection.execute(delete(bigram).where(bigram.c.comment_id > number))
    assert search_index.forget(engine, 1) == 1
    assert search(engine, text="好看") == ([number], None)
    assert search_index.fill(engine, 9) == 1
    assert search(engine, text="好看") == ([number], None)


def test_a_page_that_read_enough_says_where_to_go_on(engine, monkeypatch):
    ids = plant_comments(engine, 1, [{"text": "好" if number == 0 else "看"} for number in range(20)])
    monkeypatch.setattr(comment_search, "_MOST_READ", 6)
    page, before = search(engine, 2, text="好")
    assert page == []
    assert before == ids[-6]
    while before is not None and not page:
        page, before = search(engine, 2, text="好", before=before)
    assert page == ids[:1]


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("好", 0), ("好看", 1), ("好 看", 0), ("哈哈哈哈", 1), ("ＡＢc", 2), ("a\u200bb", 1)]
)
def test_pairs_are_of_neighbours_without_blanks(text, count):
    assert len(bigrams_of(searched_form(text))) == count
    assert bigrams_of("好看") != bigrams_of("看好")


def test_criteria_are_combined(engine):
    plant_section(engine, 2, type=2, object_id=1)
    rows = [{"age_hours": 3, "report_count": 4}, {"age_hours": 30}, {"age_hours": 1, "publisher_id": 9}]
    first = plant_comments(engine, 1, [{**row, "text": "好看"} for row in rows])
    second = plant_comments(engine, 2, [{**row, "text": "好看"} for row in rows])
    search_index.fill(engine, 100)
    day, hour = timedelta(days=1), timedelta(hours=1)
    assert search(engine, type=1, object_id=1)[0] == first[::-1]
    assert search(engine, object_id=1)[0] == [*second[::-1], *first[::-1]]
    assert search(engine, text="好看", type=2, since=NOW - day)[0] == [second[2], second[0]]
    assert search(engine, text="好看", until=NOW - day)[0] == [second[1], first[1]]
    assert search(engine, text="好看", reports=4, section_id=1)[0] == [first[0]]
    assert search(engine, user_id=9, since=NOW - hour, until=NOW, type=1)[0] == [first[2]]
    assert search(engine, user_id=9, reports=1)[0] == []
