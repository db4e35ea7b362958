"""How fast the tmdb system's store, outbox and graph are."""
