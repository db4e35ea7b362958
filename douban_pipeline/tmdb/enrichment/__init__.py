"""Answering people's questions about films from TMDB: routing, choosing, a graph of the moment, and writing it down."""
