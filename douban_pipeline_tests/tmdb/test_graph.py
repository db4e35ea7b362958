"""What every graph database has to do: the contract, on each that there is."""

from __future__ import annotations

from typing import Any

import pytest
from neo4j.exceptions import ConstraintError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.tmdb.graph.batch import GraphBatch, GraphValueError, Written, check_edge, check_node
from douban_pipeline.tmdb.graph.questions import QUESTIONS
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.operations import graph_result
from douban_pipeline.tmdb.types import Edge, EdgeKey, NodeKey, NodeLabel, Relation

FILM, SHOW, LEE, LIN = (
    NodeKey(NodeLabel.MOVIE, 1),
    NodeKey(NodeLabel.TV, 1),
    NodeKey(NodeLabel.PERSON, 10),
    NodeKey(NodeLabel.PERSON, 11),
)
DRAMA = NodeKey(NodeLabel.GENRE, 18)


def acted(person: NodeKey, title: NodeKey, credit: str, character: str | None = "She") -> Edge:
    return Edge(EdgeKey(Relation.ACTED_IN, person, title, credit), {"character": character})


def directed(person: NodeKey, title: NodeKey, credit: str) -> Edge:
    return Edge(EdgeKey(Relation.DIRECTED, person, title, credit))


def batch(*edges: Edge, title: str = "A", owner: NodeKey = FILM) -> GraphBatch:
    """A full title with stubs at its other ends."""
    ends = {end for edge in edges for end in (edge.key.start, edge.key.end)} - {owner}
    name = "title" if owner.label is NodeLabel.MOVIE else "name"
    stubs = {end: {"title" if end.label is NodeLabel.MOVIE else "name": f"{end.label} {end.tmdb_id}"} for end in ends}
    return GraphBatch({owner: edges}, {owner: {name: title, "overview": "…"}}, stubs)


EDGES = (
    acted(LEE, FILM, "a"),
    acted(LEE, FILM, "b", "It"),
    directed(LIN, FILM, "c"),
    Edge(EdgeKey(Relation.BELONGS_TO_GENRE, FILM, DRAMA)),
)


def test_what_was_written_is_there_and_writing_it_again_changes_nothing(target: GraphTarget):
    assert target.apply(batch(*EDGES)) == Written(merged=4)
    assert target.apply(batch(*EDGES)) == Written()
    nodes, edges = target.dump()
    assert nodes[FILM] == {"tmdb_id": 1, "title": "A", "overview": "…", "data_state": "full"}
    assert nodes[LEE] == {"tmdb_id": 10, "name": "Person 10", "data_state": "stub"}
    assert nodes[DRAMA] == {"tmdb_id": 18, "name": "Genre 18"}
    assert edges == {edge.key: dict(edge.properties) for edge in EDGES}


def test_of_a_change_only_the_difference_is_written(target: GraphTarget):
    target.apply(batch(*EDGES))
    changed = batch(acted(LEE, FILM, "a", None), *EDGES[1:3], directed(LEE, FILM, "d"))
    assert target.apply(changed) == Written(merged=2, deleted=1, nodes_deleted=1)
    nodes, edges = target.dump()
    assert DRAMA not in nodes
    assert edges[EDGES[0].key] == {}
    assert len(edges) == 4


def test_properties_that_are_gone_are_removed(target: GraphTarget):
    target.apply(batch())
    target.apply(GraphBatch({FILM: ()}, {FILM: {"title": "B", "overview": None}}))
    assert target.dump()[0] == {FILM: {"tmdb_id": 1, "title": "B", "data_state": "full"}}


def test_a_credit_that_passes_to_another_person_moves(target: GraphTarget):
    target.apply(batch(acted(LEE, FILM, "a")))
    assert target.apply(batch(acted(LIN, FILM, "a"))) == Written(merged=1, deleted=1, nodes_deleted=1)
    assert set(target.dump()[1]) == {acted(LIN, FILM, "a").key}


def test_labels_keep_ids_apart(target: GraphTarget):
    target.apply(batch(acted(LEE, FILM, "a")))
    target.apply(batch(acted(LEE, SHOW, "b"), owner=SHOW, title="S"))
    target.apply(batch(title="A"))
    assert set(target.dump()[0]) == {FILM, SHOW, LEE}
    assert set(target.dump()[1]) == {acted(LEE, SHOW, "b").key}


def test_a_persons_claims_leave_what_full_titles_say(target: GraphTarget):
    other = NodeKey(NodeLabel.MOVIE, 2)
    target.apply(batch(acted(LEE, FILM, "a")))
    claim = GraphBatch({LEE: (acted(LEE, other, "b"),)}, {LEE: {"name": "Lee"}}, {other: {"title": "Stub"}})
    assert target.apply(claim) == Written(merged=1)
    without = GraphBatch({LEE: ()}, {LEE: {"name": "Lee"}})
    assert target.apply(without) == Written(deleted=1, nodes_deleted=1)
    assert set(target.dump()[1]) == {acted(LEE, FILM, "a").key}
    assert target.dump()[0][LEE]["data_state"] == "full"


def test_what_is_gone_stays_as_a_stub_where_others_point_at_it(target: GraphTarget):
    target.apply(batch(acted(LEE, FILM, "a"), acted(LIN, FILM, "b")))
    claims = (acted(LEE, FILM, "a"),)
    gone = GraphBatch({FILM: (), LEE: claims}, {LEE: {"name": "Lee"}}, {FILM: {"title": "A"}})
    assert target.apply(gone) == Written(merged=0, deleted=1, nodes_deleted=1)
    nodes, edges = target.dump()
    assert nodes[FILM] == {"tmdb_id": 1, "title": "A", "data_state": "stub"}
    assert set(edges) == {claims[0].key}
    assert target.apply(GraphBatch({LEE: ()}, {LEE: {"name": "Lee"}})).nodes_deleted == 1


