"""The TMDB system: a raw store in PostgreSQL, an outbox, and a graph of films, series and people.

PostgreSQL is what is true; the graph is a projection of it; the outbox is the only way between them.
"""
