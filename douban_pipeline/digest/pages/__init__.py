"""The digest's pages: one an analysis, one a day, and an index by day. Nothing of an article's HTML is ever in them."""
