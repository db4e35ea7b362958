"""An asset is not out of date because what it read was materialized again: it reads tables at its own time."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster_graphql.test.utils import define_out_of_process_context, execute_dagster_graphql

from douban_pipeline.comments.definitions import build_defs as build_comments
from douban_pipeline.dagster_kit.labels import labelled
from douban_pipeline.digest.definitions import build_defs as build_digest
from douban_pipeline.douban.definitions import build_defs as build_douban
from douban_pipeline.feeds.definitions import build_defs as build_feeds
from douban_pipeline.tmdb.definitions import build_defs as build_tmdb

SHARDS = dg.StaticPartitionsDefinition(["0", "1", "2"])
STALE = """
{ assetNodes { assetKey { path } staleStatus staleCauses { reason category key { path } } } }
"""


@dg.asset(partitions_def=SHARDS)
def rows() -> dg.MaterializeResult:
    """A step of a chain."""
    return dg.MaterializeResult()


@dg.asset(deps=[rows])
def report() -> dg.MaterializeResult:
    """A report of all that the chain has done."""
    return dg.MaterializeResult()


defs = dg.Definitions(labelled([rows, report], owner="team:site"))


def test_a_report_stays_in_step_when_shards_are_materialized_again(tmp_path: Path):
    assets = list(defs.assets or ())
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        for shard in SHARDS.get_partition_keys():
            assert dg.materialize(assets, instance=instance, selection=[rows], partition_key=shard).success
        assert dg.materialize(assets, instance=instance, selection=[report]).success
        for shard in SHARDS.get_partition_keys()[:2]:
            assert dg.materialize(assets, instance=instance, selection=[rows], partition_key=shard).success
        with define_out_of_process_context(__file__, "defs", instance) as context:
            nodes = execute_dagster_graphql(context, STALE).data["assetNodes"]
    found = {node["assetKey"]["path"][0]: (node["staleStatus"], node["staleCauses"]) for node in nodes}
    assert found == {"rows": ("FRESH", []), "report": ("FRESH", [])}


@pytest.mark.parametrize("build", [build_douban, build_feeds, build_digest, build_tmdb, build_comments])
def test_every_asset_says_what_version_it_holds(build: Callable[[], dg.Definitions]):
    graph = build().resolve_asset_graph()
    assert not [key for key in graph.materializable_asset_keys if not graph.get(key).code_version]
