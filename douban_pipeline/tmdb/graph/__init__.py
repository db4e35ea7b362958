"""The graph database, over Bolt: writes and queries."""
