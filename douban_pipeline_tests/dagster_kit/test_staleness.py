"""An asset is not out of date because what it read was materialized again: it reads tables at its own time."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG
from dagster_graphql.test.utils import define_out_of_process_context, execute_dagster_graphql

from douban_pipeline.comments.definitions import build_defs as build_comments
from douban_pipeline.dagster_kit.labels import TABLES, labelled
from douban_pipeline.digest.definitions import build_defs as build_digest
from douban_pipeline.douban.chain.decision_lane.assets import applied_decisions
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.match.assets import scored_matches, search_candidates
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.definitions import build_defs as build_douban
from douban_pipeline.douban.intros.assets import ai_intros
from douban_pipeline.feeds.definitions import build_defs as build_feeds
from douban_pipeline.tmdb.definitions import build_defs as build_tmdb
from douban_pipeline_tests.harness.fixtures.runs import function_of

SHARDS = dg.StaticPartitionsDefinition(["0", "1", "2"])
STALE = """
{ assetNodes { assetKey { path } staleStatus staleCauses { reason category key { path } } } }
"""


def step(
    deps: Sequence[dg.AssetsDefinition] = (),
) -> Callable[[Callable[[], dg.MaterializeResult]], dg.AssetsDefinition]:
    """Return the decorator of a step of a chain, whose runs take one shard or several."""
    return dg.asset(deps=deps, partitions_def=SHARDS, backfill_policy=dg.BackfillPolicy.multi_run(2))


@step()
def due() -> dg.MaterializeResult:
    """The first step."""
    return dg.MaterializeResult(data_version=TABLES)


@step([due])
def rows() -> dg.MaterializeResult:
    """The second step."""
    return dg.MaterializeResult(data_version=TABLES)


@dg.asset(deps=[rows])
def report() -> dg.MaterializeResult:
    """A report of all that the chain has done."""
    return dg.MaterializeResult()


defs = dg.Definitions(labelled([due, rows, report], owner="team:site"))


def test_a_report_stays_in_step_when_shards_are_materialized_again_alone_or_together(tmp_path: Path):
    assets = list(defs.assets or ())
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        for shard in SHARDS.get_partition_keys():
            assert dg.materialize(assets, instance=instance, selection=[due, rows], partition_key=shard).success
        assert dg.materialize(assets, instance=instance, selection=[report]).success
        together = {ASSET_PARTITION_RANGE_START_TAG: "0", ASSET_PARTITION_RANGE_END_TAG: "1"}
        assert dg.materialize(assets, instance=instance, selection=[due, rows], tags=together).success
        with define_out_of_process_context(__file__, "defs", instance) as context:
            nodes = execute_dagster_graphql(context, STALE).data["assetNodes"]
    found = {node["assetKey"]["path"][0]: (node["staleStatus"], node["staleCauses"]) for node in nodes}
    assert found == {name: ("FRESH", []) for name in ("due", "rows", "report")}


@pytest.mark.parametrize(
    "asset", [due_videos, search_candidates, scored_matches, synced_fields, ai_intros, applied_decisions]
)
def test_steps_of_the_chain_have_one_version_whatever_runs_they_took(asset: dg.AssetsDefinition):
    source = inspect.getsource(function_of(asset))
    assert source.count("MaterializeResult(") == source.count("data_version=TABLES") > 0


@pytest.mark.parametrize("build", [build_douban, build_feeds, build_digest, build_tmdb, build_comments])
def test_every_asset_says_what_version_it_holds(build: Callable[[], dg.Definitions]):
    graph = build().resolve_asset_graph()
    assert not [key for key in graph.materializable_asset_keys if not graph.get(key).code_version]
