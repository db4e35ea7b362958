"""People's decisions, applied at once by runs of their own, independent of all other runs."""
