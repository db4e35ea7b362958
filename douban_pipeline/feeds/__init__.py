"""Sources polled at a learned cadence: when each publishes is learned, and it is asked just before a reader would.

All moments in this system are whole seconds since 1970 (UTC), as in its tables; hours are of the site's time zone.
"""
