"""Column types that behave alike on MariaDB, MySQL and SQLite, and columns that tables of several systems have."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator, TypeEngine

BigId = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit key. SQLite assigns numbers only to ``INTEGER PRIMARY KEY`` columns."""

LongText = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
LongBlob = LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime in Python, a naive UTC ``DATETIME(6)`` in the database."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Request microseconds from MySQL, which drops them by default."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive datetimes: their time zone is unknown."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive datetime {value!r}: give it a time zone")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored value as an aware UTC datetime."""
        return None if value is None else value.replace(tzinfo=UTC)


class JsonText(TypeDecorator[Any]):
    """JSON kept as readable text, Chinese unescaped, keys sorted; equal values are equal text."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Use LONGTEXT on MySQL: its TEXT ends at 64 KB, too short for a long synopsis before and after."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.MEDIUMTEXT())
        return Text()  # psycopg 3 would adapt it to VARCHAR

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Encode; ``None`` stays NULL."""
        return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Decode; NULL stays ``None``."""
        return None if value is None else json.loads(value)


class LenientJson(JsonText):
    """JSON of which one damaged row must not stop the others: what is no JSON reads as ``None``."""

    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Decode; NULL and damaged text are ``None``."""
        try:
            return super().process_result_value(value, dialect)
        except ValueError:
            return None


class OneDecimal(TypeDecorator[Decimal]):
    """The CMS's ``decimal(3,1)``: a `Decimal` with one decimal place on every engine."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Use REAL on SQLite, which has no decimals; it holds one decimal place exactly enough."""
        return dialect.type_descriptor(Float() if dialect.name == "sqlite" else Numeric(3, 1))

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        """Give SQLite a float."""
        return float(value) if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        """Return one decimal place."""
        return None if value is None else Decimal(str(value)).quantize(Decimal("0.1"))


EMPTY = text("''")
ZERO = text("0")


def key(name: str) -> Column[int]:
    """Return a key that the database numbers."""
    return Column(name, BigId, primary_key=True, autoincrement=True)


def big(name: str) -> Column[int]:
    """Return a 64-bit number that is always given."""
    return Column(name, BigInteger, nullable=False)


def link(name: str) -> Column[int]:
    """Return a 64-bit number, 0 where it is not given: such as a key of another row, or none."""
    return Column(name, BigInteger, nullable=False, server_default=ZERO)


def count(name: str) -> Column[int]:
    """Return a number that begins at 0."""
    return Column(name, Integer, nullable=False, server_default=ZERO)


def small(name: str) -> Column[int]:
    """Return a small number that begins at 0."""
    return Column(name, SmallInteger, nullable=False, server_default=ZERO)


def words(name: str, most: int, **options: Any) -> Column[str]:
    """Return a text of so many characters at most, empty where it is not given."""
    return Column(name, String(most), nullable=False, server_default=EMPTY, **options)


def moment(name: str, **options: Any) -> Column[Any]:
    """Return a time, which may be missing unless ``nullable=False`` is given."""
    return Column(name, UtcDateTime, **options)
