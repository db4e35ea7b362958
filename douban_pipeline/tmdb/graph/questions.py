"""Example questions to the graph, as Cypher. Names are parameters, never part of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from douban_pipeline.tmdb.graph.target import GraphTarget


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """A question with its parameters.

    Attributes:
        cypher: The statement; it returns at most ``$most`` rows.
    """

    name: str
    asks: str
    names: tuple[str, ...]
    cypher: str


QUESTIONS = {
    question.name: question
    for question in (
        GraphQuestion(
            "directors",
            "Who directed {title}?",
            ("title",),
            """
            MATCH (t)<-[:DIRECTED]-(p:Person) WHERE (t:Movie AND t.title = $title) OR (t:TVShow AND t.name = $title)
            RETURN coalesce(t.title, t.name) AS title, coalesce(t.release_date, t.first_air_date) AS day,
                   p.name AS director
            ORDER BY day, director LIMIT $most
            """,
        ),
        GraphQuestion(
            "co-actors",
            "With whom did {person} act most often?",
            ("person",),
            """
            MATCH (p:Person {name: $person})-[:ACTED_IN]->(t)<-[:ACTED_IN]-(other:Person)
            WHERE other.tmdb_id <> p.tmdb_id
            RETURN other.name AS person, count(DISTINCT t) AS titles ORDER BY titles DESC, person LIMIT $most
            """,
        ),
        GraphQuestion(
            "regulars",
            "Who acted for {director} most often?",
            ("director",),
            """
            MATCH (d:Person {name: $director})-[:DIRECTED]->(t)<-[:ACTED_IN]-(p:Person)
            RETURN p.name AS person, count(DISTINCT t) AS titles ORDER BY titles DESC, person LIMIT $most
            """,
        ),
        GraphQuestion(
            "path",
            "How are {one} and {other} connected?",
            ("one", "other"),
            """
            MATCH (a:Person {name: $one}), (b:Person {name: $other}) WHERE a.tmdb_id <> b.tmdb_id
            MATCH way = shortestPath((a)-[:ACTED_IN|DIRECTED|CREW_MEMBER*..10]-(b))
            RETURN [n IN nodes(way) | coalesce(n.title, n.name)] AS path LIMIT $most
            """,
        ),
    )
}
"""The questions by name."""


def ask(target: GraphTarget, question: GraphQuestion, names: tuple[str, ...], most: int = 10) -> list[dict[str, Any]]:
    """Return the rows of the answer.

    Raises:
        ValueError: There are more or fewer names than parameters.
        neo4j.exceptions.Neo4jError: The database refuses the query.
        neo4j.exceptions.DriverError: The database does not answer.
    """
    if len(names) != len(question.names):
        wanted = " ".join(name.upper() for name in question.names)
        raise ValueError(f"{question.name} takes {wanted}; {len(names)} names were given")
    return target.ask(question.cypher, **dict(zip(question.names, names, strict=True)), most=most)
