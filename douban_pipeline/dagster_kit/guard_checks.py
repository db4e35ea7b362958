"""Asset checks from predicates: each queries the database over all shards and lists what it found."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import dagster as dg
from sqlalchemy import Connection

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import page_text
from douban_pipeline.core.platform import Platform
from douban_pipeline.dagster_kit.metadata import shown_table

_MOST_SHOWN = 20

B = TypeVar("B")
"""A system's breach: one row or object that violates a rule."""


@dataclass(frozen=True, slots=True)
class GuardResult(Generic[B]):
    """Breaches found by a guard, and whether they stop a run or only warn."""

    breaches: Sequence[B]
    stops: bool = True


@dataclass(frozen=True, slots=True)
class Guard(Generic[B]):
    """A check of an asset that passes if ``find`` returns no breach that ``concerns`` it.

    Breaches in the data of others or in evidence stop a run; those in our own bookkeeping are mended, and warn.

    Guards with the same ``find`` share its result: it is called once per query of the database.

    Attributes:
        name: Name of the check.
        description: The rule, for the asset's page.
        find: Returns all breaches; called with the system's services and a reading connection.
        concerns: Whether a breach returned by ``find`` belongs to this guard.
        warns: Whether a breach only warns, whatever ``find`` says: something is wrong, but not the data.
        mend: Puts breaches right, called with the system's services and the breaches; then they only warn.
    """

    name: str
    description: str
    find: Callable[[Any, Connection], Iterable[B] | GuardResult[B]]
    concerns: Callable[[B], bool] = lambda breach: True
    warns: bool = False
    mend: Callable[[Any, Sequence[B]], object] | None = None

    def of(self, found: GuardResult[B]) -> GuardResult[B]:
        """Return the part of ``found`` that concerns this guard."""
        return GuardResult(
            [breach for breach in found.breaches if self.concerns(breach)],
            found.stops and not self.warns and self.mend is None,
        )


@dataclass(frozen=True, slots=True)
class BreachTable(Generic[B]):
    """How a system's breaches are shown in a check's result.

    Attributes:
        things: What the breaches are about; the name of the table in the metadata, for example ``videos``.
        partitions: The system's word for its partitions; the name of their list in the metadata.
        partition_of: Returns the key of a breach's partition.
        row: Returns a row of the table.
    """

    things: str
    partitions: str
    partition_of: Callable[[B], str]
    row: Callable[[B], Mapping[str, object]]

    def metadata(self, breaches: Sequence[B]) -> dict[str, Any]:
        """Return an exact count, the failing partitions, and a table of at most `_MOST_SHOWN` breaches."""
        metadata: dict[str, Any] = {"violations": len(breaches)}
        if breaches:
            metadata[self.partitions] = ", ".join(sorted(set(map(self.partition_of, breaches))))
            metadata[self.things] = shown_table([*map(self.row, breaches)], most=_MOST_SHOWN)
        return metadata


def guard_checks(
    asset: dg.AssetsDefinition, guards: Sequence[Guard[B]], shown: BreachTable[B]
) -> dg.AssetChecksDefinition:
    """Return ``guards`` as blocking checks on ``asset``: one step, one query of the database, one result per guard.

    The resource ``services`` of the code location provides the engine and reports whether the database is ready.

    Unpartitioned on purpose: in a run of several partitions, a partitioned check loses its partition, and the last
    one's pass would hide another's failure. So the checks query all partitions and list the failing ones. They share
    one step, because a step each would cost more in Dagster's events than in queries; each can still be launched alone.
    """

    @dg.multi_asset_check(
        name=f"{asset.key.to_python_identifier()}_guards",
        specs=[
            dg.AssetCheckSpec(guard.name, asset=asset, description=guard.description, blocking=True) for guard in guards
        ],
        can_subset=True,
        description=page_text("Compare the tables with each rule; each check describes its rule."),
    )
    def check(
        context: dg.AssetCheckExecutionContext, services: dg.ResourceParam[Platform]
    ) -> Iterator[dg.AssetCheckResult]:
        services.ready()
        asked = {key.name for key in context.selected_asset_check_keys}
        with reading(services.engine) as connection:
            wanted = [guard for guard in guards if guard.name in asked]
            found = {find: _as_found(find(services, connection)) for find in {guard.find for guard in wanted}}
        for guard in wanted:
            concerning = guard.of(found[guard.find])
            if guard.mend is not None and concerning.breaches:
                guard.mend(services, concerning.breaches)
            yield _result(asset.key, guard, concerning, shown)

    return check


def _as_found(found: Iterable[B] | GuardResult[B]) -> GuardResult[B]:
    return found if isinstance(found, GuardResult) else GuardResult(list(found))


def _result(asset: dg.AssetKey, guard: Guard[B], found: GuardResult[B], shown: BreachTable[B]) -> dg.AssetCheckResult:
    count = len(found.breaches)
    mended = page_text("; they are mended") if guard.mend is not None else ""
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=guard.name,
        passed=not count,
        severity=dg.AssetCheckSeverity.ERROR if found.stops else dg.AssetCheckSeverity.WARN,
        description=page_text("{count} violations{mended}").format(count=count, mended=mended) if count else "",
        metadata=shown.metadata(found.breaches),
    )
