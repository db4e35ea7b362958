"""What Douban and the search engines answer: clients, parsers, and the health of their gates and archive."""
