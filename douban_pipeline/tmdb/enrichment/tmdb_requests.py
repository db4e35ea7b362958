"""TMDB requests for one question, and the evaluation of their answers. Runs in a thread; stores nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from douban_pipeline.core.errors import NotFound, SourceError
from douban_pipeline.core.gate_types import Outlook
from douban_pipeline.matching import parse_title
from douban_pipeline.tmdb.clients.api import Page
from douban_pipeline.tmdb.enrichment.choice import ScoredCandidate, WantedEntity, choose, is_uncertain, rank, score
from douban_pipeline.tmdb.enrichment.known_answers import Known, KnownAnswer
from douban_pipeline.tmdb.enrichment.route import Asked, Intent, Route
from douban_pipeline.tmdb.store.entities import EntityAnswer
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of, items_of

MOST_DETAILS = 5
"""Number of recommended titles whose details are fetched."""
MOST_ALIKE = 8
"""Number of stored titles like another that are named while TMDB cannot be asked."""
_ALIKE = 3
"""Number of a title's genres that titles like it share."""
_LOOKED_AT = 3
"""Number of candidates whose other names are fetched if no name in the search results matches."""
MULTI, DISCOVER_TV, DISCOVER_MOVIE = "/search/multi", "/discover/tv", "/discover/movie"


class Client(Protocol):
    """The methods of `TmdbClient` that are used."""

    language: str

    def search_multi(self, query: str, *, language: str | None = None, follows: bool = False) -> Page:
        """Return the films, series and people with a name."""
        ...

    def discover_movie(self, *, language: str | None = None, page: int = 1, **filters: str) -> Page:
        """Return films by filters."""
        ...

    def discover_tv(self, *, language: str | None = None, page: int = 1, **filters: str) -> Page:
        """Return series by filters."""
        ...

    def details(self, key: EntityKey, *, language: str | None = None, follows: bool = False) -> EntityAnswer:
        """Return the details of an entity."""
        ...

    def outlook(self) -> Outlook:
        """Return what a request that joined the queue now could expect."""
        ...


@dataclass(slots=True)
class SearchResults:
    """TMDB's results for one question, filled in as they arrive: at a deadline the results so far remain.

    Attributes:
        ranked: The candidates of each name, best first.
        selected: The chosen candidate of each name, if any.
        uncertain: Whether a choice had a rival of nearly the same score.
        payloads: Details in their stored form; ``known`` are those that the store holds already.
        multi: Raw search answers, one per name.
        discovered: The raw discovery answer.
        seconds: Time taken by TMDB, including waiting at the gate.
        complete: Whether all necessary requests were made.
        stored: The candidates that the store knew.
        alike: Titles of the genres of the one that was chosen; None if they are not known.
        alike_stored: Whether those are stored ones that share people with it, because TMDB was not asked.
        unasked: Names in the question that are not stored, and about which TMDB gave no answer.
    """

    endpoint: str = MULTI
    ranked: list[list[ScoredCandidate]] = field(default_factory=list)
    selected: list[ScoredCandidate] = field(default_factory=list)
    uncertain: bool = False
    payloads: list[dict[str, Any]] = field(default_factory=list)
    multi: list[Mapping[str, Any]] = field(default_factory=list)
    discovered: Mapping[str, Any] | None = None
    seconds: float = 0.0
    complete: bool = False
    stored: set[EntityKey] = field(default_factory=set)
    alike: list[ScoredCandidate] | None = None
    unasked: list[str] = field(default_factory=list)
    alike_stored: bool = False

    def copied(self) -> SearchResults:
        """Return a copy that later results leave as it is."""
        return replace(
            self,
            ranked=[list(ranked) for ranked in self.ranked],
            selected=[*self.selected],
            payloads=[*self.payloads],
            multi=[*self.multi],
            stored={*self.stored},
            unasked=[*self.unasked],
        )


