"""The comment service over HTTP: for pages, for other servers, for operators. Knows nothing of Dagster."""
