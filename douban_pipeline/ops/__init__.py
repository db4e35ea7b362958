"""What operators need beside Dagster: checks, grants, backups of our tables. The work itself never needs it."""
