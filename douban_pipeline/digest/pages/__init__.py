"""The digest's pages: one per analysis, one per day, and an index by day. They never contain an article's HTML."""
