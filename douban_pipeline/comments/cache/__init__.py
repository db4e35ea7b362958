"""Caches in front of the database: lists in Redis, copies in the process; concurrent rebuilds of a list are coalesced.

Whether a comment is shown is never decided from a cache: the database is queried.
"""