class Asking:
    """Makes the TMDB requests of a route, up to a deadline.

    Args:
        until: No request is started after this time (`time.monotonic`).
        known: What the store knows of names in the question: they are not searched.
        only_known: Search no others either, because TMDB cannot be asked.
    """

    def __init__(
        self,
        client: Client,
        language: str,
        until: float,
        known: Mapping[str, Known] | None = None,
        *,
        only_known: bool = False,
    ) -> None:
        self._client = client
        self._language = language
        self._until = until
        self._known = known or {}
        self._only_known = only_known
        self.found = SearchResults()

    def run(self, route: Route, choice: EntityKey | None = None) -> SearchResults:
        """Make the requests, and return the results.

        Args:
            choice: The user's choice among earlier candidates; then nothing is searched.

        Raises:
            SourceError: TMDB gave no usable answer; earlier results are in `found`.
        """
        started = time.monotonic()
        try:
            if choice is not None:
                self._take(choice)
            elif route.query_intent is Intent.ENTITY:
                self._search_all(route)
                if route.asked is Asked.LIKE and not self._only_known:
                    self._look_alike()
            elif route.query_intent in (Intent.MOVIES, Intent.SERIES):
                self._discover(route)
            self.found.complete = not self._is_late()
        finally:
            self.found.seconds = time.monotonic() - started
        return self.found

    def _search_all(self, route: Route) -> None:
        names = list(route.extracted_entities)
        self.found.unasked = list(dict.fromkeys(names))
        for place, name in enumerate(names):
            try:
                self._search(route, name)
            except SourceError:
                for known in names[place + 1 :]:
                    if known in self._known:
                        self._search(route, known)
                raise

    def _is_late(self) -> bool:
        return time.monotonic() >= self._until

    def _search(self, route: Route, name: str) -> None:
        if name in self._known:
            known = self._known[name]
            self.found.stored.update(each.key for each in known.ranked)
            self.found.ranked.append([*known.ranked])
            self.found.selected.append(known.chosen)
            self.found.uncertain = self.found.uncertain or known.uncertain
            self._keep(known.answer)
            self._answered(name)
            return
        if self._only_known or self._is_late():
            return
        wanted = wanted_by(route, name)
        page = self._client.search_multi(name, language=self._language)
        shorter = parse_title(name).base
        if not page.results and shorter and shorter != name and not self._is_late():
            # 庆余年第二季: TMDB names the series
            page = self._client.search_multi(shorter, language=self._language, follows=True)
        self.found.multi.append(page.raw)
        self._answered(name)
        ranked = rank(wanted, page.results)
        details: dict[EntityKey, EntityAnswer] = {}
        if ranked and not any(each.exact for each in ranked):
            ranked = self._by_other_names(wanted, ranked, details)
        self.found.ranked.append(ranked)
        chosen = choose(ranked)
        if chosen is None:
            return
        self.found.selected.append(chosen)
        self.found.uncertain = self.found.uncertain or is_uncertain(ranked)
        self._keep(details.get(chosen.key) or self._details(chosen.key))

    def _answered(self, name: str) -> None:
        self.found.unasked = [each for each in self.found.unasked if each != name]

    def _by_other_names(
        self, wanted: WantedEntity, ranked: Sequence[ScoredCandidate], details: dict[EntityKey, EntityAnswer]
    ) -> list[ScoredCandidate]:
        """Score the first candidates again with their names in all languages, until one of them matches exactly."""
        better: dict[EntityKey, ScoredCandidate] = {}
        for candidate in ranked[:_LOOKED_AT]:
            answer = self._details(candidate.key)
            if answer is None:
                continue
            details[candidate.key] = answer
            better[candidate.key] = score(wanted, candidate.key, {**candidate.item, **answer.raw})
            if better[candidate.key].exact:
                break
        scored = [better.get(each.key, each) for each in ranked]
        return sorted(scored, key=lambda each: (-each.score, each.key))

    def _look_alike(self) -> None:
        """Ask for titles of the genres of the first one that was chosen."""
        chosen = self.found.selected[0] if self.found.selected else None
        if chosen is None or chosen.key.type is EntityType.PERSON or self._is_late():
            return
        payloads = (each["data"] for each in self.found.payloads)
        raw: Mapping[str, Any] = next((each for each in payloads if each.get("id") == chosen.key.tmdb_id), {})
        genres = [str(each["id"]) for each in items_of(raw, "genres") if id_of(each.get("id"))]
        if not genres:
            return
        filters = {"with_genres": ",".join(genres[:_ALIKE]), "sort_by": "popularity.desc"}
        _, found = self._discovered(chosen.key.type, None, filters)
        self.found.alike = [each for each in found if each.key != chosen.key]

    def _discover(self, route: Route) -> None:
        kind = EntityType.TV if route.query_intent is Intent.SERIES else EntityType.MOVIE
        self.found.endpoint = DISCOVER_TV if kind is EntityType.TV else DISCOVER_MOVIE
        page, found = self._discovered(kind, route.year, route.filters)
        self.found.discovered = page.raw
        self.found.ranked.append(found)
        for candidate in self.found.ranked[0][:MOST_DETAILS]:
            self._keep(self._details(candidate.key))

    def _discovered(
        self, kind: EntityType, year: int | None, filters: Mapping[str, str]
    ) -> tuple[Page, list[ScoredCandidate]]:
        """Ask for titles by TMDB's filters; return its answer and the titles in its order."""
        ask = self._client.discover_tv if kind is EntityType.TV else self._client.discover_movie
        given: dict[str, Any] = {name.replace(".", "__"): value for name, value in filters.items()}
        page = ask(language=self._language, **given)
        found = rank(
            WantedEntity("", year, None, False, kind), [{**item, "media_type": kind.value} for item in page.results]
        )
        order = {item.get("id"): place for place, item in enumerate(page.results)}
        return page, sorted(found, key=lambda each: order.get(each.key.tmdb_id, len(order)))

    def _take(self, choice: EntityKey) -> None:
        answer = self._details(choice, follows=False)
        if answer is None:
            return
        candidate = score(WantedEntity(""), choice, answer.raw)
        self.found.ranked.append([candidate])
        self.found.selected.append(candidate)
        self._keep(answer)

    def _details(self, key: EntityKey, *, follows: bool = True) -> EntityAnswer | None:
        """Return an entity's details; None if TMDB no longer has it, or the deadline has passed."""
        if self._is_late():
            return None
        try:
            return self._client.details(key, language=self._language, follows=follows)
        except NotFound:
            return None

    def _keep(self, answer: EntityAnswer | None) -> None:
        if answer is not None:
            if isinstance(answer, KnownAnswer) and not self.found.multi and self.found.discovered is None:
                self.found.stored.add(EntityKey(answer.entity, int(answer.raw["id"])))
            self.found.payloads.append(
                {
                    "type": answer.entity.value,
                    "data": answer.raw,
                    "language": answer.language,
                    "fetched_at": answer.fetched_at.isoformat(),
                    "known": isinstance(answer, KnownAnswer),
                }
            )


def wanted_by(route: Route, name: str) -> WantedEntity:
    """Return what a route searches for under one of its names."""
    return WantedEntity(name, route.year, route.role_hint, name in route.titles, route.media)
