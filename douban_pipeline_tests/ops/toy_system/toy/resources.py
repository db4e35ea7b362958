"""What the toy's Dagster definitions share."""

POOL_LIMITS = {"toy_notes": 1}
