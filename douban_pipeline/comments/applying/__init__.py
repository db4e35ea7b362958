"""How events change a section: pure steps over rows in memory, which the store loads and writes back whole."""
