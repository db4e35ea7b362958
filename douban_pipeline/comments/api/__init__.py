"""The comment service's HTTP API: for pages, other servers and operators. Independent of Dagster."""
