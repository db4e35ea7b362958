"""Commands for operators beside Dagster: checks, grants, backups of our tables. The pipeline itself does not use it."""
