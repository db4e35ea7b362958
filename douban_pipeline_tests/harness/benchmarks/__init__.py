"""How fast and how large the pipeline is on the real engine, at 170,000 videos and at ten times as many."""
