"""Polls sources at a learned cadence: the times at which each source publishes determine when it is polled next.

All times in this system are whole seconds since 1970 (UTC), as in its tables; hours are of the site's time zone.
"""
