"""Shared by every system: database, HTTP, gates, archive, clock. Imports no system and no Dagster."""
