"""Clients of TMDB; they return values and do not decide what is stored."""
