"""Application of events to a section: pure steps over in-memory rows, which the store loads and writes back."""
