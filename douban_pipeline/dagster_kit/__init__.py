"""What the Dagster faces of all systems share: guards from predicates, launchpads, run history, runs by Celery."""
