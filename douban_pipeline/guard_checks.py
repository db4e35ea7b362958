"""Asset checks from predicates: each asks the database over all shards and names what it found."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from douban_pipeline.catalog.database import reading
from douban_pipeline.catalog.videos import Breach
from douban_pipeline.partitions import partition_key
from douban_pipeline.presentation import table
from douban_pipeline.services import Services

_MOST_NAMED = 20


Predicate = Callable[[Services, Connection], Iterable[Breach]]


def guard_check(asset: dg.AssetsDefinition, name: str, description: str, find: Predicate) -> dg.AssetChecksDefinition:
    """Return a blocking check on ``asset`` that passes when ``find`` finds nothing.

    Unpartitioned on purpose: a partitioned check loses its partition in a run of several shards, and the last
    shard's pass would hide another's failure. So it asks about all shards, and names the failing ones.
    """

    @dg.asset_check(asset=asset, name=name, description=description, blocking=True)
    def check(services: dg.ResourceParam[Services]) -> dg.AssetCheckResult:
        services.ready()
        with reading(services.engine) as connection:
            found = list(find(services, connection))
        return check_result(found)

    return check


def check_result(
    found: Sequence[Breach], severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
) -> dg.AssetCheckResult:
    """Return the result of a guard: an exact count, the failing shards, and a capped list of videos."""
    shards = sorted({item.shard for item in found})
    rows = [{"vod_id": item.vod_id, "shard": partition_key(item.shard), "what": item.what} for item in found]
    metadata: dict[str, Any] = {"violations": len(found)}
    if found:
        metadata["shards"] = ", ".join(partition_key(shard) for shard in shards)
        metadata["videos"] = dg.MetadataValue.md(table(rows, most=_MOST_NAMED))
    return dg.AssetCheckResult(
        passed=not found,
        severity=severity,
        description=f"{len(found)} 处不符合" if found else "",
        metadata=metadata,
    )
