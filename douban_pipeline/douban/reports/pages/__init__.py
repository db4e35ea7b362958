"""Reports for people: what the library as a whole looks like."""
