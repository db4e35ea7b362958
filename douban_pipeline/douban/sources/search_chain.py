"""Asking several search providers, one after another, until one of them finds something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from douban_pipeline.core.errors import (
    GateClosed,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.http import Fetcher
from douban_pipeline.douban.sources.search import (
    MISS_MAX_AGE,
    HttpSearch,
    KnownTitle,
    SearchAnswer,
    SearchIncomplete,
    SearchProvider,
    VideoQuery,
)
from douban_pipeline.douban.sources.search_providers import PROVIDERS

_NEXT = (GateClosed, SourceUnpaid, SourceThrottled, SourceWall, SourceUnavailable)
"""What makes the chain ask the next provider: this one is closed, out of quota or money, slowed down, or unhealthy."""


class Chain:
    """Providers in the order they are asked; the first that finds a subject ends the search.

    An empty answer of the chain is a good one only if everybody who has a wording of the question gave a good empty
    answer: who could not be asked may know what the others do not. It remembers nothing: whether a provider is closed
    is the gate's to know, and each keeps its own answers in the archive.

    Args:
        providers: At least one.
    """

    name = "chain"

    def __init__(self, providers: Sequence[SearchProvider]) -> None:
        self._providers = tuple(providers)

    @property
    def titles_only(self) -> bool:
        """Whether all of them are."""
        return all(provider.titles_only for provider in self._providers)

    def search(self, question: VideoQuery, *, max_age: timedelta | None) -> SearchAnswer:
        """See `SearchProvider.search`.

        Raises:
            GateClosed: Every provider is closed; until the first of them opens.
            SearchIncomplete: Nobody found anything, and not everybody could say so.
        """
        answers: list[SearchAnswer] = []
        failures: list[SourceError] = []
        for provider in self._providers:
            if not question.wording(titles_only=provider.titles_only):
                continue
            try:
                answers.append(provider.search(question, max_age=max_age))
            except _NEXT as error:
                failures.append(error)
                continue
            if answers[-1].hits:
                return _joined(answers, failures)
        cause = _cause(failures)
        if cause is None:
            return _joined(answers, failures)
        if isinstance(cause, GateClosed) and len(failures) == len(self._providers):
            raise cause
        raise SearchIncomplete(self.name, cause)


def search_from(
    urls: Mapping[str, str],
    fetcher: Callable[[str], Fetcher],
    *,
    miss_max_age: timedelta = MISS_MAX_AGE,
    known: Callable[[HttpSearch], KnownTitle] | None = None,
) -> SearchProvider:
    """Return the provider of ``urls``, or a chain if there are several.

    Args:
        urls: Addresses of providers by name (`PROVIDERS`), in the order they are asked.
        fetcher: Makes a fetcher for a source's name, which is the provider's.
        miss_max_age: How long an archived answer without any subject is believed, at most.
        known: Returns a title that a provider is known to find; see `HttpSearch`.

    Raises:
        ValueError: There is no such provider, or none is named.
    """
    unknown = [name for name in urls if name not in PROVIDERS]
    if unknown or not urls:
        named = ", ".join(map(repr, unknown)) or "named"
        raise ValueError(f"no search provider {named}; there are {', '.join(sorted(PROVIDERS))}")
    options = {"miss_max_age": miss_max_age, "known": known}
    providers = [PROVIDERS[name](fetcher(name), url, **options) for name, url in urls.items()]
    return providers[0] if len(providers) == 1 else Chain(providers)


def _cause(failures: Sequence[SourceError]) -> SourceError | None:
    """Return the failure that says when to ask again; a closed gate only if no call was made, the first to open."""
    called = (error for error in failures if not isinstance(error, GateClosed))
    closed = (error for error in failures if isinstance(error, GateClosed))
    # A call that failed just now says more than a gate that was closed before.
    return next(called, None) or min(closed, key=lambda error: error.until, default=None)


def _joined(answers: Sequence[SearchAnswer], failures: Sequence[SourceError]) -> SearchAnswer:
    """Return the last answer, resting on all of them; calls that failed were calls too."""
    return replace(
        answers[-1],
        snapshots=tuple(number for answer in answers for number in answer.snapshots),
        requests=sum(answer.requests for answer in answers) + sum(error.healthy is False for error in failures),
        silent=tuple(dict.fromkeys(engine for answer in answers for engine in answer.silent)),
        incomplete=_cause(failures),
        failed=tuple(error.source for error in failures if error.healthy is False),
    )
