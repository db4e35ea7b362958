"""The pages ``/tmdb/`` of the service: what is stored of films, series and people, for people to look at."""
