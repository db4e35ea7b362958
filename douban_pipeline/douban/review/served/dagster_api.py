"""Client of Dagster's interface for assets that were materialized elsewhere: the service reports its batches.

The interface is Dagster's own (External assets REST API): ``POST /report_asset_materialization/<asset>`` and
``/report_asset_observation/<asset>`` of the webserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

APPLIED, QUEUE = "applied_decisions", "review_queue"
"""Assets that a batch is reported of: its decisions were applied, and its videos left the queue."""

DATA_VERSION = "1"
"""The data version that runs give to `applied_decisions` (`dagster_kit.labels`, which the service does not load)."""

_SECONDS = 20.0
_MOST_SAID = 300


class DagsterUnavailable(Exception):  # noqa: N818 (it says what happened)
    """Dagster did not answer, or did not take a report; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What is reported of a batch: a sentence, and values by name (texts and numbers)."""

    description: str
    metadata: Mapping[str, str | int]


class DagsterApi:
    """Dagster's webserver. Safe to share between threads.

    Args:
        graphql_url: Its GraphQL address (``DOUBAN_PIPELINE_GRAPHQL_URL``), beside which it takes reports.
    """

    def __init__(self, graphql_url: str) -> None:
        self._url = graphql_url.rstrip("/").removesuffix("/graphql")

    def report(self, batch: BatchReport) -> None:
        """Report a batch as a materialization of `applied_decisions` and an observation of `review_queue`.

        Raises:
            DagsterUnavailable: Dagster does not answer, or does not take the report.
        """
        content = {"description": batch.description, "metadata": dict(batch.metadata)}
        # The observation first: if the second report fails, both are made again, and a double observation is harmless.
        self._post(f"report_asset_observation/{QUEUE}", content)
        self._post(f"report_asset_materialization/{APPLIED}", {**content, "data_version": DATA_VERSION})

    def _post(self, path: str, content: Mapping[str, Any]) -> None:
        url = f"{self._url}/{path}"
        try:
            with httpx.Client(trust_env=False, timeout=_SECONDS) as client:
                answer = client.post(url, json=dict(content))
        except httpx.HTTPError as error:
            raise DagsterUnavailable(f"no answer from {url} ({type(error).__name__})") from error
        if answer.status_code != httpx.codes.OK:
            raise DagsterUnavailable(f"{url} answered HTTP {answer.status_code}: {answer.text[:_MOST_SAID]}")
