"""Keeps notes: a system whose only purpose is to be added."""
