"""What the site's settings say about all assets of a location: whose they are, and which database they lie in."""

from collections.abc import Iterable, Mapping

import dagster as dg

LIBRARY = "mysql"
"""Kind by which an asset is declared to lie in the CMS's database, which may be another than MySQL."""


def labelled(assets: Iterable[dg.AssetsDefinition], *, owner: str, library_url: str = "") -> list[dg.AssetsDefinition]:
    """Return ``assets`` with their owner, and of kind mysql, mariadb or sqlite as the library's database is.

    Args:
        assets: What is labelled; who has an owner keeps it.
        owner: An e-mail address, or ``team:`` and a name.
        library_url: SQLAlchemy URL of the CMS's database; empty for the embedded SQLite.
    """
    backend = library_url.partition(":")[0].partition("+")[0] or "sqlite"

    def label(spec: dg.AssetSpec) -> dg.AssetSpec:
        kinds = {backend if kind == LIBRARY else kind for kind in spec.kinds}
        return spec.replace_attributes(owners=spec.owners or [owner], kinds=kinds)

    return [asset.map_asset_specs(label) for asset in assets]


def reading_from(assets: Iterable[dg.AssetsDefinition], others: Mapping[str, str | None]) -> list[dg.AssetsDefinition]:
    """Return ``assets``, of which some read what an asset of another code location left in a table.

    Dagster's lineage joins locations by the assets' keys; nothing is launched by it, and no code of the other system is
    needed.

    Args:
        assets: The location's own.
        others: By the key of an asset of this location, that of the one it reads; None for none.
    """
    read = {dg.AssetKey(name): dg.AssetKey(other) for name, other in others.items() if other is not None}

    def join(spec: dg.AssetSpec) -> dg.AssetSpec:
        other = read.get(spec.key)
        return spec if other is None else spec.merge_attributes(deps=[other])

    return [asset.map_asset_specs(join) for asset in assets]
