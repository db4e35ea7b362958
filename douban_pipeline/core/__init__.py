"""What every system needs and none owns: database, HTTP, gates, archive, clock. Knows no system and no Dagster."""
