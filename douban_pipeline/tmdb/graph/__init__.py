"""The graph database, over Bolt: what is written to it and asked of it."""
