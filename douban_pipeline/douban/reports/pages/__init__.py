"""Reports for people on the whole library."""
