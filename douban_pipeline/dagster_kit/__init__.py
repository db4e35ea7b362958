"""Dagster code shared by all systems: guards from predicates, launchpads, run history, runs on Celery workers."""

import warnings

from dagster import BetaWarning, PreviewWarning

# Dagster warns of every use of owners, pools and backfill policies, in each process that loads a location. They are
# used on purpose, and its version is pinned. What declares something for Dagster imports this package before.
for _category in (BetaWarning, PreviewWarning):
    warnings.simplefilter("ignore", _category)
