"""Reports of the feeds system for people: figures, plots and the page."""
