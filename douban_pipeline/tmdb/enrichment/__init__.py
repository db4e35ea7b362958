"""Answers people's questions about films from TMDB: routing, choosing candidates, a transient graph, and logging."""
