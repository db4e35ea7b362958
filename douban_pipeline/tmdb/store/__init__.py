"""The schema ``tmdb`` in PostgreSQL and what reads and writes it."""
