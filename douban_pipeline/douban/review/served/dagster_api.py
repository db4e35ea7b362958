"""Client of Dagster's GraphQL for the served sheet: launches a job once, and reads the state of a run.

Every launch has a name from the caller, which its run has as a tag. So a launch that is requested again because its
answer was lost finds the first run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import httpx

TAG = "pipeline/request"
"""Tag of a run with the name of its launch."""

_SECONDS = 20.0
_MOST_SAID = 500
_FAILED = ("FAILURE", "CANCELED")

_JOBS = """
query Jobs { repositoriesOrError { __typename
    ... on RepositoryConnection { nodes { name location { name } jobs { name } } }
    ... on PythonError { message } } }
"""
_LAUNCH = """
mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on RunConfigValidationInvalid { errors { message } }
    ... on PipelineNotFoundError { message }
    ... on UnauthorizedError { message }
    ... on PythonError { message } } }
"""
_TAGGED = """
query Tagged($filter: RunsFilter!) { runsOrError(filter: $filter, limit: 1) { __typename
    ... on Runs { results { runId } }
    ... on PythonError { message } } }
"""
_ENDED = """
query Ended($id: ID!) { runOrError(runId: $id) { __typename
    ... on Run { status }
    ... on PythonError { message } } }
"""
_SAID = """
query Said($id: ID!) { runOrError(runId: $id) { __typename ... on Run { eventConnection(limit: 1000) { events {
    __typename
    ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } }
    ... on EngineEvent { message error { message } }
    ... on RunFailureEvent { message } } } }
    ... on PythonError { message } } }
"""


class DagsterUnavailable(Exception):  # noqa: N818 (it says what happened)
    """Dagster did not answer, or did not accept a launch; the message is a sentence in Chinese."""


@dataclass(frozen=True, slots=True)
class RunState:
    """State of a run.

    Attributes:
        ended: Whether it has ended.
        failed: Whether it ended without success.
    """

    ended: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why a run did not succeed.

    Attributes:
        said: What its job said to the person who launched it, shortened; empty if it said nothing.
        error: The errors in Dagster's words; empty where there is none, as for a run that was cancelled.
    """

    said: str
    error: str


class DagsterApi:
    """Dagster behind its GraphQL address. Safe to share between threads.

    Args:
        url: The address.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._places: dict[str, tuple[str, str]] = {}
        self._turns: dict[str, tuple[threading.Lock, int]] = {}
        """For each request that threads want to launch: whose turn it is, and the number of threads."""

    def launch(
        self, job: str, config: Mapping[str, Any], request: str, tags: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """Launch ``job`` unless a run of this ``request`` exists, and return the run's id; ``tags`` are the run's.

        Raises:
            DagsterUnavailable: Dagster does not answer, does not know the job, or refuses the config.
        """
        with self._turn(request):
            return self._tagged(request) or self._launch(job, config, {**tags, TAG: request})

    def state(self, run_id: str) -> RunState:
        """Return the state of a run; one that Dagster does not know any more counts as ended and failed.

        Raises:
            DagsterUnavailable: Dagster does not answer.
        """
        found = self._ask(_ENDED, "runOrError", id=run_id)
        status = found.get("status", "FAILURE")
        return RunState(status == "SUCCESS" or status in _FAILED, status in _FAILED)

    def failure(self, run_id: str) -> RunFailure:
        """Return why a run did not succeed.

        Raises:
            DagsterUnavailable: Dagster does not answer.
        """
        found = self._ask(_SAID, "runOrError", id=run_id)
        said, errors = "", []
        for event in found.get("eventConnection", {}).get("events", ()):
            error = (event.get("error") or {}).get("message") or ""
            if event["__typename"] == "ExecutionStepFailureEvent":
                said = said or (event.get("failureMetadata") or {}).get("description") or ""
                errors.append(error)
                continue
            message = event.get("message") or ""
            # Dagster's own failure of a run whose process vanished has its reason in an event before it.
            if event["__typename"] == "RunFailureEvent" or error or "terminated by signal" in message:
                errors += [message, error]
        return RunFailure(said.strip()[:_MOST_SAID], "\n".join(filter(None, errors)))

    @contextmanager
    def _turn(self, request: str) -> Iterator[None]:
        """Let one thread at a time launch a request; the others then find its run."""
        with self._lock:
            turn, threads = self._turns.get(request, (threading.Lock(), 0))
            self._turns[request] = turn, threads + 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                turn, threads = self._turns.pop(request)
                if threads > 1:
                    self._turns[request] = turn, threads - 1

    def _tagged(self, request: str) -> str:
        found = self._ask(_TAGGED, "runsOrError", filter={"tags": [{"key": TAG, "value": request}]})
        runs = found.get("results", ())
        return str(runs[0]["runId"]) if runs else ""

    def _launch(self, job: str, config: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        repository, location = self._place(job)
        params = {
            "selector": {"jobName": job, "repositoryName": repository, "repositoryLocationName": location},
            "runConfigData": dict(config),
            "mode": "default",
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        }
        answer = self._ask(_LAUNCH, "launchRun", params=params)
        if answer["__typename"] == "LaunchRunSuccess":
            return str(answer["run"]["runId"])
        said = answer.get("message") or "；".join(each["message"] for each in answer.get("errors", ()))
        raise DagsterUnavailable(f"Dagster 没有接受任务 {job}：{str(said or answer['__typename'])[:_MOST_SAID]}")

    def _place(self, job: str) -> tuple[str, str]:
        """Return the repository and the location of a job; installations may name their locations freely."""
        if job not in self._places:
            answer = self._ask(_JOBS, "repositoriesOrError")
            for node in answer.get("nodes", ()):
                for each in node["jobs"]:
                    self._places.setdefault(each["name"], (node["name"], node["location"]["name"]))
        if job not in self._places:
            raise DagsterUnavailable(f"Dagster 里没有任务 {job}：请确认代码位置已加载")
        return self._places[job]

    def _ask(self, query: str, field: str, **variables: Any) -> dict[str, Any]:
        """Return the field of the answer to a query.

        Raises:
            DagsterUnavailable: Dagster does not answer, or answers with an error of its own.
        """
        try:
            with httpx.Client(trust_env=False, timeout=_SECONDS) as client:
                answer = client.post(self._url, json={"query": query, "variables": variables})
            content = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            reason = type(error).__name__
            raise DagsterUnavailable(f"Dagster（{self._url}）没有应答：{reason}") from error
        if not isinstance(content, dict) or content.get("errors") or not isinstance(content.get("data"), dict):
            raise DagsterUnavailable(f"Dagster（{self._url}）的应答无法读取（HTTP {answer.status_code}）")
        found = dict(content["data"][field])
        if found.get("__typename") == "PythonError":
            # Such as a database that Dagster cannot reach: it says nothing about runs and jobs.
            said = str(found.get("message", "")).strip()[:_MOST_SAID]
            raise DagsterUnavailable(f"Dagster（{self._url}）出错：{said}")
        return found
