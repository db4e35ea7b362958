"""Every column type gives back what it was given, the same on every engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.exc import StatementError

from douban_pipeline.core.column_types import BigId, JsonText, LongBlob, LongText, OneDecimal, UtcDateTime
from douban_pipeline.core.database import reading, run_transaction

METADATA = sa.MetaData()
VALUE = sa.Table(
    "kept_value",
    METADATA,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("moment", UtcDateTime),
    sa.Column("json", JsonText),
    sa.Column("text", LongText),
    sa.Column("bytes", LongBlob),
    sa.Column("score", OneDecimal),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
MOMENT = datetime(2026, 3, 1, 12, 30, 59, 123456, tzinfo=UTC)


@pytest.fixture
def engine(core_engine: Engine) -> Engine:
    """Each engine that `core` speaks, with a new, empty table."""
    METADATA.drop_all(core_engine)
    METADATA.create_all(core_engine)
    return core_engine


def kept(engine: Engine, **given: Any) -> Any:
    """Insert one value and return it as it is read."""
    [name] = given
    number = run_transaction(
        engine, lambda connection: connection.execute(sa.insert(VALUE), given).inserted_primary_key
    )
    assert number is not None
    with reading(engine) as connection:
        return connection.execute(sa.select(VALUE.c[name]).where(VALUE.c.id == number[0])).scalar_one()


def test_keys_are_numbered_by_the_database(engine: Engine) -> None:
    def insert(connection: sa.Connection) -> list[int]:
        rows = [connection.execute(sa.insert(VALUE), {"text": "x"}).inserted_primary_key for _ in range(2)]
        return [row[0] for row in rows if row is not None]

    assert run_transaction(engine, insert) == [1, 2]
    assert run_transaction(engine, lambda connection: connection.execute(sa.insert(VALUE), {"id": 2**40})).rowcount == 1


def test_moments_keep_their_microseconds_and_come_back_in_utc(engine: Engine) -> None:
    for given in (MOMENT, MOMENT.astimezone(timezone(timedelta(hours=8)))):
        found = kept(engine, moment=given)
        assert (found, found.utcoffset()) == (MOMENT, timedelta(0))
    assert kept(engine, moment=datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)).microsecond == 999999
    assert kept(engine, moment=None) is None
    with reading(engine) as connection:
        later = sa.select(sa.func.count()).where(VALUE.c.moment >= MOMENT)
        assert connection.execute(later).scalar() == 2
    with pytest.raises(StatementError, match="give it a time zone"):
        kept(engine, moment=MOMENT.replace(tzinfo=None))


def test_json_comes_back_as_it_was_given_and_is_readable(engine: Engine) -> None:
    values = [{}, [], {"片名": "𠮷野家 🎬", "分": [1, 2.5, None, True], "'\"\\%:x": "<&>\0"}, ["长" * 100_000], "", 0]
    assert [kept(engine, json=value) for value in values] == values
    assert kept(engine, json=None) is None
    kept(engine, json={"b": "霸王别姬", "a": 1})
    with reading(engine) as connection:
        shown = sa.select(sa.type_coerce(VALUE.c.json, sa.Text)).order_by(VALUE.c.id.desc()).limit(1)
        assert connection.execute(shown).scalar() == '{"a": 1, "b": "霸王别姬"}'


def test_large_texts_and_bytes_come_back_whole(engine: Engine) -> None:
    assert kept(engine, text="长🎬" * 100_000) == "长🎬" * 100_000
    body = bytes(range(256)) * 2000
    assert kept(engine, bytes=body) == body
    with reading(engine) as connection:
        assert connection.execute(sa.select(sa.func.max(sa.func.length(VALUE.c.bytes)))).scalar() == len(body)


@pytest.mark.parametrize(("value", "shown"), [("8.1", "8.1"), ("0", "0.0"), ("99.9", "99.9")])
def test_a_score_has_one_place(engine: Engine, value: str, shown: str) -> None:
    assert str(kept(engine, score=Decimal(value))) == shown
