"""Asset checks from predicates: each asks the database over all shards and names what it found."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.presentation import table
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.videos import Breach

_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Found:
    """What a guard found, and whether a run should stop for it or only warn."""

    breaches: Sequence[Breach]
    stops: bool = True


Predicate = Callable[[Services, Connection], Iterable[Breach] | Found]


@dataclass(frozen=True, slots=True)
class Guard:
    """A blocking check of an asset that passes when ``find`` finds nothing that concerns it.

    Guards that share their ``find`` share what it finds: it is asked once a look.
    """

    name: str
    description: str
    find: Predicate
    concerns: Callable[[Any], bool] = lambda breach: True

    def of(self, found: Found) -> Found:
        """Return what concerns this guard, of what was found."""
        return Found([breach for breach in found.breaches if self.concerns(breach)], found.stops)


def guard_checks(asset: dg.AssetsDefinition, guards: Sequence[Guard]) -> dg.AssetChecksDefinition:
    """Return ``guards`` as blocking checks on ``asset``: one step, one look at the database, a result for each.

    Unpartitioned on purpose: a partitioned check loses its partition in a run of several shards, and the last
    shard's pass would hide another's failure. So they ask about all shards, and name the failing ones. One step,
    because a step each costs more in Dagster's events than in queries; any of them can still be launched alone.
    """

    @dg.multi_asset_check(
        name=f"{asset.key.to_python_identifier()}_guards",
        specs=[
            dg.AssetCheckSpec(guard.name, asset=asset, description=guard.description, blocking=True) for guard in guards
        ],
        can_subset=True,
    )
    def check(
        context: dg.AssetCheckExecutionContext, services: dg.ResourceParam[Services]
    ) -> Iterator[dg.AssetCheckResult]:
        services.ready()
        asked = {key.name for key in context.selected_asset_check_keys}
        with reading(services.engine) as connection:
            wanted = [guard for guard in guards if guard.name in asked]
            found = {find: _whole(find(services, connection)) for find in {guard.find for guard in wanted}}
        for guard in wanted:
            yield _result(asset.key, guard.name, guard.of(found[guard.find]))

    return check


def _whole(found: Iterable[Breach] | Found) -> Found:
    return found if isinstance(found, Found) else Found(list(found))


def _result(asset: dg.AssetKey, name: str, found: Found) -> dg.AssetCheckResult:
    """Return the result of a guard: an exact count, the failing shards, and a capped list of videos."""
    shards = sorted({item.shard for item in found.breaches})
    rows = [{"vod_id": item.vod_id, "shard": partition_key(item.shard), "what": item.what} for item in found.breaches]
    metadata: dict[str, Any] = {"violations": len(rows)}
    if rows:
        metadata["shards"] = ", ".join(partition_key(shard) for shard in shards)
        metadata["videos"] = dg.MetadataValue.md(table(rows, most=_MOST_NAMED))
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=not rows,
        severity=dg.AssetCheckSeverity.ERROR if found.stops else dg.AssetCheckSeverity.WARN,
        description=f"{len(rows)} 处不符合" if rows else "",
        metadata=metadata,
    )
