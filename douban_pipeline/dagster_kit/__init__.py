"""Dagster code shared by all systems: guards from predicates, launchpads, run history, runs on Celery workers."""
