"""What people read of the feeds system: figures, plots and the page."""
