"""The result of a question. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from douban_pipeline.core.language import Language, translated
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTED
from douban_pipeline.tmdb.enrichment.admission import AdmissionRefusal
from douban_pipeline.tmdb.enrichment.choice import ScoredCandidate
from douban_pipeline.tmdb.enrichment.route import Intent, Route
from douban_pipeline.tmdb.enrichment.sentences import Sentences
from douban_pipeline.tmdb.enrichment.tmdb_requests import SearchResults
from douban_pipeline.tmdb.enrichment.transient import EMPTY, TransientGraph
from douban_pipeline.tmdb.types import EntityKey, EntityType


class State(StrEnum):
    """Outcome of a question."""

    ANSWERED = "answered"
    NOTHING = "nothing"
    """TMDB has nothing that matches."""
    LATE = "late"
    """TMDB did not answer (completely) by the deadline; the results so far are returned."""
    FAILED = "failed"
    """TMDB gave no usable answer."""
    REFUSED = "refused"
    """TMDB cannot be asked within the question's time; nothing was requested."""
    SKIPPED = "skipped"
    """The question is not one for TMDB."""


@dataclass(frozen=True, slots=True)
class EnrichmentResult:
    """The result of a question.

    Attributes:
        endpoint: The first request to TMDB; empty if there was none.
        candidates: For each name, or for the discovery, best first.
        selected: The chosen candidate of each name.
        uncertain: Whether a rival is nearly as good: let the user choose among `candidates_top3`.
        payloads: Details as returned by TMDB.
        graph: Their nodes and edges.
        answer: The answer in the language of the question.
        problem: The problem as text; empty for none.
        persistence: What happened to the question: queued, spooled, written, lost, forgotten, rejected or skipped.
        tmdb_ms: Part of it that TMDB took, including waiting at the gate.
        source: ``store`` if all of it was stored, ``tmdb`` if TMDB was asked; empty without details.
        as_of: Its age: when TMDB sent the oldest of the details (ISO); None without any.
        refreshing: Whether what was stored is old, and is fetched again behind the answer.
    """

    state: State
    route: Route
    endpoint: str = ""
    candidates: Sequence[Sequence[ScoredCandidate]] = ()
    selected: Sequence[ScoredCandidate] = ()
    uncertain: bool = False
    payloads: Sequence[dict[str, Any]] = ()
    graph: TransientGraph = field(default=EMPTY)
    answer: str = ""
    problem: str = ""
    persistence: str = "skipped"
    request_id: str | None = None
    duration_ms: float = 0.0
    tmdb_ms: float = 0.0
    source: str = ""
    as_of: str | None = None
    retry_after: int | None = None
    refreshing: bool = False

    @property
    def candidates_top3(self) -> list[dict[str, Any]]:
        """The three best of all candidates."""
        every = [each for ranked in self.candidates for each in ranked]
        if len(self.candidates) > 1:
            every.sort(key=lambda each: -each.score)
        return [each.to_json() for each in every[:3]]

    def to_json(self) -> dict[str, Any]:
        """Return it in the form used by the API."""
        return {
            "state": self.state.value,
            "selected_agent": self.route.selected_agent,
            "query_intent": self.route.query_intent.value,
            "extracted_entities": list(self.route.extracted_entities),
            "asked": self.route.asked.value,
            "role_hint": self.route.role_hint.value if self.route.role_hint else None,
            "tmdb_endpoint": self.endpoint or None,
            "selected": [each.to_json() for each in self.selected],
            "uncertain": self.uncertain,
            "candidates_top3": self.candidates_top3,
            "graph": self.graph.to_json(),
            "answer": self.answer,
            "problem": self.problem or None,
            "persistence": self.persistence,
            "request_id": self.request_id,
            "duration_ms": round(self.duration_ms, 1),
            "tmdb_ms": round(self.tmdb_ms, 1),
            "source": self.source or None,
            "as_of": self.as_of,
            "retry_after": self.retry_after,
            "refreshing": self.refreshing,
            **ATTRIBUTED,
        }


def refused(refusal: AdmissionRefusal, wanted: Language = "zh") -> str:
    """Return the answer to a question that was refused."""
    if not refusal.seconds:
        text = translated("Nothing is stored of that, and TMDB is not asked: no key of TMDB is set.", wanted)
    elif refusal.closed:
        text = translated("TMDB answers nothing for a while: ask again in {seconds} seconds.", wanted)
    else:
        text = translated("Too many questions wait for TMDB: ask again in {seconds} seconds.", wanted)
    return text.format(seconds=refusal.seconds)


def answer_of(state: State, route: Route, found: SearchResults, graph: TransientGraph) -> str:
    """Return the answer for people, in the language of the question, from what was found alone."""
    wanted: Language = "en" if route.english else "zh"
    if state is State.SKIPPED:
        return translated("This is not about a film, a series or a person, or it names none.", wanted)
    if state is State.FAILED:
        return translated("TMDB cannot answer now; please ask again later.", wanted)
    sentences = Sentences(wanted, found.payloads, graph)
    if found.selected:
        said = sentences.found(route, found.selected, found.ranked, found.alike, stored=found.alike_stored)
        return said + sentences.unasked(found.unasked)
    if route.query_intent is not Intent.ENTITY:
        return sentences.recommended(route, found.ranked)
    if state is State.LATE:
        return translated("TMDB did not answer in time; please ask again later.", wanted)
    return sentences.nothing(route, found.ranked)


def logged_of(result: EnrichmentResult, found: SearchResults, **asked: Any) -> dict[str, Any]:
    """Return a question with its results as `LoggedRequest` takes it; ``asked`` is what the result does not say."""
    return {
        **asked,
        "tmdb_endpoint": result.endpoint,
        "extracted_entities": list(result.route.extracted_entities),
        "disambiguation": disambiguation(found),
        "payloads": [each for each in found.payloads if not each["known"]],
        "request_id": result.request_id,
        "candidates_top3": [dated(each, found) for each in result.candidates_top3],
        "multi_results_raw": found.multi[0] if len(found.multi) == 1 else list(found.multi) or None,
        "discover_results_raw": found.discovered,
        "role_hint": result.route.role_hint.value if result.route.role_hint else None,
        "duration_ms": result.duration_ms,
    }


def disambiguation(found: SearchResults) -> list[dict[str, Any]]:
    """Return choice and candidates of each name, for the log."""
    chosen = {each.key: each for each in found.selected}
    return [
        {
            "selected": next((dated(each.to_json(), found) for each in ranked if each.key in chosen), None),
            "candidates": [dated(each.to_json(), found) for each in ranked],
        }
        for ranked in found.ranked
    ]


def dated(candidate: dict[str, Any], found: SearchResults) -> dict[str, Any]:
    """Return a candidate for the log, whose facts are as old as the question: without those that the store gave."""
    if EntityKey(EntityType(candidate["media_type"]), candidate["tmdb_id"]) not in found.stored:
        return candidate
    return {name: value for name, value in candidate.items() if name not in ("name", "year")}


def source_of(found: SearchResults) -> str:
    """Return ``store`` if all of an answer was stored, ``tmdb`` if TMDB was asked, and nothing without details."""
    if not found.payloads:
        return ""
    asked = found.multi or found.discovered is not None or not all(each["known"] for each in found.payloads)
    return "tmdb" if asked else "store"
