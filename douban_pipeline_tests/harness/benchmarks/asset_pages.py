"""What Dagster's UI asks its webserver for when somebody opens an asset's page, or the graph of all assets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack

GRAPH = """
    query Graph { assetNodes {
        id groupName opNames jobNames isPartitioned kinds description
        assetKey { path } dependencyKeys { path } dependedByKeys { path }
    } }"""
DEFINITION = """
    query Definition($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
        id groupName description jobNames isPartitioned kinds
        dependencyKeys { path } dependedByKeys { path }
        partitionDefinition { description }
        partitionKeysByDimension { name partitionKeys }
    } } }"""
LIVE = """
    query Live($keys: [AssetKeyInput!]!) { assetsLatestInfo(assetKeys: $keys) {
        assetKey { path } unstartedRunIds inProgressRunIds
        latestRun { id status endTime }
        latestMaterialization { timestamp runId }
    } }"""
PARTITIONS = """
    query Partitions($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
        id
        partitionStats { numMaterialized numPartitions numFailed numMaterializing }
        assetPartitionStatuses { __typename ... on DefaultPartitionStatuses {
            materializedPartitions materializingPartitions failedPartitions
        } }
    } } }"""
EVENTS = """
    query Events($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
        id
        assetMaterializations(limit: 100) {
            runId timestamp partition
            metadataEntries { label ... on IntMetadataEntry { intValue } ... on MarkdownMetadataEntry { mdStr } }
        }
    } } }"""
CHECKS = """
    query Checks($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
        id
        assetChecksOrError { ... on AssetChecks { checks {
            name description blocking
            executionForLatestMaterialization { id status runId timestamp }
        } } }
    } } }"""
OF_A_PAGE = (DEFINITION, LIVE, PARTITIONS, EVENTS, CHECKS)
_AT_ONCE = 6
"""Requests that a browser makes to one server at a time."""


def open_asset_page(stack: DagsterStack, asset: str, queries: Sequence[str] = OF_A_PAGE) -> float:
    """Ask for everything that the page of ``asset`` shows, as many requests at once as a browser; return the seconds.

    Raises:
        RigError: The webserver refused a query.
    """
    key = {"path": [asset]}
    return _ask_all(stack, [(query, {"keys": [key]} if query is LIVE else {"key": key}) for query in queries])


def open_asset_graph(stack: DagsterStack, assets: Sequence[str]) -> float:
    """Ask for everything that the graph of ``assets`` shows; return the seconds.

    Raises:
        RigError: The webserver refused a query.
    """
    return _ask_all(stack, [(GRAPH, {}), (LIVE, {"keys": [{"path": [asset]} for asset in assets]})])


def _ask_all(stack: DagsterStack, questions: Sequence[tuple[str, dict[str, object]]]) -> float:
    began = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda question: stack.ask(*question), questions))
    return time.perf_counter() - began
