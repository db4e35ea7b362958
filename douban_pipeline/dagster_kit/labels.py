"""Labels of all that a location shows: owner and, of assets, database and version. They come from the settings."""

from collections.abc import Iterable, Mapping
from functools import cache

import dagster as dg

from douban_pipeline.core.environment import environment
from douban_pipeline.core.settings_base import BASE_PREFIX, DEFAULT_OWNER, owner_name

OWNER_VARIABLE = f"{BASE_PREFIX}OWNER"

LIBRARY = "mysql"
"""Kind that marks an asset as stored in the CMS's database, which may be another than MySQL."""


TABLES_VERSION = "1"
"""Code version of all assets.

An asset reads the current state of the tables, whichever run filled them last. Without a code version Dagster treats
every further run of a shard as new data and marks all reports `Unsynced` as soon as it has ended. Raise the version
when an upgrade requires that every asset is materialized again.
"""

TABLES = dg.DataVersion(TABLES_VERSION)
"""Data version of an asset that has partitions, or reads one that has.

Dagster would derive one from the versions of what was read: another one for a run of several shards than for one.
"""


@cache
def owners() -> tuple[str, ...]:
    """Return the owners of jobs, schedules and sensors: `DOUBAN_PIPELINE_OWNER`, from the environment or ``.env``.

    They are declared when a module is imported, before settings are loaded. A wrong value is left out here: the
    settings refuse it with a message that names it. Dagster's sensors of run states take no owners.
    """
    given = environment().get(OWNER_VARIABLE) or DEFAULT_OWNER
    try:
        return (owner_name(given),)
    except ValueError:
        return (DEFAULT_OWNER,)


def labelled(assets: Iterable[dg.AssetsDefinition], *, owner: str, library_url: str = "") -> list[dg.AssetsDefinition]:
    """Return ``assets`` with owner and version, and with the kind mysql, mariadb or sqlite of the library's database.

    Args:
        assets: The assets to label; an asset that has an owner keeps it.
        owner: An e-mail address, or ``team:`` and a name.
        library_url: SQLAlchemy URL of the CMS's database; empty for the embedded SQLite.
    """
    backend = library_url.partition(":")[0].partition("+")[0] or "sqlite"

    def label(spec: dg.AssetSpec) -> dg.AssetSpec:
        kinds = {backend if kind == LIBRARY else kind for kind in spec.kinds}
        version = spec.code_version or TABLES_VERSION
        return spec.replace_attributes(owners=spec.owners or [owner], kinds=kinds, code_version=version)

    return [asset.map_asset_specs(label) for asset in assets]


def reading_from(assets: Iterable[dg.AssetsDefinition], others: Mapping[str, str | None]) -> list[dg.AssetsDefinition]:
    """Return ``assets`` with dependencies on assets of other code locations whose tables they read.

    Dagster's lineage connects locations by asset keys; this launches nothing and needs no code of the other system.

    Args:
        assets: The location's own assets.
        others: By the key of an asset of this location, the key of the asset it reads; None for none.
    """
    read = {dg.AssetKey(name): dg.AssetKey(other) for name, other in others.items() if other is not None}

    def join(spec: dg.AssetSpec) -> dg.AssetSpec:
        other = read.get(spec.key)
        return spec if other is None else spec.merge_attributes(deps=[other])

    return [asset.map_asset_specs(join) for asset in assets]
