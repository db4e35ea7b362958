"""Keeping the installation tidy: gates by hand, the archive of answers, Dagster's history, closed tasks."""
