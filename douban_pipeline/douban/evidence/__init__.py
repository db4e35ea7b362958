"""Further evidence about the library's videos for the matcher: facts from TMDB's database, and posters."""
