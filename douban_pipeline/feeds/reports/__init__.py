"""Reports of the feeds system for people: figures and the page."""
