"""Health of the pipeline: measurements every few minutes, warnings and alerts."""