def test_a_batch_is_written_whole_or_not_at_all(target: GraphTarget, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("douban_pipeline.tmdb.graph.rows._delete_orphans", fails)
    with pytest.raises(RuntimeError):
        target.apply(batch(*EDGES))
    assert target.dump() == ({}, {})


def test_another_writer_is_waited_out(target: GraphTarget, monkeypatch: pytest.MonkeyPatch):
    from douban_pipeline.tmdb.graph import target as module

    calls, original = [], module.write

    def meets_another(*arguments: Any, **options: Any) -> Written:
        calls.append(1)
        if len(calls) < 3:
            raise ConstraintError
        return original(*arguments, **options)

    monkeypatch.setattr(module, "write", meets_another)
    assert target.apply(batch()) == Written()
    assert len(calls) == 3


@pytest.mark.parametrize("text", ["'}) DETACH DELETE n //", "<script>", "喜宴 𝒳", "\\", "x" * 100_000])
def test_texts_are_data(target: GraphTarget, text: str):
    target.apply(batch(acted(LEE, FILM, text[:200], text), title=text))
    assert target.dump()[0][FILM]["title"] == text
    assert target.ask("MATCH (m:Movie {title: $title}) RETURN count(m) AS n", title=text) == [{"n": 1}]


# --- what may be sent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tmdb_id", [None, 0, -1, "5", True, 1.0, 2**31])
def test_keys_that_are_none_are_refused(tmdb_id: Any):
    with pytest.raises(GraphValueError):
        check_node(NodeKey(NodeLabel.MOVIE, tmdb_id), {})
    with pytest.raises(GraphValueError):
        check_edge(acted(NodeKey(NodeLabel.PERSON, tmdb_id), FILM, "a"))


@pytest.mark.parametrize("value", [[1, "a"], {"a": 1}, 2**63, b"x", "a\x00b"])
def test_properties_that_are_none_are_refused(value: Any):
    with pytest.raises(GraphValueError, match=r"title of Movie 1|character of ACTED_IN a"):
        check_node(FILM, {"title": value})
    with pytest.raises(GraphValueError):
        check_edge(acted(LEE, FILM, "a", value))


@pytest.mark.parametrize("credit", ["", None, 7])
def test_credits_that_are_none_are_refused(credit: Any):
    with pytest.raises(GraphValueError):
        check_edge(acted(LEE, FILM, credit))


# --- questions --------------------------------------------------------------------------------------------------------

CHAO = NodeKey(NodeLabel.PERSON, 12)


@pytest.fixture
def family(target: GraphTarget) -> GraphTarget:
    """Three films: Person 10 directed two, with Person 11 in both and Person 12 in one; Person 12 acts in a third."""
    films = [NodeKey(NodeLabel.MOVIE, each) for each in (1, 2, 3)]
    target.apply(
        batch(directed(LEE, films[0], "a"), acted(LIN, films[0], "b"), acted(CHAO, films[0], "c"), title="喜宴")
    )
    target.apply(batch(directed(LEE, films[1], "d"), acted(LIN, films[1], "e"), owner=films[1], title="B"))
    more = (acted(CHAO, films[2], "f"), acted(NodeKey(NodeLabel.PERSON, 13), films[2], "g"), acted(CHAO, films[2], "h"))
    target.apply(batch(*more, owner=films[2], title="C"))
    return target


@pytest.mark.parametrize(
    ("name", "names", "rows"),
    [
        ("directors", ("喜宴",), [{"title": "喜宴", "day": None, "director": "Person 10"}]),
        ("directors", ("' OR 1=1 //",), []),
        ("co-actors", ("Person 12",), [{"person": "Person 11", "titles": 1}, {"person": "Person 13", "titles": 1}]),
        ("regulars", ("Person 10",), [{"person": "Person 11", "titles": 2}, {"person": "Person 12", "titles": 1}]),
        ("path", ("Person 10", "Person 13"), [{"path": ["Person 10", "喜宴", "Person 12", "C", "Person 13"]}]),
        ("path", ("Person 10", "Nobody"), []),
    ],
)
def test_questions(family: GraphTarget, name: str, names: tuple[str, ...], rows: list[dict[str, Any]]):
    given = dict(zip(("name", "other"), names, strict=False))
    assert family.ask(QUESTIONS[name], **given, most=10) == rows


@pytest.mark.parametrize(
    ("agent", "old"),
    [
        ("Neo4j/5.6.0", True),
        ("Neo4j/4.4.30", True),
        ("Neo4j/5.7.0", False),
        ("Neo4j/2026.1.0", False),
        ("Memgraph/3.1", False),
    ],
)
def test_a_neo4j_without_unique_edges_is_refused(
    target: GraphTarget, monkeypatch: pytest.MonkeyPatch, agent: str, old: bool
):
    monkeypatch.setattr(GraphTarget, "server", lambda _: agent)
    found = graph_result(target)
    assert (found.state == "fail") is old
    if not old:
        target.set_up()
        return
    assert "5.7 or newer is needed" in found.message
    with pytest.raises(DatabaseError, match="or newer is needed"):
        target.set_up()
