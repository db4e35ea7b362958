"""Leases on the rows of a table: one owner at a time works on a row, and what a dead owner held comes back.

Two columns of the table say who holds a row and until when; a third may hold a token. A row is free if nobody holds it
or its lease has ended. Claiming is a conditional UPDATE, which every supported server makes atomic: of two claimers
that chose the same rows, the second finds them leased. Whoever renews, finishes or puts back a row must still hold it,
so that an owner that was silent for too long learns from the answer that it lost the row.

Moments are given by the caller, in the unit of the column. A clock that goes back lengthens leases by as much until
they are renewed, and never gives a row a second owner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import (
    ClauseElement,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Table,
    Update,
    and_,
    bindparam,
    case,
    or_,
    select,
    update,
)

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.owner import is_dead

Key = Any
"""Value of a table's key."""
Moment = Any
"""Value of the column ``until``: a time, or a number of seconds."""
Values = Mapping[str, Any]
"""Values or expressions of further columns, by name."""


@dataclass(frozen=True, eq=False)
class Leases:
    """The leases of a table.

    Attributes:
        key: The table's key.
        owner: Name of the holder. A free row has NULL there, or an empty text if the column is NOT NULL.
        until: End of the lease. A free row has NULL there if the column is nullable.
        token: Number that grows with every change of owner, asked for instead of the owner's name where there is one.
            It tells a lease from an earlier one of the same owner; so does a name that is unique to each claim.
        keeps_owner: Whether a free row still names its last owner; ``until`` is nullable then.
    """

    key: Column[Any]
    owner: Column[Any]
    until: Column[Any]
    token: Column[Any] | None = None
    keeps_owner: bool = False

    @property
    def table(self) -> Table:
        """The table."""
        table = self.key.table
        assert isinstance(table, Table)
        return table

    # --- conditions

    def free(self, now: Moment) -> ColumnElement[bool]:
        """Return the condition that nobody holds a row."""
        nobody = self.until.is_(None) if self.until.nullable else ~self._owned
        return or_(nobody, self.until <= now)

    def available(self, owners: Collection[str], now: Moment) -> ColumnElement[bool]:
        """Return the condition that a row is free or held by one of ``owners``."""
        return or_(self.free(now), self.owner.in_(owners))

    def held_by(self, owner: str) -> ColumnElement[bool]:
        """Return the condition that ``owner`` holds a row: also after its end, as long as nobody else took it."""
        return and_(self.owner == owner, self._held)

    @cached_property
    def freed(self) -> Values:
        """What the columns of a free row hold, for a caller that writes them with others."""
        values = {} if self.keeps_owner else {self.owner.name: None if self.owner.nullable else ""}
        return {**values, **({self.until.name: None} if self.until.nullable else {})}

    @cached_property
    def _owned(self) -> ColumnElement[bool]:
        return self.owner.is_not(None) if self.owner.nullable else self.owner != ""

    @cached_property
    def _held(self) -> ColumnElement[bool]:
        return self.until.is_not(None) if self.until.nullable else self._owned

    # --- claiming

    def choose(
        self,
        connection: Connection,
        owner: str,
        *,
        now: Moment,
        order_by: Sequence[Any],
        limit: int,
        where: Iterable[ColumnElement[bool]] = (),
        instead_of: Collection[str] = (),
    ) -> list[Key]:
        """Return the keys of rows that ``owner`` may take now, the first of an order; another may be quicker."""
        available = self.available([owner, *instead_of], now)
        query = select(self.key).where(*where, available).order_by(*order_by).limit(limit)
        return list(connection.execute(query).scalars())

    def take(
        self,
        connection: Connection,
        owner: str,
        keys: Sequence[Key],
        *,
        now: Moment,
        until: Moment,
        where: Iterable[ColumnElement[bool]] = (),
        values: Values | None = None,
        instead_of: Collection[str] = (),
    ) -> list[Row[Any]]:
        """Lease those of ``keys`` that are available; return their rows, in the order of ``keys``.

        Args:
            connection: A connection in a transaction.
            owner: The owner.
            keys: Keys, of which others may have been taken.
            now: The current moment.
            until: When the leases end unless they are renewed.
            where: Further conditions.
            values: Further columns to set. Expressions see the row as it was, with its former owner.
            instead_of: Owners whose leases it takes over, because they are dead.
        """
        rows: dict[Key, Row[Any]] = {}
        where = (self.available([owner, *instead_of], now), *where)
        changes: list[tuple[Any, Any]] = [(self.table.c[name], value) for name, value in (values or {}).items()]
        if self.token is not None:
            changes.append((self.token, case((self.owner == owner, self.token), else_=self.token + 1)))
        # MySQL assigns in the order written: the owner changes after what depends on it.
        changes += [(self.owner, owner), (self.until, until)]
        # In the order of keys, so that two claimers never wait for each other.
        for chunk in chunks(sorted(keys)):
            chosen = self.key.in_(chunk)
            connection.execute(update(self.table).where(chosen, *where).ordered_values(*changes))
            mine = select(self.table).where(chosen, self.owner == owner, self.until == until)
            rows |= {row._mapping[self.key]: row for row in connection.execute(mine)}
        return [rows[key] for key in keys if key in rows]

    def claim(
        self,
        connection: Connection,
        owner: str,
        *,
        now: Moment,
        until: Moment,
        order_by: Sequence[Any],
        limit: int,
        where: Collection[ColumnElement[bool]] = (),
        values: Values | None = None,
        instead_of: Collection[str] = (),
    ) -> list[Row[Any]]:
        """Lease up to ``limit`` available rows, the first of an order; return them in that order.

        The same as `choose` and `take` in one transaction; see there for the arguments.
        """
        which: dict[str, Any] = {"now": now, "where": where, "instead_of": instead_of}
        keys = self.choose(connection, owner, order_by=order_by, limit=limit, **which)
        return self.take(connection, owner, keys, until=until, values=values, **which)

    # --- holding

    def renew(
        self, connection: Connection, owner: str, keys: Collection[Key], until: Moment, values: Values | None = None
    ) -> set[Key]:
        """Extend leases of ``owner``, and set further columns of the rows; return the keys of those that it lost."""
        lost: set[Key] = set()
        for chunk in chunks(sorted(keys)):
            mine = update(self.table).where(self.key.in_(chunk), self.held_by(owner))
            changed = connection.execute(mine.values({**(values or {}), self.until.name: until})).rowcount
            if changed < len(chunk):
                lost |= set(chunk) - set(self.held(connection, owner, chunk))
        return lost

    def held(self, connection: Connection, owner: str, keys: Sequence[Key] | None = None) -> list[Key]:
        """Return the keys of the rows that ``owner`` holds at this moment, of all or of those named; in their order."""
        query = select(self.key).where(self.held_by(owner))
        if keys is None:
            return sorted(connection.execute(query).scalars())
        found: list[Key] = []
        for chunk in chunks(sorted(keys)):
            found += sorted(connection.execute(query.where(self.key.in_(chunk))).scalars())
        return found

    def holds(self, connection: Connection, key: Key, proof: str | int) -> bool:
        """Return whether a lease is still held, and keep it so for as long as the transaction lasts.

        Args:
            connection: A connection in a transaction.
            key: The row.
            proof: The lease's token where there are tokens, otherwise its owner.
        """
        query = select(self.key).where(self.key == key, self._proof == proof, self._held).with_for_update()
        return connection.execute(query).first() is not None

    @cached_property
    def _proof(self) -> Column[Any]:
        return self.owner if self.token is None else self.token

    # --- ending

    def finish(
        self, connection: Connection, key: Key, proof: str | int, values: Values, statement: Update | None = None
    ) -> bool:
        """End a lease and set further columns of the row; return False, changing nothing, if the lease was lost.

        Args:
            connection: A connection in a transaction.
            key: The row.
            proof: As of `holds`.
            values: Further columns.
            statement: `finishing` with further conditions; built once, since building it costs more than sending it.
        """
        given = {**self.freed, **values}
        expressions = {name: value for name, value in given.items() if isinstance(value, ClauseElement)}
        plain = {name: value for name, value in given.items() if name not in expressions}
        statement = self.finishing if statement is None else statement
        if expressions:
            statement = statement.values(expressions)
        return bool(connection.execute(statement, {"leased_key": key, "leased_by": proof, **plain}).rowcount)

    @cached_property
    def finishing(self) -> Update:
        """The statement of `finish`, without the columns that it sets: they come with the parameters."""
        proven = (self.key == bindparam("leased_key"), self._proof == bindparam("leased_by"), self._held)
        return update(self.table).where(*proven)

    def put_back(self, connection: Connection, owner: str, keys: Collection[Key], values: Values | None = None) -> int:
        """End leases of ``owner`` on rows that are not done, and set further columns; return how many it still held."""
        count = 0
        for chunk in chunks(sorted(keys)):
            mine = update(self.table).where(self.key.in_(chunk), self.held_by(owner))
            count += connection.execute(mine.values({**self.freed, **(values or {})})).rowcount
        return count

    def put_back_dead(
        self, engine: Engine, where: Sequence[ColumnElement[bool]] = (), values: Values | None = None
    ) -> list[str]:
        """Put back what owners hold whose process is gone; return those owners."""
        with reading(engine) as connection:
            owners = connection.execute(select(self.owner).where(self._held, *where).distinct())
            dead = sorted(owner for owner in owners.scalars() if is_dead(owner))

        def free(connection: Connection) -> None:
            for owner in dead:
                # By key: an update by owner would lock through an index that finishing a row changes.
                self.put_back(connection, owner, self.held(connection, owner), values)

        if dead:
            run_transaction(engine, free)
        return dead
