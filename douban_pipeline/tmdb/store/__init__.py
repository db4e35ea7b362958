"""The schema ``tmdb`` in PostgreSQL and the code that reads and writes it."""
