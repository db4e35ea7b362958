"""Health of the pipeline: measurements every few minutes, plots, warnings and alerts."""
