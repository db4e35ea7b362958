"""Example questions to the graph, as Cypher, each of at most ``$most`` rows. Names are parameters, never part of a
statement."""

QUESTIONS = {
    "directors": """
        MATCH (t)<-[:DIRECTED]-(p:Person) WHERE (t:Movie AND t.title = $name) OR (t:TVShow AND t.name = $name)
        RETURN coalesce(t.title, t.name) AS title, coalesce(t.release_date, t.first_air_date) AS day,
               p.name AS director
        ORDER BY day, director LIMIT $most
        """,
    "co-actors": """
        MATCH (p:Person {name: $name})-[:ACTED_IN]->(t)<-[:ACTED_IN]-(other:Person)
        WHERE other.tmdb_id <> p.tmdb_id
        RETURN other.name AS person, count(DISTINCT t) AS titles ORDER BY titles DESC, person LIMIT $most
        """,
    "regulars": """
        MATCH (d:Person {name: $name})-[:DIRECTED]->(t)<-[:ACTED_IN]-(p:Person)
        RETURN p.name AS person, count(DISTINCT t) AS titles ORDER BY titles DESC, person LIMIT $most
        """,
    "path": """
        MATCH (a:Person {name: $name}), (b:Person {name: $other}) WHERE a.tmdb_id <> b.tmdb_id
        MATCH way = shortestPath((a)-[:ACTED_IN|DIRECTED|CREW_MEMBER*..10]-(b))
        RETURN [n IN nodes(way) | coalesce(n.title, n.name)] AS path LIMIT $most
        """,
}
"""Directors of a title, whom a person acted with, who acted for a director, and how two people are connected."""
