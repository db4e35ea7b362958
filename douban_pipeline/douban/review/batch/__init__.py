"""Batch decisions: one decision about many videos, which are selected by a filter; what is left out and why."""
