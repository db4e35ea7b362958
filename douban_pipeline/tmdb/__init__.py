"""The TMDB system: a raw store in PostgreSQL, an outbox, and a graph of films, series and people.

PostgreSQL is the source of truth; the graph is a projection of it; the outbox is the only way between them.
"""
