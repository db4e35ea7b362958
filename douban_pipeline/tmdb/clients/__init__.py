"""Asking TMDB; what comes back is values, and nothing here decides what is stored."""
