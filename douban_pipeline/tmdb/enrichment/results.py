"""The result of a question, as a value and as Chinese sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTED
from douban_pipeline.tmdb.enrichment.admission import AdmissionRefusal
from douban_pipeline.tmdb.enrichment.choice import LEAD, ScoredCandidate
from douban_pipeline.tmdb.enrichment.router import Intent, Role, Route
from douban_pipeline.tmdb.enrichment.tmdb_requests import SearchResults
from douban_pipeline.tmdb.enrichment.transient import EMPTY, TransientGraph
from douban_pipeline.tmdb.types import LABELS, EntityKey, EntityType, NodeKey, Relation

_SHOWN = 8
_NAMESAKES = 3
_RELATIONS = {Role.DIRECTOR: (Relation.DIRECTED, "导演"), Role.ACTOR: (Relation.ACTED_IN, "演员")}
_WRITERS = ("Screenplay", "Writer", "Novel", "Story", "Author")


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
        state: The outcome.
        route: The route of the question.
        endpoint: The first request to TMDB; empty if there was none.
        candidates: For each name, or for the discovery, best first.
        selected: The chosen candidate of each name.
        uncertain: Whether a rival is nearly as good: let the user choose among `candidates_top3`.
        payloads: Details as returned by TMDB.
        graph: Their nodes and edges.
        answer: The answer in Chinese.
        problem: The problem as text; empty for none.
        persistence: What happened to the question: queued, spooled, written, lost, forgotten, rejected or skipped.
        request_id: The caller's request id.
        duration_ms: Total duration.
        tmdb_ms: Part of it that TMDB took, including waiting at the gate.
        source: ``store`` if all of it was stored, ``tmdb`` if TMDB was asked; empty without details.
        as_of: When TMDB sent the oldest of the details (ISO); None without any.
        retry_after: Seconds after which a refused question can be answered.
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
            **ATTRIBUTED,
        }


def refused(refusal: AdmissionRefusal) -> str:
    """Return the answer to a question that was refused, in Chinese."""
    if refusal.closed:
        return f"TMDB 暂停应答，请在 {refusal.seconds} 秒后再问。"
    return f"正在等 TMDB 的提问太多，请在 {refusal.seconds} 秒后再问。"


def answer_of(
    state: State,
    route: Route,
    selected: Sequence[ScoredCandidate],
    candidates: Sequence[Sequence[ScoredCandidate]],
    graph: TransientGraph,
) -> str:
    """Return the answer for people, in Chinese, from the graph alone."""
    if state is State.SKIPPED:
        return "这个问题与影视作品无关，或者没有指出片名、人名。"
    if state is State.FAILED:
        return "TMDB 暂时无法回答，请稍后再试。"
    if not selected and route.query_intent is Intent.ENTITY:
        if state is State.LATE:
            return "TMDB 未能及时回答，请稍后再试。"
        names = "、".join(f"“{name}”" for name in route.extracted_entities)
        best = [each for ranked in candidates for each in ranked[:3]]
        near = f"相近的有：{'、'.join(map(_titled, best))}。" if best else ""
        return f"TMDB 上没有找到{names}。{near}"
    if route.query_intent is not Intent.ENTITY and not selected:
        titles = [each for ranked in candidates for each in ranked[:_SHOWN]]
        kind = "剧集" if route.query_intent is Intent.SERIES else "电影"
        return f"可以看看这些{kind}：{'、'.join(map(_titled, titles))}。" if titles else f"没有找到符合条件的{kind}。"
    others = [each for ranked in candidates for each in ranked if _rivals(each, selected)]
    also = f"（同名的还有{'、'.join(map(_titled, others[:_NAMESAKES]))}。）" if others else ""
    return "".join(_about(each, route.role_hint, graph) for each in selected) + also


def _rivals(candidate: ScoredCandidate, selected: Sequence[ScoredCandidate]) -> bool:
    """Return whether a candidate that was not chosen is as similar as a chosen one."""
    chosen = {each.key for each in selected}
    least = min((each.score for each in selected), default=0.0)
    return candidate.exact and candidate.key not in chosen and least - candidate.score < LEAD


def _about(chosen: ScoredCandidate, role: Role | None, graph: TransientGraph) -> str:
    key = NodeKey(LABELS[chosen.key.type], chosen.key.tmdb_id)
    if key not in graph.nodes:
        return f"找到{_titled(chosen)}，但详情没有取到。"
    if chosen.key.type is EntityType.PERSON:
        return _person(chosen, key, role, graph)
    if role is Role.WRITER:
        people = [name for job in _WRITERS for name in graph.people(Relation.CREW_MEMBER, key, job)]
        return _credited(_titled(chosen), "编剧", list(dict.fromkeys(people)))
    if role is not None:
        relation, word = _RELATIONS[role]
        return _credited(_titled(chosen), word, graph.people(relation, key))
    directors, cast = graph.people(Relation.DIRECTED, key), graph.people(Relation.ACTED_IN, key)
    genres = [graph.name(edge.end) for edge in graph.edges if edge.start == key and not edge.credit_id]
    parts = [
        f"导演：{'、'.join(directors[:_SHOWN])}" if directors else "",
        f"主演：{'、'.join(cast[:_SHOWN])}" if cast else "",
        f"类型：{'、'.join(genres)}" if genres else "",
    ]
    overview = graph.nodes[key].properties.get("overview")
    return f"{_titled(chosen)}。{'；'.join(filter(None, parts))}。{overview or ''}"


def _credited(title: str, word: str, people: Sequence[str]) -> str:
    if not people:
        return f"TMDB 没有记载{title}的{word}。"
    more = f"等 {len(people)} 人" if len(people) > _SHOWN else ""
    return f"{title}的{word}是{'、'.join(people[:_SHOWN])}{more}。"


def _person(chosen: ScoredCandidate, key: NodeKey, role: Role | None, graph: TransientGraph) -> str:
    wanted = {
        Role.DIRECTOR: (Relation.DIRECTED,),
        Role.ACTOR: (Relation.ACTED_IN,),
        Role.WRITER: (Relation.CREW_MEMBER,),
    }
    words = {Relation.DIRECTED: "导演了", Relation.ACTED_IN: "出演了", Relation.CREW_MEMBER: "参与制作了"}
    relations = wanted[role] if role else (Relation.DIRECTED, Relation.ACTED_IN)
    found = []
    for relation in relations:
        titles = [graph.name(title) for title in graph.titles(relation, key)]
        if titles:
            more = f"等 {len(titles)} 部" if len(titles) > _SHOWN else ""
            found.append(f"{words[relation]}{''.join(f'《{title}》' for title in titles[:_SHOWN])}{more}")
    return f"{chosen.name}{'，'.join(found)}。" if found else f"TMDB 没有记载{chosen.name}的作品。"


def _titled(candidate: ScoredCandidate) -> str:
    if candidate.key.type is EntityType.PERSON:
        return candidate.name
    return f"《{candidate.name}》" + (f"（{candidate.year}）" if candidate.year else "")


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
